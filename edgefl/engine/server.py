"""The server of one cell: opens sessions, runs their stages round by round, has arrived updates aggregated."""

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
    Opening,
    SessionStart,
    Stage,
    StageFacts,
)
from edgefl.engine.federations import Stop
from edgefl.engine.gains import RoundKey
from edgefl.engine.parts import Part
from edgefl.engine.records import (
    DeviceRound,
    Event,
    EventName,
    Round,
    Session,
    device_columns,
    round_columns,
)
from edgefl.engine.rounds import Rounds, Selection
from edgefl.engine.scene import Scene
from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.errors import EdgeflError


@dataclass
class OpenSession:
    """The session under way in a cell.

    number: from 1 on. members: who was there when it began. rounds: so far, of each phase. sampled: devices of
    each phase without evaluation. unchanged: rounds of the global model that left it as it was. losses: mean
    reports of the rounds of the global model, if the policy asked for them.
    """

    number: int
    start_s: float
    reason: str
    members: list[int]
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
        scene: Scene,
        rounds: Rounds,
        *,
        learner: Learner,
        policy: SessionPolicy,
        members: Callable[[int], Collection[int] | None] = lambda session: None,
    ) -> None:
        self._scene = scene
        self._rounds = rounds
        self._learner = learner
        self._policy = policy
        self._members = members
        self._number = 0  # of the session
        self._turn = 0  # rounds of the global model so far
        self._version = 0  # global models made so far

    def run(self) -> Generator[simpy.Event, None, None]:
        """Run all sessions, one after the other, or until there is nobody left and the others are done."""
        cell, federations = self._rounds.cell, self._scene.federations
        federations.works(cell)
        reason = "start"
        for number in range(1, self._policy.count + 1):
            try:
                reason = yield from self._run_session(number, reason)
            except _Deserted as deserted:
                federations.stopped.append(Stop(cell, number, deserted.since_s))
                return
        federations.finishes(cell)

    def _run_session(self, number: int, reason: str) -> Generator[simpy.Event, None, str]:
        self._number = number
        yield from self._wait_for_devices()
        session = OpenSession(number, self._scene.env.now, reason, self._present())
        self._event(EventName.SESSION_START, reason)
        ended = ""
        try:
            for stage in self._learner.session(
                SessionStart(
                    number, tuple(session.members), self._policy.longest, reports=self._policy.report_bits > 0
                )
            ):
                if stage.facts.opening is not None:
                    self._scene.recorder.write(self._session_row(session, stage.facts.opening))
                ended = yield from self._run_stage(stage, session)
        except _Deserted:
            self._event(EventName.SESSION_END, "no_device")
            raise
        self._event(EventName.SESSION_END, ended)
        return ended

    def _run_stage(self, stage: Stage, session: OpenSession) -> Generator[simpy.Event, None, str]:
        """Run the stage's rounds, or rounds until the policy ends the session; return why it did."""
        facts, done = stage.facts, 0
        while done != facts.rounds:
            done += 1
            session.rounds[facts.phase] += 1
            yield from self._round(stage, session)
            if facts.rounds is None:
                now = frozenset(self._present())
                state = SessionState(
                    done, frozenset(session.members), now, tuple(session.losses), session.unchanged
                )
                if ended := self._policy.reason_to_end(state):
                    return ended
        return ""

    def _round(self, stage: Stage, session: OpenSession) -> Generator[simpy.Event, None, None]:
        """Run one synchronous round."""
        yield from self._wait_for_devices()
        facts, start_s = stage.facts, self._scene.env.now
        key = (session.number, facts.phase, session.rounds[facts.phase])
        selection = self._selection(facts, key, session)
        self._turn += facts.evaluates
        local = stage.train(selection.ids, key[2], start_s)
        parts = yield from self._rounds.carry_out(selection, local)

        arrived = [part.device for part in parts if part.completed]
        aggregated = len(arrived) >= self._rounds.rules.min_updates
        if aggregated:
            stage.aggregate(arrived)
            self._version += facts.evaluates
        else:
            session.unchanged += facts.evaluates
            self._event(EventName.NO_UPDATES, f"{facts.phase} round {key[2]}: {len(arrived)} arrived")
        evaluation = stage.evaluate(self._present()) if facts.evaluates else None
        if self._policy.report_bits and facts.evaluates and arrived:
            session.losses.append(_mean_loss(local, arrived))
        self._book(key, start_s, selection, local, parts, evaluation, aggregated)

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
        present = self._scene.network.present(self._rounds.cell)
        allowed = self._members(self._number)
        return present if allowed is None else [id_ for id_ in present if id_ in allowed]

    def _wait_for_devices(self) -> Generator[simpy.Event, None, None]:
        """Wait until at least one device is in the cell; without one the federation stands still.

        Raises:
            _Deserted: nobody came in time, and another federation is done.
            EdgeflError: nobody came in time, and the run has no result at all.
        """
        if self._present():
            return
        cell, federations = self._rounds.cell, self._scene.federations
        began_s = self._scene.env.now
        self._event(EventName.WAITING_FOR_DEVICES)
        given_up = federations.waits(cell)
        while not self._present():
            yield self._scene.network.arrival(cell) | given_up
            if given_up.processed and not self._present():
                if federations.done:
                    raise _Deserted(began_s)
                raise EdgeflError(
                    f"cell {cell} has had no device for {self._scene.env.now - began_s:g} s since simulated time"
                    f" {began_s:.3f} s, and no federation can go on; raise devices.count or cell.radius_m, or"
                    " allow a longer rounds.max_wait_s",
                    ("rounds", "max_wait_s"),
                )
        federations.works(cell)

    def _book(
        self,
        key: RoundKey,
        start_s: float,
        selection: Selection,
        local: LocalRound,
        parts: list[Part],
        evaluation: Evaluation | None,
        aggregated: bool,
    ) -> None:
        scene, cell = self._scene, self._rounds.cell
        session, phase, number = key
        columns = device_columns(parts)
        scene.recorder.write(
            Round(
                session=session,
                round=number,
                version=self._version,
                phase=phase,
                start_s=start_s,
                end_s=scene.env.now,
                latency_s=scene.env.now - start_s,
                **round_columns(columns, start_s, scene.env.now),
                accuracy=evaluation.accuracy if evaluation else None,
                loss=evaluation.loss if evaluation else None,
                energy_server_j=scene.radio.server_energy_j(cell, [part.downlink for part in parts]),
                energy_wasted_j=scene.ledger.book(columns, aggregated),
                cell=cell,
            ),
            further=evaluation.scalars if evaluation else None,
        )
        scene.recorder.write_columns(
            DeviceRound,
            session=session,
            round=number,
            phase=phase,
            distance_m=selection.survey.distances_m,
            **columns,
            cell=cell,
            further=local.scalars,
        )
        scene.recorder.flush()

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
        scene = self._scene
        scene.recorder.write(Event(scene.env.now, name, None, self._number, self._rounds.cell, detail=detail))


def _mean_loss(local: LocalRound, arrived: list[int]) -> float:
    """Return the mean of the losses that arrived; devices without data report none."""
    reported = dict(zip(local.ids, local.scalars[REPORTED_LOSS], strict=True))
    losses = [loss for id_ in arrived if (loss := reported[id_]) is not None]
    return float(np.mean(losses)) if losses else 0.0
