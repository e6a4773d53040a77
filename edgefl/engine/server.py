"""The server of one cell: opens sessions, runs their stages round by round, has arrived updates aggregated."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, field

import numpy as np
import simpy

from edgefl.contract import (
    REPORTED_LOSS,
    Evaluation,
    Learner,
    LocalRound,
    Now,
    Opening,
    SessionStart,
    Stage,
    StageFacts,
)
from edgefl.engine.federations import Stop
from edgefl.engine.gains import RoundKey
from edgefl.engine.parts import Part
from edgefl.engine.radio_round import RadioRound
from edgefl.engine.records import (
    OUT_OF_COVERAGE,
    DeviceRound,
    Event,
    EventName,
    Round,
    Session,
    average_columns,
    device_columns,
    learner_columns,
    round_columns,
    stall_columns,
)
from edgefl.engine.rounds import Rounds, Selection
from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.engine.simulation import Simulation
from edgefl.engine.timetable import Timetable, wait_until
from edgefl.errors import EdgeflError


@dataclass
class OpenSession:
    """The session under way in a cell.

    number: from 1 on. until_s: from when on no further round of training begins, by its policy. members: who was
    there when it began. rounds: so far, of each phase. sampled: devices of each phase without evaluation.
    unchanged: rounds of the global model that left it as it was. losses: mean reports of the rounds of the global
    model, if the policy asked for them.
    """

    number: int
    start_s: float
    reason: str
    members: list[int]
    until_s: float = math.inf
    rounds: Counter[str] = field(default_factory=Counter)
    sampled: dict[str, list[int]] = field(default_factory=dict)
    unchanged: int = 0
    losses: list[float] = field(default_factory=list)


class _Deserted(Exception):
    """A cell has had no device since a time, and waiting for one is given up."""

    def __init__(self, since_s: float) -> None:
        super().__init__(since_s)
        self.since_s = since_s


class Server:
    """The server of one federation: the devices of its cell, its learner, its sessions.

    Args:
        members: session number -> the only devices that may take part; None: all that are present.
    """

    def __init__(
        self,
        simulation: Simulation,
        rounds: Rounds,
        *,
        learner: Learner,
        policy: SessionPolicy,
        members: Callable[[int], Collection[int] | None] = lambda session: None,
    ) -> None:
        self._simulation = simulation
        self._rounds = rounds
        self._learner = learner
        self._policy = policy
        self._members = members
        self._timetable = Timetable(rounds.rules.every_s, rounds.rules.pause_s)
        self._number = 0  # of the session
        self._seen: list[frozenset[int]] = []  # first members of the sessions so far
        self._turn = 0  # rounds of the global model so far
        self._version = 0  # global models made so far
        self._billed_slots = 0.0  # of a dynamic band, whose energy is in the rows written so far

    def run(self) -> Generator[simpy.Event, None, None]:
        """Run all sessions one after the other, until the duration is over or nobody is left and others are done."""
        cell, federations = self._rounds.cell, self._simulation.federations
        federations.works(cell)
        reason = "start"
        for number in itertools.count(1):
            if number > (self._policy.count or math.inf):
                break
            self._number = number
            try:
                if not (yield from self._wait_for_turn(self._simulation.duration_s)):
                    break
                reason = yield from self._run_session(number, reason)
            except _Deserted as deserted:
                federations.stopped.append(Stop(cell, number, deserted.since_s))
                return
        federations.finishes(cell)

    def _run_session(self, number: int, reason: str) -> Generator[simpy.Event, None, str]:
        start_s = self._simulation.env.now
        session = OpenSession(number, start_s, reason, self._present(), self._policy.until_s(start_s))
        self._event(EventName.SESSION_START, reason)
        ended = ""
        try:
            for stage in self._learner.session(
                SessionStart(
                    number, tuple(session.members), self._policy.longest, reports=self._policy.report_bits > 0
                )
            ):
                if stage.facts.opening is not None:
                    self._simulation.recorder.write(self._session_row(session, stage.facts.opening))
                ended = yield from self._run_stage(stage, session)
        except _Deserted:
            self._event(EventName.SESSION_END, "no_device")
            raise
        self._seen.append(frozenset(session.members))
        self._event(EventName.SESSION_END, ended)
        return ended

    def _run_stage(self, stage: Stage, session: OpenSession) -> Generator[simpy.Event, None, str]:
        """Run the stage's rounds, or rounds until the policy or the duration ends the session; return why."""
        facts, done, policy, duration_s = stage.facts, 0, self._policy, self._simulation.duration_s
        while done != facts.rounds:
            # a session has one round of training, whatever its policy says
            until_s = session.until_s if facts.rounds is None and done else math.inf
            if not (yield from self._wait_for_turn(min(until_s, duration_s))):
                if self._simulation.env.now >= duration_s:
                    return "duration"
                return self._reason(session, done)
            progress = policy.progress(self._state(session, done)) if facts.rounds is None else None
            done += 1
            session.rounds[facts.phase] += 1
            yield from self._round(stage, session, progress)
            if facts.rounds is None and (ended := policy.reason_to_end(self._state(session, done))):
                return ended
        return ""

    def _reason(self, session: OpenSession, done: int) -> str:
        """Return why a session ends at its `until_s`."""
        if reason := self._policy.reason_to_end(self._state(session, done)):
            return reason
        raise EdgeflError(
            f"{type(self._policy).__name__} ends a session at {session.until_s} s by until_s(), and by"
            " reason_to_end() it goes on: let that return a reason from then on",
            ("sessions",),
        )

    def _state(self, session: OpenSession, done: int) -> SessionState:
        """Return what the policy may know of a session after a number of rounds of training."""
        return SessionState(
            done,
            frozenset(session.members),
            frozenset(self._present()),
            tuple(session.losses),
            session.unchanged,
            time_s=self._simulation.env.now,
            start_s=session.start_s,
            seen=tuple(self._seen),
        )

    def _round(
        self, stage: Stage, session: OpenSession, progress: float | None
    ) -> Generator[simpy.Event, None, None]:
        """Run one synchronous round."""
        facts, rules, start_s = stage.facts, self._rounds.rules, self._simulation.env.now
        if facts.evaluates:  # what follows a probe waits for no time of the grid: training was to begin then
            self._timetable.begun(start_s)
        key = (session.number, facts.phase, session.rounds[facts.phase])
        selection, covered = self._selection(facts, key, session), self._coverage_columns()
        self._turn += facts.evaluates
        local = stage.train(selection.ids, key[2], Now(start_s, progress))
        opened, parts = yield from self._rounds.carry_out(selection, local)

        arrived = [part.device for part in parts if part.completed]
        aggregated = len(arrived) >= rules.min_updates
        if aggregated:
            if rules.server_s:
                yield self._simulation.env.timeout(rules.server_s)
            stage.aggregate(arrived)
            self._version += facts.evaluates
        else:
            session.unchanged += facts.evaluates
            self._event(EventName.NO_UPDATES, f"{facts.phase} round {key[2]}: {len(arrived)} arrived")
        evaluation = stage.evaluate(self._present()) if facts.evaluates else None
        if self._policy.report_bits and facts.evaluates and arrived:
            session.losses.append(_mean_loss(local, arrived))
        self._book(key, start_s, selection, local, opened, parts, evaluation, aggregated, covered)
        self._timetable.ended(self._simulation.env.now)

    def _selection(self, facts: StageFacts, key: RoundKey, session: OpenSession) -> Selection:
        """Select a round's participants: the selector does, or without evaluation, those sampled for the phase."""
        present = self._present()
        if facts.evaluates:
            return self._rounds.select(key, present, self._turn)
        there = sorted(set(present).intersection(session.sampled.get(facts.phase, ())))
        if not there:
            session.sampled[facts.phase] = there = self._rounds.sample(facts.share, key, present)
        return self._rounds.of(there, key, present)

    def _present(self) -> list[int]:
        return self._allowed(self._simulation.network.present(self._rounds.cell))

    def _allowed(self, ids: list[int]) -> list[int]:
        allowed = self._members(self._number)
        return ids if allowed is None else [id_ for id_ in ids if id_ in allowed]

    def _why(self) -> str:
        return " with a link" if self._simulation.network.out_of_coverage(self._rounds.cell) else ""

    def _coverage_columns(self) -> dict[str, int]:
        """Return the further column of rounds.csv where there is a coverage: who lacks it now and would be there."""
        without = self._simulation.network.out_of_coverage(self._rounds.cell)
        return {} if without is None else {OUT_OF_COVERAGE: len(self._allowed(without))}

    def _wait_for_turn(self, until_s: float) -> Generator[simpy.Event, None, bool]:
        """Wait until the next round may begin and somebody is there; return False at until_s, if it comes first."""
        env, timetable = self._simulation.env, self._timetable
        while True:
            begin_s = max(env.now, timetable.next_s)
            if (stop_s := min(begin_s, until_s)) > env.now:
                yield from wait_until(env, stop_s)
            if env.now >= until_s:
                return False
            if self._present():
                return True
            yield from self._wait_for_devices(until_s)
            timetable.resumed(env.now)

    def _wait_for_devices(self, until_s: float) -> Generator[simpy.Event, None, None]:
        """Wait until at least one device is in the cell, or it is until_s; the federation stands still meanwhile.

        Raises:
            _Deserted: nobody came in time, and another federation is done.
            EdgeflError: nobody came in time, and the run has neither a result nor a duration.
        """
        cell, federations = self._rounds.cell, self._simulation.federations
        began_s, env = self._simulation.env.now, self._simulation.env
        self._event(EventName.WAITING_FOR_DEVICES)
        given_up = federations.waits(cell)
        while not self._present() and env.now < until_s:
            over = [env.timeout(until_s - env.now)] if until_s < math.inf else []
            yield env.any_of([self._simulation.network.arrival(cell), given_up, *over])
            if given_up.processed and not self._present():
                if federations.done:
                    raise _Deserted(began_s)
                if self._simulation.duration_s < math.inf:
                    given_up = federations.waits(cell)  # the run has an end: until then a device may come
                    continue
                raise EdgeflError(
                    f"cell {cell} has had no device{self._why()} for {env.now - began_s:g} s since simulated time"
                    f" {began_s:.3f} s, and no federation can go on; raise devices.count or cell.radius_m, or"
                    " allow a longer rounds.max_wait_s, or give the run a duration_s",
                    ("rounds", "max_wait_s"),
                )
        if self._present():
            federations.works(cell)

    def _book(
        self,
        key: RoundKey,
        start_s: float,
        selection: Selection,
        local: LocalRound,
        opened: RadioRound,
        parts: list[Part],
        evaluation: Evaluation | None,
        aggregated: bool,
        covered: dict[str, int],
    ) -> None:
        simulation, cell = self._simulation, self._rounds.cell
        session, phase, number = key
        columns, scalars = device_columns(parts), learner_columns(local, parts, aggregated)
        stalls = stall_columns(parts) if simulation.radio.may_fail else {}
        if stalls:
            simulation.ledger.book_stalls(columns["device"], stalls)
        simulation.recorder.write(
            Round(
                session=session,
                round=number,
                version=self._version,
                phase=phase,
                start_s=start_s,
                end_s=simulation.env.now,
                latency_s=simulation.env.now - start_s,
                **round_columns(columns, start_s, simulation.env.now),
                accuracy=evaluation.accuracy if evaluation else None,
                loss=evaluation.loss if evaluation else None,
                energy_server_j=self._server_energy_j(opened, parts, aggregated),
                energy_wasted_j=simulation.ledger.book(columns, aggregated),
                cell=cell,
            ),
            further={
                **covered,
                **(evaluation.scalars if evaluation else {}),
                **average_columns(local.averaged, scalars),
                **opened.columns(parts),
            },
        )
        simulation.recorder.write_columns(
            DeviceRound,
            session=session,
            round=number,
            phase=phase,
            distance_m=selection.large_scale.distances_m,
            **columns,
            cell=cell,
            further=self._classes(selection.ids) | stalls | scalars,
        )
        simulation.recorder.flush()

    def _server_energy_j(self, opened: RadioRound, parts: list[Part], aggregated: bool) -> float:
        """Return the joules of the base station in a round, and of the server, if it aggregated."""
        rules = self._rounds.rules
        sent_j = opened.server_energy_j([part.downlink for part in parts], self._billed_slots)
        self._billed_slots = opened.sent_slots
        return sent_j + (rules.server_power_w * rules.server_s if aggregated else 0.0)

    def _classes(self, ids: list[int]) -> dict[str, list[str]]:
        """Return the further column `class` of devices.csv, if there are classes."""
        names = self._simulation.fleet.class_names(ids)
        return {"class": names} if names else {}

    def _session_row(self, session: OpenSession, opening: Opening) -> Session:
        return Session(
            session=session.number,
            start_s=session.start_s,
            reason=session.reason,
            devices=" ".join(map(str, session.members)),
            labels=" ".join(map(str, opening.labels)),
            warm_start=opening.warm_start,
            weights=" ".join(f"{z}:{weight:.6g}" for z, weight in opening.weights.items()),
            accuracy_start=opening.accuracy,
            loss_start=opening.loss,
            cell=self._rounds.cell,
        )

    def _event(self, name: EventName, detail: str = "") -> None:
        now_s, cell = self._simulation.env.now, self._rounds.cell
        self._simulation.recorder.write(Event(now_s, name, None, self._number, cell, detail=detail))


def _mean_loss(local: LocalRound, arrived: list[int]) -> float:
    """Return the mean of the losses that arrived; devices without data report none."""
    reported = dict(zip(local.ids, local.scalars[REPORTED_LOSS], strict=True))
    losses = [loss for id_ in arrived if (loss := reported[id_]) is not None]
    return float(np.mean(losses)) if losses else 0.0
