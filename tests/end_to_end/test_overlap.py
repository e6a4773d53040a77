"""Test servers whose rounds overlap: their degenerate cases, and how their runs are resumed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from edgefl import load_scenario
from edgefl.config import registry
from edgefl.contract import BEGIN, LocalRound, Now, SessionStart, Stage
from edgefl.engine.records import DeviceRound, Round
from edgefl.run.composition import compose
from edgefl.run.plan import prepare
from edgefl.run_directory.journal import FOLDER, Journal
from edgefl.run_directory.replay import JournaledLearner
from edgefl.run_directory.snapshot import Every
from edgefl.testing.cell import Rows, SmallWorld, small_world
from tests.tables import sections

DEVICES, SESSIONS, MODELS = 12, 2, 12
FEW = 5  # models per session if a server is compared with the synchronous server
Server = Mapping[str, Any]
ALL: Server = {"name": "fedbuff", "buffer": DEVICES}
SOME: Server = {"name": "fedbuff", "buffer": 3, "concurrency": 8}
TIERS: Server = {"name": "tiers", "count": 3}
OVERLAPPING = {"fedbuff": SOME, "tiers": TIERS}
# algorithms not listed here need updates that began from the same model
STALE = [
    name
    for name in registry.names("algorithms")
    if not registry.get("algorithms", name).one_round  # type: ignore[union-attr]
]
FURTHER: dict[str, dict[str, Any]] = {
    "oracle": {"drift": {"name": "label_swap", "at": 4}},
    "flash": {"local": {"epochs": 2}},
}


class Watched:
    """A learner that calls `after` at the end of each training and aggregation."""

    def __init__(self, learner: Any, after: Callable[[str], None]) -> None:
        self.flops_per_sample, self.payload_bits = learner.flops_per_sample, learner.payload_bits
        self._learner, self._after = learner, after

    def session(self, start: SessionStart) -> Iterator[Stage]:
        for stage in self._learner.session(start):
            yield WatchedStage(stage, self._after)


class WatchedStage:
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
    """Return the rows of rounds and of devices, with all columns."""
    return [vars(row) for kind in (Round, DeviceRound) for row in rows.of[kind]]


def scripted_world(server: Server | None = None) -> SmallWorld:
    return small_world(
        [20.0 + 20.0 * k for k in range(8)],
        policy={"name": "schedule", "count": 2, "rounds": 4},
        radio={"sharing": "dynamic", "scheduler": "round_robin"},
        rules={"server": server or "synchronous"},
    )


def train(
    algorithm: Any,
    server: Server | None = None,
    *,
    path: Path | None = None,
    after: Callable[[str], None] = lambda call: None,
    rounds: Mapping[str, Any] | None = None,
    models: int = MODELS,
    **learning: Any,
) -> Rows:
    """Run digits with a server, by default the synchronous one, and with a journal if a directory is given."""
    keys = sections(f"""
        name=buffered; seed=3; devices={{count: {DEVICES}}}
        sessions={{name: schedule, count: {SESSIONS}, rounds: {models}}}
        radio={{preset: journal, sharing: dynamic, scheduler: round_robin, bandwidth_hz: 2e7}}
        learning={{dataset: digits, model: logistic, partition: iid, local: {{lr: 0.01, batch: 16}}}}
        learning.cost={{flops_per_sample: 1000}}
    """)
    keys["rounds"] = {"server": server or "synchronous", **(rounds or {})}
    keys["learning"] |= {"algorithm": algorithm, **learning}
    scenario = load_scenario(keys)
    plan, rows = prepare(scenario, device="cpu", threads=1), Rows()
    learner = plan.learner
    if path is not None:
        path.mkdir(exist_ok=True)
        assert plan.training is not None
        here, state = {"edgefl": "this one"}, plan.training.state
        journal = Journal(path, here, state, every=Every(rounds=2), on_note=pytest.fail)
        learner = JournaledLearner(learner, 0, journal)
    simulation, servers = compose(plan.world, plan.radio, rows, {0: Watched(learner, after)})
    process = simulation.env.process(servers[0].run())
    if path is None:
        simulation.run(process)
    else:
        with journal:
            simulation.run(process)
    return rows


@pytest.mark.parametrize(
    "server",
    [
        {"name": "fedbuff", "buffer": 8},
        {"name": "fedbuff", "buffer": 8, "concurrency": 8},
        {"name": "semi_synchronous", "every_s": 1e3},
        {"name": "tiers", "count": 1},
    ],
)
def test_a_server_that_waits_for_all_is_the_synchronous_one(server: Server) -> None:
    """A server that waits for all devices writes the same tables as the synchronous server, to the last bit."""
    written, of_synchronous = (
        {kind.__name__: list(map(repr, rows)) for kind, rows in scripted_world(one).run().rows.of.items()}
        for one in (server, None)
    )
    assert written == of_synchronous
    assert {"Round", "DeviceRound", "Session", "Event"} <= written.keys()


@pytest.mark.parametrize("algorithm", STALE)
def test_a_buffer_of_all_devices_trains_as_the_synchronous_server(algorithm: str) -> None:
    learning = FURTHER.get(algorithm, {})
    rows = train(algorithm, models=FEW, **learning)
    assert len(rows.of[Round]) == SESSIONS * FEW
    # no update is stale, so the staleness law changes nothing; some algorithms accept only the constant law
    buffered = train(algorithm, {**ALL, "staleness": "constant"}, models=FEW, **learning)
    assert table(buffered) == table(rows)


@pytest.mark.parametrize("algorithm", ["fedprox", "moon"])
def test_one_tier_trains_as_the_synchronous_server(algorithm: str) -> None:
    one = train(algorithm, {"name": "tiers", "count": 1}, models=FEW)
    assert table(one) == table(train(algorithm, models=FEW))


def test_algorithms_that_need_one_round_say_so() -> None:
    """Servers with overlapping rounds refuse these algorithms; the tests above train with all other algorithms."""
    assert {*registry.names("algorithms")} - {*STALE} == {
        "scaffold", "feddyn", "feddc", "fedl", "fednova", "hypcluster", "feddrift"
    }  # fmt: skip


@pytest.mark.parametrize("law", ["polynomial", "constant", "hinge"])
def test_a_buffer_of_one_is_asynchronous_with_its_mixing_weight(law: str) -> None:
    further = {"concurrency": 8, "staleness": law}
    buffered = {"name": "fedbuff", "buffer": 1, "base": "current", "server_lr": 0.6, **further}
    mixed = {"name": "fedasync", "alpha": 0.6, **further}
    rows = train("fedavg", buffered)
    assert max(rows.further["staleness_max"]) > 4  # beyond a staleness of 4 the hinge lowers weights
    assert table(rows) == table(train("fedavg", mixed))


@pytest.mark.parametrize(
    "rates", ["polynomial", {"name": "step", "every": 2, "rounds": 100}], ids=["decay", "of the run"]
)
def test_one_device_after_the_other_is_the_synchronous_server_with_one_participant(rates: Any) -> None:
    """Both servers train on one device at a time, with equal learning rates."""
    one = {"selector": {"name": "round_robin", "count": 1}}
    rows = train("fedavg", {"name": "fedbuff", "buffer": 1}, rounds=one, local={"lr_schedule": rates})
    assert table(rows) == table(train("fedavg", rounds=one, local={"lr_schedule": rates}))
    assert set(rows.further["staleness_max"]) == {0}


def test_rounds_overlap() -> None:
    """With a buffer of two updates, the server does not wait for the slowest of six devices, and ends earlier."""
    world = scripted_world({"name": "fedbuff", "buffer": 2, "concurrency": 6}).run()
    taken = [call[1] for call in world.learner.calls if call[0] == "aggregate"]
    assert {len(ids) for ids in taken} == {2}
    assert world.rows.of[Round][-1].end_s < scripted_world().run().rows.of[Round][-1].end_s


@pytest.mark.parametrize(
    "server",
    [SOME, {"name": "fedasync", "concurrency": 8}, {"name": "semi_synchronous", "every_s": 0.004}, TIERS],
)
def test_training_works_with_several_rounds_on_their_way(server: Server) -> None:
    """Accuracy rises in each session although updates are stale, as devices train while the model changes."""
    rows = train("fedavg", server)
    accuracy = [row.accuracy for row in rows.of[Round]]
    for session in (accuracy[:MODELS], accuracy[MODELS:]):
        assert session[-1] > session[0] + 0.02
    assert max(rows.further["staleness_max"]) > 0


class Left(Exception):
    """An error that ends a run like a kill, without a last snapshot."""


@lru_cache(maxsize=1)  # a single cached run is enough, because consecutive cases have the same arguments
def undisturbed(algorithm: str, name: str) -> list[dict[str, Any]]:
    """Return the table of an uninterrupted run."""
    return table(train(algorithm, OVERLAPPING[name]))


# KeyboardInterrupt leaves a snapshot between two calls of the learner, after which the latest round is trained again
@pytest.mark.parametrize(
    ("algorithm", "name", "call", "number", "error"),
    [
        *[("fedavg", "fedbuff", "aggregate", number, Left) for number in (3, 8, 14)],
        *[("fedavg", "fedbuff", "train", number, KeyboardInterrupt) for number in (2, 7, 20)],
        *[("apfl", "fedbuff", *left) for left in (("aggregate", 8, Left), ("train", 7, KeyboardInterrupt))],
        *[("fedavg", "tiers", *left) for left in (("aggregate", 8, Left), ("train", 7, KeyboardInterrupt))],
    ],
)
def test_a_run_goes_on_with_updates_on_their_way(
    tmp_path: Path, algorithm: str, name: str, call: str, number: int, error: type[BaseException]
) -> None:
    server = OVERLAPPING[name]
    calls: list[str] = []

    def leave(done: str) -> None:
        calls.append(done)
        if calls.count(call) == number:
            raise error

    with pytest.raises(error):
        train(algorithm, server, path=tmp_path, after=leave)
    newest = load_file(max((tmp_path / FOLDER).glob("*.safetensors")))
    assert [name for name in newest if "waiting" in name], "some updates must be in flight"
    assert table(train(algorithm, server, path=tmp_path)) == undisturbed(algorithm, name)
