"""A server that aggregates whenever some updates have arrived while other devices go on, as FedBuff's does.

It is a throw-away: it shows that rounds may overlap, and what then still holds. `concurrency` devices work at a time,
`buffer` arrived updates make a model (Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation,
AISTATS 2022, without weights by staleness).
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import simpy
from safetensors.torch import load_file

from edgefl import load_scenario
from edgefl.contract import BEGIN, Evaluation, LocalRound, Now, SessionStart, Stage
from edgefl.engine.parts import Cause, DeviceTask, Part
from edgefl.engine.radio_round import RadioRound
from edgefl.engine.records import DeviceRound, Round
from edgefl.engine.server import OpenSession, Server
from edgefl.run.composition import compose
from edgefl.run.plan import prepare
from edgefl.run_directory.journal import FOLDER, Journal
from edgefl.run_directory.replay import JournaledLearner
from edgefl.run_directory.snapshot import Every
from edgefl.testing.cell import Rows, SmallWorld, small_world

DEVICES, SESSIONS, MODELS = 12, 2, 12


@dataclass(frozen=True)
class Work:
    """What one device has been sent to do: in which round on the radio, and how far away it was then."""

    device: int
    opened: RadioRound
    distance_m: float


class BufferedServer(Server):
    """A server whose rounds overlap."""

    def __init__(self, like: Server, concurrency: int, buffer: int) -> None:
        super().__init__(
            like._simulation, like._rounds, learner=like._learner, policy=like._policy, members=like._members
        )
        self.concurrency, self.buffer = concurrency, buffer

    def _run_stage(self, stage: Stage, session: OpenSession) -> Generator[simpy.Event, None, str]:
        env, phase = self._simulation.env, stage.facts.phase
        working: dict[simpy.Process, Work] = {}
        ended: list[tuple[Work, Part]] = []
        began_s, done, dispatches = env.now, 0, 0
        while True:
            arrived = sorted(part.device for _, part in ended if part.completed)
            if len(arrived) >= self.buffer:
                done += 1
                session.rounds[phase] += 1
                stage.aggregate(arrived)
                self._version += 1
                evaluation = stage.evaluate(self._present())
                self._book_ended((session.number, phase, done), began_s, ended, evaluation)
                began_s, arrived, ended = env.now, [], []
                if reason := self._policy.reason_to_end(self._state(session, done)):
                    for process in working:
                        process.interrupt(Cause.SURPLUS)
                    yield env.all_of(list(working))
                    return reason
            # a device whose update waits in the buffer has not begun anew, so its id names the update
            busy = {work.device for work in working.values()}.union(arrived)
            idle = [id_ for id_ in self._present() if id_ not in busy]
            if idle and (free := self.concurrency - len(busy)) > 0:
                dispatches += 1
                progress = self._policy.progress(self._state(session, done))
                key = (session.number, phase, dispatches)
                working |= self._dispatch(stage, key, idle, free, Now(env.now, progress))
            yield env.any_of(list(working))
            over = [process for process in working if not process.is_alive]
            ended += [(working.pop(process), process.value) for process in over]

    def _dispatch(
        self, stage: Stage, key: tuple[int, str, int], idle: Sequence[int], free: int, now: Now
    ) -> dict[simpy.Process, Work]:
        simulation, rounds = self._simulation, self._rounds
        chosen = rounds.select(key, idle, key[2])
        ids = chosen.ids[:free]
        large_scale, local = chosen.large_scale.of(ids), stage.train(ids, key[2], now)
        bits = {"downlink": local.down_bits, "uplink": local.up_bits}
        opened = simulation.radio.open_round(large_scale, rounds.cell, bits)
        columns = (opened, local.down_bits, local.up_bits, local.iterations, local.samples)
        return {
            simulation.devices[link.device].start(DeviceTask(*task), link, rounds.processors): Work(
                link.device, opened, float(distance_m)
            )
            for distance_m, (link, *task) in zip(
                large_scale.distances_m, zip(*columns, strict=True), strict=True
            )
        }

    def _book_ended(
        self,
        key: tuple[int, str, int],
        began_s: float,
        ended: list[tuple[Work, Part]],
        evaluation: Evaluation | None,
    ) -> None:
        ended = sorted(ended, key=lambda pair: pair[0].device)
        ids = [work.device for work, _ in ended]
        large_scale: Any = SimpleNamespace(distances_m=np.array([work.distance_m for work, _ in ended]))
        selection: Any = SimpleNamespace(ids=ids, large_scale=large_scale)
        local = LocalRound(tuple(ids), (), (), (), ())
        parts = [part for _, part in ended]
        self._book(key, began_s, selection, local, ended[-1][0].opened, parts, evaluation, True, {})


class Overlapping:
    """A learner whose sessions may overlap; `after` is told of each training and aggregation that is done."""

    def __init__(self, learner: Any, after: Callable[[str], None]) -> None:
        self.flops_per_sample, self.payload_bits = learner.flops_per_sample, learner.payload_bits
        self._learner, self._after = learner, after

    def session(self, start: SessionStart) -> Iterator[Stage]:
        for stage in self._learner.session(replace(start, overlapping=True)):
            yield OverlappingStage(stage, self._after)


class OverlappingStage:
    def __init__(self, stage: Stage, after: Callable[[str], None]) -> None:
        self._stage, self._after, self.facts = stage, after, stage.facts
        self.evaluate = stage.evaluate

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        local = self._stage.train(ids, round_, now)
        self._after("train")
        return local

    def aggregate(self, ids: Sequence[int]) -> None:
        self._stage.aggregate(ids)
        self._after("aggregate")


def table(rows: Rows) -> list[dict[str, Any]]:
    """All columns of rounds and devices."""
    return [vars(row) for kind in (Round, DeviceRound) for row in rows.of[kind]]


def scripted_world() -> SmallWorld:
    return small_world(
        [20.0 + 20.0 * k for k in range(8)],
        policy={"name": "schedule", "count": 2, "rounds": 4},
        radio={"sharing": "dynamic", "scheduler": "round_robin"},
    )


def serve(world: SmallWorld, concurrency: int, buffer: int) -> Rows:
    world.env.run(until=world.env.process(BufferedServer(world.server, concurrency, buffer).run()))
    return world.rows


def train(
    algorithm: str,
    buffered: tuple[int, int] | None = None,
    *,
    path: Path | None = None,
    after: Callable[[str], None] = lambda call: None,
) -> Rows:
    """Run digits with the synchronous server, or a buffered one; with a journal if it has a place for one."""
    scenario = load_scenario(
        {
            "name": "buffered",
            "seed": 3,
            "devices": {"count": DEVICES},
            "radio": {
                "preset": "journal",
                "sharing": "dynamic",
                "scheduler": "round_robin",
                "bandwidth_hz": 2e7,
            },
            "sessions": {"name": "schedule", "count": SESSIONS, "rounds": MODELS},
            "learning": {
                "dataset": "digits",
                "model": "logistic",
                "partition": "iid",
                "algorithm": algorithm,
                "lr": 0.01,
                "batch": 16,
                "flops_per_sample": 1000,
            },
        }
    )
    plan, rows = prepare(scenario, device="cpu", threads=1), Rows()
    learner = plan.learners[0]
    if path is not None:
        path.mkdir(exist_ok=True)
        assert plan.training is not None
        here, state = {"edgefl": "this one"}, plan.training.state
        journal = Journal(path, here, state, every=Every(rounds=2), on_note=pytest.fail)
        learner = JournaledLearner(learner, 0, journal)
    simulation, servers = compose(
        plan.world, plan.radio, rows, {0: Overlapping(learner, after) if buffered else learner}
    )
    server = BufferedServer(servers[0], *buffered) if buffered else servers[0]
    process = simulation.env.process(server.run())
    if path is None:
        simulation.env.run(until=process)
    else:
        with journal:
            simulation.env.run(until=process)
    return rows


def test_a_buffer_of_all_devices_is_the_synchronous_server() -> None:
    assert table(serve(scripted_world(), 8, 8)) == table(scripted_world().run().rows)


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_a_buffer_of_all_devices_trains_as_the_synchronous_server(algorithm: str) -> None:
    rows = train(algorithm)
    assert len(rows.of[Round]) == SESSIONS * MODELS
    assert table(train(algorithm, (DEVICES, DEVICES))) == table(rows)


def test_rounds_overlap() -> None:
    """With two of six at a time nobody waits for the slowest: models come faster, each of two updates."""
    world = scripted_world()
    rows = serve(world, 6, 2)
    taken = [call[1] for call in world.learner.calls if call[0] == "aggregate"]
    assert {len(ids) for ids in taken} == {2}
    assert rows.of[Round][-1].end_s < scripted_world().run().rows.of[Round][-1].end_s


def test_training_works_with_several_rounds_on_their_way() -> None:
    """Chance is a tenth; the updates are stale, as the model moves on while devices train."""
    accuracy = [row.accuracy for row in train("fedavg", (8, 3)).of[Round]]
    for session in (accuracy[:MODELS], accuracy[MODELS:]):
        assert session[-1] > session[0] + 0.05
    assert accuracy[-1] > 0.4


class Left(Exception):
    """A run that is killed here, and takes no snapshot on its way out."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "number", "error"),
    [
        *[("aggregate", number, Left) for number in (3, 8, 14)],
        # leaves a snapshot between two calls, after which the latest round is trained again
        *[("train", number, KeyboardInterrupt) for number in (2, 7, 20)],
    ],
)
@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_a_run_goes_on_with_updates_on_their_way(
    tmp_path: Path, algorithm: str, call: str, number: int, error: type[BaseException]
) -> None:
    calls: list[str] = []

    def leave(done: str) -> None:
        calls.append(done)
        if calls.count(call) == number:
            raise error

    with pytest.raises(error):
        train(algorithm, (8, 3), path=tmp_path, after=leave)
    newest = load_file(max((tmp_path / FOLDER).glob("*.safetensors")))
    assert [name for name in newest if "waiting" in name], "updates are on their way"
    assert table(train(algorithm, (8, 3), path=tmp_path)) == table(train(algorithm, (8, 3)))
