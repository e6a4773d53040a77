"""Training in which rounds overlap: devices begin while others work, and models are made as a policy says."""

import math
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import simpy

from edgefl.contract import Evaluation, Now, Stage, Staleness
from edgefl.engine.air.sent_time import SentTime
from edgefl.engine.federation.attendance import Attendance
from edgefl.engine.federation.books import Books, RoundDone
from edgefl.engine.federation.cloud import CloudLink
from edgefl.engine.federation.deciding import told_by
from edgefl.engine.federation.ending import Ending
from edgefl.engine.federation.open_session import Counts, OpenSession
from edgefl.engine.federation.rounds import Rounds
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.federation.uploads import with_account
from edgefl.engine.federation.work import (
    Dispatch,
    JobDone,
    WorkUnderWay,
    columns_of_devices,
    columns_of_round,
    local_of,
    mean_reported_loss,
)
from edgefl.engine.parts import Part
from edgefl.engine.records import EventName
from edgefl.engine.servers import OverlappingServer, ServerState

# as many jobs per place may end without an update before a model is made of what has arrived
LOST_PER_PLACE = 10


class OverlappingTraining:
    """The training of a cell's sessions where rounds overlap.

    Attributes:
        staleness: what stale updates count in training.
    """

    def __init__(
        self,
        simulation: Simulation,
        rounds: Rounds,
        server: OverlappingServer,
        ending: Ending,
        books: Books,
        attendance: Attendance,
        counts: Counts,
        cloud: CloudLink,
    ) -> None:
        self._simulation, self._rounds, self._server = simulation, rounds, server
        self._ending, self._books, self._attendance, self._counts = ending, books, attendance, counts
        self._cloud = cloud
        ids = range(len(simulation.devices)) if rounds.devices is None else rounds.devices
        of_own = server.tiers([rounds.processors.cost(id_, 1)[0] for id_ in ids])
        # of devices of other federations, which never begin here, any will do
        tiers = dict(zip(ids, of_own, strict=True)) if of_own else {}
        self._tiers = tuple(tiers.get(id_, 0) for id_ in range(len(simulation.devices))) if of_own else ()
        self.staleness: Staleness = replace(server.learning, tiers=self._tiers)

    def run(self, stage: Stage, session: OpenSession) -> Generator[simpy.Event, None, str]:
        """Run training in which rounds overlap, until the policy or the duration ends the session; return why.

        From the session's `until_s` on nobody begins, and what is under way makes its last model.
        """
        env, server, work = self._simulation.env, self._server, WorkUnderWay(self._simulation.env)
        done, dispatches, since_s, parts = 0, 0, env.now, list[Part]()
        sent, covered = SentTime(), self._attendance.link_columns()
        while True:
            work.collect()
            work.drop_stale(self._counts.version, server.takes)
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
                exchanged = yield from self._cloud.after_round(stage, aggregated)
                is_new = aggregated or exchanged.version is not None
                self._counts.version += is_new
                session.unchanged += not is_new
                evaluation = stage.evaluate(self._attendance.present())
                session.tested(evaluation)
                ended = self._ending.reason_to_end(session, done)
                if not ended and env.now >= until_s:
                    ended = (
                        "duration"
                        if env.now >= self._simulation.duration_s
                        else self._ending.reason(session, done)
                    )
                if ended:
                    yield from work.stop()
                parts += self._book_model(
                    stage,
                    session,
                    work,
                    since_s,
                    evaluation,
                    aggregated,
                    sent,
                    {**covered, **self._cloud.columns(exchanged)},
                )
                since_s, covered = env.now, self._attendance.link_columns()
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
                        "duration"
                        if env.now >= self._simulation.duration_s
                        else self._ending.reason(session, done)
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
        key, turn = (session.number, phase, number), self._counts.turn
        selection = self._rounds.choose(key, idle, turn, room, told_by(stage))
        self._counts.turn += 1
        progress = self._ending.progress(session, done)
        local = stage.train(selection.ids, number, Now(now_s, progress, session.rounds[phase]))
        opened, processes = self._rounds.begin(selection, local)
        distances_m = selection.large_scale.distances_m.tolist()
        return Dispatch(number, self._counts.version, now_s, distances_m, local, opened), processes

    def _make_model(
        self, stage: Stage, session: OpenSession, work: WorkUnderWay, ready: list[JobDone]
    ) -> Generator[simpy.Event, None, None]:
        """Have updates that wait aggregated; none: all that wait are too few, and lost."""
        if not ready:
            where = f"{stage.facts.phase} round {session.rounds[stage.facts.phase]}"
            self._books.event(EventName.NO_UPDATES, f"{where}: {len(work.arrived)} arrived")
            work.give_up()
            return
        if self._rounds.rules.server_s:
            yield self._simulation.env.timeout(self._rounds.rules.server_s)
        stage.aggregate(work.take(ready, self._counts.version))
        if self._ending.hears_losses:
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
        further: dict[str, Any],
    ) -> list[Part]:
        """Write the rows of all that has ended since the last model; return these parts."""
        done, phase = work.settle(), stage.facts.phase
        parts = [one.part for one in done]
        local = with_account(stage, local_of(done), parts)
        self._books.write(
            RoundDone(
                (session.number, phase, session.rounds[phase]),
                self._counts.version,
                start_s,
                [one.job.dispatch.distances_m[one.job.position] for one in done],
                local,
                parts,
                [one.taken for one in done],
                done[-1].job.dispatch.opened,
                evaluation,
                aggregated,
                [one.job.dispatch.start_s for one in done],
                sent,
                {**columns_of_round(done, len(work.working)), **further},
                columns_of_devices(done),
            )
        )
        if self._rounds.deciding is not None and done:
            self._rounds.deciding.note(local, parts, self._counts.turn - 1)
        sent.forget(work.earliest_s())
        return parts
