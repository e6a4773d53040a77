"""The server of one cell: opens sessions, runs their stages round by round, has arrived updates aggregated."""

import itertools
import math
from collections.abc import Callable, Collection, Generator
from dataclasses import replace

import numpy as np
import simpy

from edgefl.contract import (
    REPORTED_LOSS,
    Evaluation,
    Learner,
    LocalRound,
    Now,
    SessionStart,
    Stage,
    StageFacts,
)
from edgefl.engine.attendance import Attendance, Deserted
from edgefl.engine.books import Books, RoundDone
from edgefl.engine.federations import Stop
from edgefl.engine.gains import RoundKey
from edgefl.engine.open_session import OpenSession
from edgefl.engine.parts import Part
from edgefl.engine.records import EventName
from edgefl.engine.rounds import Rounds, Selection
from edgefl.engine.sent_time import SentTime
from edgefl.engine.servers import OverlappingServer, ServerState
from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.engine.simulation import Simulation
from edgefl.engine.timetable import Timetable, wait_until
from edgefl.engine.work import (
    Dispatch,
    JobDone,
    WorkUnderWay,
    columns_of_devices,
    columns_of_round,
    local_of,
    mean_reported_loss,
    no_columns_of_devices,
)
from edgefl.errors import EdgeflError

# as many jobs per place may end without an update before a model is made of what has arrived
LOST_PER_PLACE = 10


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
        self._seen: list[frozenset[int]] = []  # first members of the sessions so far
        self._turn = 0  # rounds of the global model so far
        self._version = 0  # global models made so far
        server = rounds.rules.server
        self._overlapping = server if isinstance(server, OverlappingServer) else None
        kinds = range(len(simulation.devices)) if self._overlapping else ()
        seconds = [rounds.processors.cost(id_, 1)[0] for id_ in kinds]
        self._tiers = self._overlapping.tiers(seconds) if self._overlapping else ()
        self._books = Books(simulation, rounds.cell, rounds.rules)
        self._attendance = Attendance(simulation, rounds.cell, members, self._books)

    def run(self) -> Generator[simpy.Event, None, None]:
        """Run all sessions one after the other, until the duration is over or nobody is left and others are done."""
        cell, federations = self._rounds.cell, self._simulation.federations
        federations.works(cell)
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
                federations.stopped.append(Stop(cell, number, deserted.since_s))
                return
        federations.finishes(cell)

    def _run_session(self, number: int, reason: str) -> Generator[simpy.Event, None, str]:
        start_s = self._simulation.env.now
        session = OpenSession(
            number, start_s, reason, self._attendance.present(), self._policy.until_s(start_s)
        )
        self._books.event(EventName.SESSION_START, reason)
        ended = ""
        try:
            for stage in self._learner.session(
                SessionStart(
                    number,
                    tuple(session.members),
                    self._policy.longest,
                    reports=self._policy.report_bits > 0,
                    overlapping=replace(self._overlapping.learning, tiers=self._tiers)
                    if self._overlapping
                    else None,
                )
            ):
                if stage.facts.opening is not None:
                    self._books.open(session, stage.facts.opening)
                overlaps = self._overlapping is not None and stage.facts.rounds is None
                run = self._run_overlapping if overlaps else self._run_stage
                ended = yield from run(stage, session)
        except Deserted:
            self._books.event(EventName.SESSION_END, "no_device")
            raise
        self._seen.append(frozenset(session.members))
        self._books.event(EventName.SESSION_END, ended)
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
            frozenset(self._attendance.present()),
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
        selection, covered = self._selection(facts, key, session), self._attendance.coverage_columns()
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
            self._books.event(EventName.NO_UPDATES, f"{facts.phase} round {key[2]}: {len(arrived)} arrived")
        evaluation = stage.evaluate(self._attendance.present()) if facts.evaluates else None
        if self._policy.report_bits and facts.evaluates and arrived:
            session.losses.append(_mean_loss(local, arrived))
        self._books.write(
            RoundDone(
                key,
                self._version,
                start_s,
                selection.large_scale.distances_m,
                local,
                parts,
                [aggregated and part.completed for part in parts],
                opened,
                evaluation,
                aggregated,
                of_round={**covered, **(columns_of_round((), 0) if self._overlapping else {})},
                of_devices=no_columns_of_devices(len(parts)) if self._overlapping else {},
            )
        )
        self._timetable.ended(self._simulation.env.now)

    def _run_overlapping(self, stage: Stage, session: OpenSession) -> Generator[simpy.Event, None, str]:
        """Run training in which rounds overlap, until the policy or the duration ends the session; return why.

        From the session's `until_s` on nobody begins, and what is under way makes its last model.
        """
        env, server, work = self._simulation.env, self._overlapping, WorkUnderWay(self._simulation.env)
        assert server is not None
        done, dispatches, since_s, parts = 0, 0, env.now, list[Part]()
        sent, covered = SentTime(), self._attendance.coverage_columns()
        while True:
            work.collect()
            work.drop_stale(self._version, server.takes)
            until_s = min(session.until_s if done else math.inf, self._simulation.duration_s)
            present = self._attendance.present()
            tiers = [self._tier(tier, work, present, since_s) for tier in sorted({*self._tiers, 0})]
            begin = [(room, ids) for state, ids, _ in tiers if (room := server.room(state)) and ids]
            if env.now >= until_s:
                begin = []
            stuck = not (work.working or begin) or work.lost > LOST_PER_PLACE * max(1, len(present))
            ready = next((arrived[:n] for state, _, arrived in tiers if (n := server.ready(state))), [])
            if stuck and not ready:
                ready = next((arrived for _, _, arrived in tiers if arrived), [])
            if len(ready) >= self._rounds.rules.min_updates or (stuck and (work.ended or work.arrived)):
                done += 1
                session.rounds[stage.facts.phase] += 1
                aggregated = len(ready) >= self._rounds.rules.min_updates
                yield from self._make_model(stage, session, work, ready if aggregated else [])
                evaluation = stage.evaluate(self._attendance.present())
                ended = self._policy.reason_to_end(self._state(session, done))
                if not ended and env.now >= until_s:
                    ended = (
                        "duration" if env.now >= self._simulation.duration_s else self._reason(session, done)
                    )
                if ended:
                    yield from work.stop()
                parts += self._book_model(
                    stage, session, work, since_s, evaluation, aggregated, sent, covered
                )
                since_s, covered = env.now, self._attendance.coverage_columns()
                if ended:
                    self._simulation.radio.efficiency.count(parts, {})
                    return ended
                continue
            if begin:
                since_s = env.now if work.is_over else since_s
                for room, ids in begin:
                    dispatches += 1
                    work.begin(*self._dispatch(stage, session, dispatches, ids, room, done))
            elif not work.working:
                if env.now >= until_s:
                    self._simulation.radio.efficiency.count(parts, {})
                    return (
                        "duration" if env.now >= self._simulation.duration_s else self._reason(session, done)
                    )
                yield from self._attendance.wait_for_devices(until_s)
                continue
            events = [work.next_end()]
            if env.now < until_s:
                events.append(self._simulation.network.arrival(self._rounds.cell))
            if env.now < (looks_s := server.looks_s(since_s)) < math.inf:
                events.append(env.timeout(looks_s - env.now))
            yield env.any_of(events)

    def _tier(
        self, tier: int, work: WorkUnderWay, present: list[int], since_s: float
    ) -> tuple[ServerState, list[int], list[JobDone]]:
        """Return what the policy may know of a tier, or of all without tiers, who of it is idle, and what waits."""

        def mine(device: int) -> bool:
            return not self._tiers or self._tiers[device] == tier

        there, busy = [id_ for id_ in present if mine(id_)], work.busy
        arrived = [done for done in work.arrived if mine(done.job.device)]
        working = sum(mine(job.device) for job in work.working.values())
        places = self._rounds.places(len(there))
        state = ServerState(places, working, len(arrived), since_s, self._simulation.env.now)
        return state, [id_ for id_ in there if id_ not in busy], arrived

    def _dispatch(
        self, stage: Stage, session: OpenSession, number: int, idle: list[int], room: int, done: int
    ) -> tuple[Dispatch, list[simpy.Process]]:
        """Let some of those who are idle begin, from today's model."""
        now_s, phase = self._simulation.env.now, stage.facts.phase
        selection = self._rounds.choose((session.number, phase, number), idle, self._turn, room)
        self._turn += 1
        progress = self._policy.progress(self._state(session, done))
        local = stage.train(selection.ids, number, Now(now_s, progress, session.rounds[phase]))
        opened, processes = self._rounds.begin(selection, local)
        distances_m = selection.large_scale.distances_m.tolist()
        return Dispatch(number, self._version, now_s, distances_m, local, opened), processes

    def _make_model(
        self, stage: Stage, session: OpenSession, work: WorkUnderWay, ready: list[JobDone]
    ) -> Generator[simpy.Event, None, None]:
        """Have updates that wait aggregated; none: all that wait are too few, and lost."""
        if not ready:
            session.unchanged += 1
            where = f"{stage.facts.phase} round {session.rounds[stage.facts.phase]}"
            self._books.event(EventName.NO_UPDATES, f"{where}: {len(work.arrived)} arrived")
            work.give_up()
            return
        if self._rounds.rules.server_s:
            yield self._simulation.env.timeout(self._rounds.rules.server_s)
        stage.aggregate(work.take(ready, self._version))
        self._version += 1
        if self._policy.report_bits:
            session.losses.append(mean_reported_loss(work.ended))

    def _book_model(
        self,
        stage: Stage,
        session: OpenSession,
        work: WorkUnderWay,
        start_s: float,
        evaluation: Evaluation | None,
        aggregated: bool,
        sent: SentTime,
        covered: dict[str, int],
    ) -> list[Part]:
        """Write the rows of all that has ended since the last model; return these parts."""
        done, phase = work.settle(), stage.facts.phase
        parts = [one.part for one in done]
        self._books.write(
            RoundDone(
                (session.number, phase, session.rounds[phase]),
                self._version,
                start_s,
                [one.job.dispatch.distances_m[one.job.position] for one in done],
                local_of(done),
                parts,
                [one.taken for one in done],
                done[-1].job.dispatch.opened,
                evaluation,
                aggregated,
                [one.job.dispatch.start_s for one in done],
                sent,
                {**covered, **columns_of_round(done, len(work.working))},
                columns_of_devices(done),
            )
        )
        sent.forget(work.earliest_s())
        return parts

    def _selection(self, facts: StageFacts, key: RoundKey, session: OpenSession) -> Selection:
        """Select a round's participants: the selector does, or without evaluation, those sampled for the phase."""
        present = self._attendance.present()
        if facts.evaluates:
            return self._rounds.select(key, present, self._turn)
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
