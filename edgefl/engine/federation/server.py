"""The server of one cell: opens sessions, runs their stages round by round, has arrived updates aggregated."""

import itertools
import math
from collections.abc import Callable, Collection, Generator

import numpy as np
import simpy

from edgefl.contract import (
    REPORTED_LOSS,
    Learner,
    LocalRound,
    Now,
    SessionStart,
    Stage,
)
from edgefl.engine.air.gains import RoundKey
from edgefl.engine.federation.attendance import Attendance, Deserted
from edgefl.engine.federation.books import Books, RoundDone
from edgefl.engine.federation.cloud import NO_EXCHANGE, CloudLink
from edgefl.engine.federation.deciding import told_by
from edgefl.engine.federation.ending import Ending
from edgefl.engine.federation.open_session import Counts, OpenSession
from edgefl.engine.federation.overlapping import OverlappingTraining
from edgefl.engine.federation.rounds import Rounds, Selection
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.federation.timetable import Timetable, wait_until
from edgefl.engine.federation.uploads import with_account
from edgefl.engine.federation.work import (
    columns_of_round,
    no_columns_of_devices,
)
from edgefl.engine.records import EventName
from edgefl.engine.selectors import Decider
from edgefl.engine.servers import OverlappingServer
from edgefl.engine.sessions import SessionPolicy


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
        self._timetable = Timetable(rounds.rules.every_s, rounds.rules.pause_s)
        self._counts = Counts()
        self._books = Books(simulation, rounds.cell, rounds.rules)
        self._federation = simulation.federations.of(rounds.seat.label)
        self._attendance = Attendance(simulation, rounds.cell, self._federation, members, self._books)
        self._ending = Ending(simulation.env, policy, self._attendance)
        self._cloud = CloudLink(simulation.cloud, rounds.cell, learner.payload_bits)
        server, self._overlapping = rounds.rules.server, None
        if isinstance(server, OverlappingServer):
            self._overlapping = OverlappingTraining(
                simulation,
                rounds,
                server,
                self._ending,
                self._books,
                self._attendance,
                self._counts,
                self._cloud,
            )
        self._tells_versions = self._overlapping is not None

    def run(self) -> Generator[simpy.Event, None, None]:
        """Run all sessions one after the other, until the duration is over or nobody is left and others are done."""
        self._federation.works()
        reason = "start"
        for number in itertools.count(1):
            if number > (self._policy.count or math.inf):
                break
            self._attendance.session = self._books.session = number
            try:
                if not (yield from self._wait_for_turn(self._simulation.duration_s)):
                    break
                reason = yield from self._run_session(number, reason)
            except Deserted as deserted:
                self._federation.stops(number, deserted.since_s)
                return
        self._federation.finishes()

    def _run_session(self, number: int, reason: str) -> Generator[simpy.Event, None, str]:
        start_s = self._simulation.env.now
        session = OpenSession(
            number, start_s, reason, self._attendance.present(), self._policy.until_s(start_s)
        )
        self._books.event(EventName.SESSION_START, reason)
        ended, selector = "", self._rounds.rules.selector
        try:
            for stage in self._learner.session(
                SessionStart(
                    number,
                    tuple(session.members),
                    self._policy.longest,
                    reports=self._policy.report_bits > 0
                    or (isinstance(selector, Decider) and selector.asks_loss),
                    overlapping=self._overlapping.staleness if self._overlapping else None,
                    norms=isinstance(selector, Decider) and selector.asks_norm,
                    drops=self._rounds.rules.not_finite == "drop",
                )
            ):
                if stage.facts.opening is not None:
                    self._books.open(session, stage.facts.opening)
                run = self._run_stage
                if self._overlapping is not None and stage.facts.rounds is None:
                    run = self._overlapping.run
                ended = yield from run(stage, session)
        except Deserted:
            self._books.event(EventName.SESSION_END, "no_device")
            raise
        self._ending.seen.append(frozenset(session.members))
        self._books.event(EventName.SESSION_END, ended)
        return ended

    def _run_stage(self, stage: Stage, session: OpenSession) -> Generator[simpy.Event, None, str]:
        """Run the stage's rounds, or rounds until the policy or the duration ends the session; return why."""
        facts, done, duration_s = stage.facts, 0, self._simulation.duration_s
        while done != facts.rounds:
            # a session has one round of training, whatever its policy says
            until_s = session.until_s if facts.rounds is None and done else math.inf
            if not (yield from self._wait_for_turn(min(until_s, duration_s))):
                if self._simulation.env.now >= duration_s:
                    return "duration"
                return self._ending.reason(session, done)
            progress = self._ending.progress(session, done) if facts.rounds is None else None
            done += 1
            session.rounds[facts.phase] += 1
            yield from self._round(stage, session, progress)
            if facts.rounds is None and (ended := self._ending.reason_to_end(session, done)):
                return ended
        return ""

    def _round(
        self, stage: Stage, session: OpenSession, progress: float | None
    ) -> Generator[simpy.Event, None, None]:
        """Run one synchronous round."""
        facts, rules, start_s = stage.facts, self._rounds.rules, self._simulation.env.now
        self._simulation.unsettled.release(start_s)  # readers need not wait until this round is over
        if facts.evaluates:  # what follows a probe waits for no time of the grid: training was to begin then
            self._timetable.begun(start_s)
        key = (session.number, facts.phase, session.rounds[facts.phase])
        selection, covered = self._selection(stage, key, session), self._attendance.link_columns()
        self._counts.turn += facts.evaluates
        local = stage.train(selection.ids, key[2], Now(start_s, progress))
        opened, parts = yield from self._rounds.carry_out(selection, local)
        local = with_account(stage, local, parts)
        excess = self._rounds.excess_columns(selection, local, parts)
        if self._rounds.deciding is not None and facts.evaluates:
            self._rounds.deciding.note(local, parts, self._counts.turn - 1)

        arrived = [part.device for part in parts if part.completed]
        aggregated = len(arrived) >= rules.min_updates
        if aggregated:
            if rules.server_s:
                yield self._simulation.env.timeout(rules.server_s)
            stage.aggregate(arrived)
        else:
            self._books.event(EventName.NO_UPDATES, f"{facts.phase} round {key[2]}: {len(arrived)} arrived")
        exchanged = NO_EXCHANGE
        if facts.evaluates:
            exchanged = yield from self._cloud.after_round(stage, aggregated)
            is_new = aggregated or exchanged.version is not None
            self._counts.version += is_new
            session.unchanged += not is_new
        evaluation = stage.evaluate(self._attendance.present()) if facts.evaluates else None
        session.tested(evaluation)
        if self._policy.report_bits and facts.evaluates and arrived:
            session.losses.append(_mean_loss(local, arrived))
        self._books.write(
            RoundDone(
                key,
                self._counts.version,
                start_s,
                selection.large_scale.distances_m,
                local,
                parts,
                [aggregated and part.completed for part in parts],
                opened,
                evaluation,
                aggregated,
                of_round={
                    **covered,
                    **excess,
                    **(columns_of_round((), 0) if self._tells_versions else {}),
                    **self._cloud.columns(exchanged),
                },
                of_devices=no_columns_of_devices(len(parts)) if self._tells_versions else {},
            )
        )
        self._timetable.ended(self._simulation.env.now)

    def _selection(self, stage: Stage, key: RoundKey, session: OpenSession) -> Selection:
        """Select a round's participants: the selector does, or without evaluation, those sampled for the phase."""
        facts, present = stage.facts, self._attendance.present()
        if facts.evaluates:
            return self._rounds.select(key, present, self._counts.turn, told_by(stage))
        there = sorted(set(present).intersection(session.sampled.get(facts.phase, ())))
        if not there:
            session.sampled[facts.phase] = there = self._rounds.sample(facts.share, key, present)
        return self._rounds.of(there, key, present)

    def _wait_for_turn(self, until_s: float) -> Generator[simpy.Event, None, bool]:
        """Wait until the next round may begin and somebody is there; return False at until_s, if it comes first."""
        env, timetable = self._simulation.env, self._timetable
        while True:
            begin_s = max(env.now, timetable.next_s)
            if (stop_s := min(begin_s, until_s)) > env.now:
                yield from wait_until(env, stop_s)
            if env.now < until_s:
                yield from self._attendance.wait_for_links(until_s)
            if env.now >= until_s:
                return False
            if self._attendance.present():
                return True
            yield from self._attendance.wait_for_devices(until_s)
            timetable.resumed(env.now)


def _mean_loss(local: LocalRound, arrived: list[int]) -> float:
    """Return the mean of the losses that arrived; devices without data report none."""
    reported = dict(zip(local.ids, local.scalars[REPORTED_LOSS], strict=True))
    losses = [loss for id_ in arrived if (loss := reported[id_]) is not None]
    return float(np.mean(losses)) if losses else 0.0
