"""The server of one cell, which opens sessions and runs their stages."""

import itertools
import math
from collections.abc import Generator, Sequence

import simpy

from edgefl.contract import Learner, SessionStart
from edgefl.engine.federation.attendance import Attendance, Deserted
from edgefl.engine.federation.books import Books
from edgefl.engine.federation.ending import Ending, Stopped, StopSettings
from edgefl.engine.federation.made import Exchange, Observer
from edgefl.engine.federation.open_session import Counts, OpenSession
from edgefl.engine.federation.rounds import Rounds
from edgefl.engine.federation.server_context import ServerContext
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.federation.stage_run import StageRun
from edgefl.engine.federation.timetable import Timetable
from edgefl.engine.records import EventName
from edgefl.engine.sessions import SessionPolicy


class Server:
    """The server of one federation in its cell.

    Args:
        observers: functions that return additional columns of each round.
        exchange: called after each round of the global model; None if models stay in the cell.
        stop: scores that end the run in this cell; None if no score ends it.
    """

    def __init__(
        self,
        simulation: Simulation,
        rounds: Rounds,
        *,
        learner: Learner,
        policy: SessionPolicy,
        attendance: Attendance,
        observers: Sequence[Observer] = (),
        exchange: Exchange | None = None,
        stop: StopSettings | None = None,
    ) -> None:
        self._learner, self._policy = learner, policy
        self._context = ServerContext(
            simulation=simulation,
            rounds=rounds,
            books=Books(simulation, rounds.cell, rounds.rules, observers),
            attendance=attendance,
            ending=Ending(simulation.env, policy, attendance, stop),
            timetable=Timetable(rounds.rules.every_s, rounds.rules.pause_s),
            counts=Counts(),
            exchange=exchange,
        )

    @property
    def stopped(self) -> Stopped | None:
        """How scores ended the server's run, or None if they have not ended it."""
        return self._context.ending.stopped

    def run(self) -> Generator[simpy.Event, None, None]:
        """Run sessions until their count or the duration is reached, scores end the run, or devices stay away."""
        federations, label = self._context.simulation.federations, self._context.attendance.label
        federations.works(label)
        reason = "start"
        for number in itertools.count(1):
            if self.stopped or number > (self._policy.count or math.inf):
                break
            self._context.attendance.session = number
            try:
                if not (yield from self._context.turn(self._context.simulation.duration_s)):
                    break
                reason = yield from self._run_session(number, reason)
            except Deserted as deserted:
                federations.stops(label, number, deserted.since_s)
                return
        federations.finishes(label)

    def _run_session(self, number: int, reason: str) -> Generator[simpy.Event, None, str]:
        its, ended = self._context, ""
        start_s, reports = its.simulation.env.now, its.rounds.reports
        session = OpenSession(
            number, start_s, reason, its.attendance.present(), self._policy.until_s(start_s)
        )
        its.books.event(number, EventName.SESSION_START, reason)
        start = SessionStart(
            number,
            tuple(session.members),
            self._policy.longest,
            reports=reports.loss,
            overlapping=its.rounds.rules.server.staleness_of(its.rounds.tiers),
            norms=reports.norm,
            drops=its.rounds.rules.not_finite == "drop",
        )
        try:
            for stage in self._learner.session(start):
                if stage.facts.opening is not None:
                    its.books.open(session, stage.facts.opening)
                ended = yield from StageRun(its, stage, session).run()
        except Deserted:
            its.books.event(number, EventName.SESSION_END, "no_device")
            raise
        its.ending.seen.append(frozenset(session.members))
        its.books.event(number, EventName.SESSION_END, ended)
        return ended
