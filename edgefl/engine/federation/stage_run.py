"""Run one stage of a session: dispatch devices, wait for their updates, and make models, round by round."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, cast

import simpy

from edgefl.config.answers import wrong
from edgefl.contract import Now, Stage, WeighingStage
from edgefl.engine.federation.made import Made
from edgefl.engine.federation.open_session import OpenSession
from edgefl.engine.federation.rounds import Selection
from edgefl.engine.federation.server_context import ServerContext
from edgefl.engine.federation.timetable import wait_until
from edgefl.engine.federation.work import (
    Dispatch,
    JobDone,
    WorkUnderWay,
    local_of,
    mean_reported_loss,
)
from edgefl.engine.parts import Part
from edgefl.engine.records import EventName
from edgefl.engine.servers import ServerPolicy, ServerState
from edgefl.engine.servers.synchronous import Synchronous

# jobs per present device that may end without an update before a model is made from the updates that arrived
LOST_PER_PLACE = 10


@dataclass(frozen=True)
class _Group:
    """A tier or, without tiers, all devices: state as the policy sees it, devices present, and waiting updates."""

    state: ServerState
    there: list[int]
    arrived: list[JobDone]


class StageRun:
    """A stage under way; its rounds follow one another, or overlap if devices are dispatched while others work.

    A stage with a fixed number of rounds runs them one after the other, regardless of the server policy.
    """

    def __init__(self, server: ServerContext, stage: Stage, session: OpenSession) -> None:
        self._server, self._stage, self._session = server, stage, session
        self._facts, self._env, self._rules = stage.facts, server.simulation.env, server.rounds.rules
        self._policy: ServerPolicy = self._rules.server if self._facts.rounds is None else Synchronous()
        # whether devices may be dispatched while others work
        self._overlaps = self._policy.learning is not None
        self._work = WorkUnderWay(self._env)
        self._done, self._wanted = 0, 0
        self._since_s = self._env.now
        self._uncounted = list[Part]()

    def run(self) -> Generator[simpy.Event, None, str]:
        """Run the stage; return the reason why the session ends with this stage, or '' if the session goes on."""
        while self._done != self._facts.rounds:
            if self._work.is_over:
                turn = self._server.turn(self._until_s, links=not self._overlaps)
                if not (yield from turn):
                    return self._why_over()
            groups = self._look()
            begin = self._who_may_begin(groups)
            ready = self._ready(groups, stands_still=not (self._work.working or begin))
            if ready is not None:
                if ended := (yield from self._make_model(ready)):
                    return ended
            elif begin:
                yield from self._begin(begin)
            else:
                yield from self._wait()
        return ""

    @property
    def _until_s(self) -> float:
        """Time from which no device is dispatched; every session has at least one round of training."""
        until_s = self._session.until_s if self._facts.rounds is None and self._done else math.inf
        return min(until_s, self._server.simulation.duration_s)

    def _why_over(self) -> str:
        """Return the reason why the stage dispatches no more devices."""
        if self._env.now >= self._server.simulation.duration_s:
            return "duration"
        return self._server.ending.reason(self._session, self._done)

    def _look(self) -> list[_Group]:
        """Collect finished jobs; return each group of devices as the policy sees it."""
        server, work = self._server, self._work
        work.collect()
        work.drop_stale(server.counts.version, self._policy.takes)
        # without overlap, no device is dispatched before this round is over
        present = server.attendance.present() if self._overlaps or work.is_over else []
        tiers = server.rounds.tiers if self._overlaps else ()
        if not tiers:
            return [self._group(present, len(work.working), work.arrived, len(work.ended))]
        return [
            self._group(
                [id_ for id_ in present if tiers[id_] == tier],
                sum(tiers[job.device] == tier for job in work.working.values()),
                [done for done in work.arrived if tiers[done.device] == tier],
                sum(tiers[done.device] == tier for done in work.ended),
            )
            for tier in sorted({*tiers, 0})
        ]

    def _group(self, there: list[int], working: int, arrived: list[JobDone], lost: int) -> _Group:
        places = self._server.rounds.places(self._policy, len(there))
        state = ServerState(places, working, len(arrived), self._since_s, self._env.now, lost)
        return _Group(state, there, arrived)

    def _who_may_begin(self, groups: list[_Group]) -> list[tuple[int, list[int]]]:
        """Return the number of devices to dispatch now, and the idle devices to choose from, for each group."""
        if self._env.now >= self._until_s:
            return []
        room_in = self._policy.room
        rooms = [(room, group.there) for group in groups if (room := _counted(room_in, room_in(group.state)))]
        if self._work.is_over:
            return [(room, there) for room, there in rooms if there]
        busy = self._work.busy
        idle = [(room, [id_ for id_ in there if id_ not in busy]) for room, there in rooms]
        return [(room, ids) for room, ids in idle if ids]

    def _ready(self, groups: list[_Group], *, stands_still: bool) -> list[JobDone] | None:
        """Return the updates for a model that is due now, possibly too few to aggregate; None if no model is due."""
        work, present = self._work, sum(len(group.there) for group in groups)
        stuck = stands_still or work.lost > LOST_PER_PLACE * max(1, present)
        ready_of = self._policy.ready
        ready = next(
            (of.arrived[:many] for of in groups if (many := _counted(ready_of, ready_of(of.state)))), []
        )
        if stuck and not ready:
            ready = next((of.arrived for of in groups if of.arrived), [])
        enough = len(ready) >= self._rules.min_updates
        return ready if enough or (stuck and (work.ended or work.arrived)) else None

    def _begin(self, begin: list[tuple[int, list[int]]]) -> Generator[simpy.Event, None, None]:
        """Dispatch idle devices with the current model."""
        server, facts, now_s, work = self._server, self._facts, self._env.now, self._work
        server.simulation.open_tails.release(now_s)  # so that the tables are up to date during this round
        if facts.evaluates:  # a probe sets no next start, since the training round after it begins at once
            server.timetable.begun(now_s)
        if work.is_over:
            self._since_s = now_s
            server.attendance.count_links()
        for room, idle in begin:
            self._session.dispatches[facts.phase] += 1
            number = self._session.dispatches[facts.phase]
            selection = self._selection(number, room, idle)
            server.counts.turn += facts.evaluates
            local = self._stage.train(selection.ids, number, self._moment())
            opened, tasks = server.rounds.begin(selection, local)
            self._wanted = 0 if self._overlaps else selection.wanted
            dispatch = Dispatch(number, server.counts.version, now_s, local, selection.large_scale, opened)
            plan = None if self._overlaps else server.rounds.planned(selection, opened, tasks)
            if plan is None:
                work.begin(dispatch, server.rounds.start(opened, tasks))
            else:  # the fast path of an undisturbed round
                parts, end_s = plan
                yield from wait_until(self._env, end_s)
                work.end(dispatch, parts)

    def _selection(self, number: int, room: int, idle: list[int]) -> Selection:
        """Select the devices to dispatch: by the selector, or by sampling in a phase without evaluation."""
        server, facts, sampled = self._server, self._facts, self._session.sampled
        key = (self._session.number, facts.phase, number)
        if facts.evaluates:
            busy = sorted(self._work.busy.keys() & server.attendance.present())
            return server.rounds.choose(key, idle, server.counts.turn, room, self._stage, busy)
        there = sorted(set(idle).intersection(sampled.get(facts.phase, ())))
        if not there:
            sampled[facts.phase] = there = server.rounds.sample(facts.share, key, idle)
        return server.rounds.of(there, key, idle)

    def _moment(self) -> Now:
        """Return the current time and the session's progress, which are passed to the learner with a dispatch."""
        session, of_training = self._session, self._facts.rounds is None
        progress = self._server.ending.progress(session, self._done) if of_training else None
        return Now(self._env.now, progress, session.rounds[self._facts.phase] if self._overlaps else None)

    def _wait(self) -> Generator[simpy.Event, None, None]:
        """Wait for a finished job, a new device or the policy's next check; without overlap, until the round ends."""
        env, looks_s, deadline_s = self._env, self._policy.looks_s(self._since_s), self._rules.deadline_s
        events: list[simpy.Event] = [self._work.next_end(self._wanted)]
        if env.now < looks_s < math.inf:
            events.append(env.timeout(looks_s - env.now))
        if deadline_s is not None:
            events.append(env.timeout(deadline_s))
        if self._overlaps and env.now < self._until_s:
            events.append(self._server.simulation.network.arrival(self._server.rounds.cell))
        yield env.any_of(events)
        if not self._overlaps:
            yield from self._work.cut_off(self._wanted)

    def _make_model(self, ready: list[JobDone]) -> Generator[simpy.Event, None, str | None]:
        """Make a model unless there are too few updates; book finished jobs; return why the session ends, or None."""
        server, stage, facts, session = self._server, self._stage, self._facts, self._session
        self._done += 1
        session.rounds[facts.phase] += 1
        aggregated = yield from self._aggregate(ready)
        exchanged = None
        if facts.evaluates:
            if server.exchange is not None:
                exchanged = yield from server.exchange(stage, aggregated)
            is_new = aggregated or (exchanged is not None and exchanged.is_new)
            server.counts.version += is_new
            session.unchanged += not is_new
        evaluation = stage.evaluate(server.attendance.present()) if facts.evaluates else None
        session.tested(evaluation)
        if facts.evaluates and ready and server.ending.hears_losses:
            session.losses.append(mean_reported_loss(ready))
        if ended := self._reason_to_end():
            yield from self._work.cut_off()
            self._work.give_up()
        jobs = self._work.settle()
        made = Made(
            key=(session.number, facts.phase, session.rounds[facts.phase]),
            facts=facts,
            turn=server.counts.turn,
            version=server.counts.version,
            start_s=self._since_s,
            jobs=jobs,
            local=local_of(jobs, stage),
            working=len(self._work.working),
            busy=self._work.busy,
            overlaps=self._overlaps,
            unbooked_s=self._work.earliest_s(),
            evaluation=evaluation,
            aggregated=aggregated,
            exchanged=exchanged,
        )
        self._book(made)
        return ended

    def _reason_to_end(self) -> str | None:
        """Return the reason why the session ends after the latest model, or None if it goes on."""
        if self._facts.rounds is not None:
            return None
        reason = self._server.ending.reason_to_end(self._session, self._done)
        return reason or (self._why_over() if self._env.now >= self._until_s else None)

    def _aggregate(self, ready: list[JobDone]) -> Generator[simpy.Event, None, bool]:
        """Aggregate updates, or count them as lost if there are too few; return whether any were aggregated."""
        server, phase = self._server, self._facts.phase
        if len(ready) < self._rules.min_updates:
            detail = f"{phase} round {self._session.rounds[phase]}: {len(self._work.arrived)} arrived"
            server.books.event(self._session.number, EventName.NO_UPDATES, detail)
            self._work.give_up()
            return False
        if self._rules.server_s:
            yield self._env.timeout(self._rules.server_s)
        ids = self._work.take(ready, server.counts.version)
        arrives = {done.device: done.part.uplink.arrives for done in ready if done.part.uplink is not None}
        weights = self._policy.weights([arrives[id_] for id_ in ids])
        if weights is None:
            self._stage.aggregate(ids)
        else:
            cast(WeighingStage, self._stage).aggregate(ids, weights)
        return True

    def _book(self, made: Made) -> None:
        """Write the rows of a model; devices that are still working count towards the next model."""
        server, work = self._server, self._work
        server.books.write(made)
        self._uncounted += made.parts
        server.timetable.ended(self._env.now)
        if work.is_over:  # overlapping parts share the band, so count them together
            server.simulation.radio.efficiency.count(self._uncounted, made.opened.links.share)
            self._uncounted = []
        else:
            self._since_s = self._env.now
            server.attendance.count_links()


def _counted(method: Callable[..., int], answer: Any) -> int:
    """Check that a server policy returned a number of devices or updates, and return it."""
    if not (isinstance(answer, Integral) and int(answer) >= 0):
        raise wrong(method, answer, "an integer of at least 0", "rounds", "server")
    return int(answer)
