"""A run's local training on a real Ray cluster of two nodes: to the last bit as here, whoever is killed."""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import ServerState
from edgefl.learning.algorithms.scaffold import Scaffold
from edgefl.learning.data.batches import draw_batches
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.trained_model import TrainedModel
from edgefl.run import training_on_ray
from edgefl.run.resuming import resume
from edgefl.run.simulation import simulate
from edgefl.run.training_on_ray import MOST_LOSSES, RayTrainers, on_ray
from edgefl.run_directory.interruption import Interrupted
from edgefl.run_directory.snapshot import Every
from edgefl.scenario.scenario import load
from tests.tools.called import code_of
from tests.tools.kill import differences

pytestmark = pytest.mark.slow

DEVICES, SAMPLES, CLASSES = 8, 20, 3
SCENARIO = """\
name: spread
seed: 5
devices: {{count: 8}}
sessions: {{name: schedule, count: 2, rounds: 3}}
learning:
  dataset: digits
  partition: {{name: dirichlet, alpha: 0.5, overlap: 0.0}}
  lr: 0.05
  batch: 16
  {learning}
"""
LEARNING = {
    "by hand, with vectors of devices": "{model: logistic, algorithm: scaffold, steps: 20}",
    "stacked, with their last models": "{model: mlp2, batching: stacked, algorithm: moon, epochs: 2}",
    "one by one, with models of their own": "{model: cnn2, algorithm: ditto, steps: 4}",
    "several models, and a teacher": "{model: logistic, algorithm: hypcluster, warm_start: continuous, steps: 9}",
}


@pytest.fixture(scope="module")
def trainers(cluster: Any) -> Iterator[RayTrainers]:
    with on_ray() as made:
        yield made


def all_begun(trainers: RayTrainers) -> RayTrainers:
    """Have all workers hired; rounds as short as these are over before the second is there."""
    trainers._hire(trainers._count)
    while trainers._starting:
        (reference,) = trainers._wait()
        trainers._began(reference)
    return trainers


def scenario(tmp_path: Path, learning: str) -> Path:
    path = tmp_path / "spread.yaml"
    path.write_text(SCENARIO.format(learning=learning.strip("{}").replace(", ", "\n  ")))
    return path


@pytest.mark.parametrize("learning", LEARNING.values(), ids=LEARNING)
def test_the_same_run_directory(trainers: RayTrainers, learning: str, tmp_path: Path) -> None:
    loaded = load(scenario(tmp_path, learning))
    all_begun(trainers)
    here = simulate(loaded, tmp_path / "here")
    there = simulate(loaded, tmp_path / "there", trainers=trainers)
    assert differences(there, here) == []
    assert len(trainers.processes()) == 2


def test_workers_are_killed_while_they_wait_for_a_round(trainers: RayTrainers, tmp_path: Path) -> None:
    """One after each of the first three rounds; the next round finds out."""
    one_by_one = "{model: mlp2, batching: sequential, algorithm: feddyn, steps: 20}"  # work for both
    loaded, before = load(scenario(tmp_path, one_by_one)), all_begun(trainers).lost
    here = simulate(loaded, tmp_path / "here")
    killed: list[int] = []

    def kill(row: Round) -> None:
        if len(killed) < 3:
            killed.append(trainers.processes()[-1]["pid"])  # of those that wait, the next to be given work
            os.kill(killed[-1], signal.SIGKILL)

    there = simulate(loaded, tmp_path / "there", trainers=trainers, on_round=kill)
    assert len(set(killed)) == 3
    assert trainers.lost == before + 3
    assert differences(there, here) == []


class Deadly(Scaffold):
    """Ends its process in the middle of a piece: in the third step of any, so often as there are files to take."""

    folder: str
    survives: int

    def correct(self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Any) -> Tensor:
        steps = self.__dict__.setdefault("_steps", [])
        steps.append(1)
        if len(steps) == 3 and os.getpid() != self.survives:
            for path in Path(self.folder).iterdir():
                with suppress(FileNotFoundError):
                    path.unlink()
                    os.kill(os.getpid(), signal.SIGKILL)
        return super().correct(grads, local, start, state, own)


class Unstackable(Model):
    """Looks at the data's values, which vmap cannot follow."""

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        class Branch(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return x if x.sum() > 0 else 2 * x

        return nn.Sequential(nn.Flatten(), Branch(), nn.Linear(9, classes))


def trained(algorithm: Any, model: Model, **options: Any) -> Tensor:
    """The global model after two rounds."""
    rng = np.random.default_rng(0)
    count = DEVICES * SAMPLES
    split = Split(rng.random((count, 9), dtype=np.float32), rng.integers(0, CLASSES, count))
    data = SplitInMemory(split, np.float32(0.5), np.float32(0.3), torch.device("cpu"))
    torch.manual_seed(1)
    module = model.build((9,), CLASSES)
    train = LocalTraining(model, module, data, UpdateRule(0.9), memory_bytes=3_000, **options)
    track = TrainedModel(
        train, algorithm, DeviceStates(DEVICES, torch.device("cpu")), train.layout.flatten(module)
    )
    own = list(np.arange(count).reshape(DEVICES, SAMPLES))
    held = dict.fromkeys(range(DEVICES), SAMPLES)
    track.open(track.model, held)
    for round_ in range(2):
        generators = [np.random.default_rng([round_, k]) for k in range(DEVICES)]
        track.train(range(DEVICES), draw_batches(own, [6] * DEVICES, 5, generators), 0.05, [])
        track.aggregate(range(DEVICES), held)
    return track.model


@pytest.fixture
def by_value(cluster: Any) -> Iterator[None]:
    """Workers cannot import this file."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def deaths(tmp_path: Path, count: int) -> Deadly:
    folder = tmp_path / "deaths"
    folder.mkdir()
    for number in range(count):
        (folder / str(number)).touch()
    return Deadly(folder=str(folder), survives=os.getpid())


@pytest.mark.usefixtures("by_value")
def test_a_piece_in_the_middle_of_which_a_worker_dies_is_trained_again(
    trainers: RayTrainers, tmp_path: Path
) -> None:
    algorithm, before = deaths(tmp_path, 2), all_begun(trainers).lost
    there = trained(algorithm, Logistic(), trainers=trainers)
    assert trainers.lost == before + 2
    assert list((tmp_path / "deaths").iterdir()) == []
    assert torch.equal(there, trained(algorithm, Logistic()))


@pytest.mark.usefixtures("by_value")
def test_who_is_lost_again_and_again_is_told(trainers: RayTrainers, tmp_path: Path) -> None:
    """As training does that wants more memory than there is."""
    with pytest.raises(EdgeflError, match=rf"the same \d devices were lost {MOST_LOSSES} times"):
        trained(deaths(tmp_path, 100), Logistic(), trainers=trainers)
    # and the next round finds workers
    assert torch.equal(trained(Scaffold(), Logistic(), trainers=trainers), trained(Scaffold(), Logistic()))


@pytest.mark.usefixtures("by_value")
def test_an_error_in_training_is_the_one_of_here(trainers: RayTrainers) -> None:
    with pytest.raises(EdgeflError, match="cannot be trained stacked") as error:
        trained(Scaffold(), Unstackable(), batching="stacked", trainers=trainers)
    assert error.value.place == ("learning", "batching")


def test_data_and_models_that_nobody_has_any_more_are_dropped(trainers: RayTrainers) -> None:
    """One after the other, runs do not fill the cluster's memory."""
    trained(Scaffold(), Logistic(), trainers=trainers)
    gc.collect()
    assert len(trainers._sent) == 0


def test_left_there_and_gone_on_with_here(trainers: RayTrainers, tmp_path: Path) -> None:
    loaded = load(scenario(tmp_path, LEARNING["by hand, with vectors of devices"]))
    seen: list[Round] = []

    def leave(row: Round) -> None:
        seen.append(row)
        if len(seen) == 4:
            raise Interrupted

    with pytest.raises(Interrupted):
        simulate(loaded, tmp_path / "there", trainers=trainers, on_round=leave, every=Every(rounds=2))
    resume(tmp_path / "there")
    assert differences(tmp_path / "there", simulate(loaded, tmp_path / "here")) == []


def is_at_work(pid: int) -> bool:
    with suppress(FileNotFoundError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in "ZX"
    return False


def test_a_node_goes(cluster: Any, trainers: RayTrainers, tmp_path: Path) -> None:
    trainers.close()
    node = cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
    one_by_one = "{model: cnn2, batching: sequential, algorithm: scaffold, steps: 2}"  # work for three
    loaded = load(scenario(tmp_path, one_by_one))
    here = simulate(loaded, tmp_path / "here")
    with on_ray(workers=3) as three:
        all_begun(three)
        assert len(three.processes()) == 3

        def drop(row: Round) -> None:
            if row.round == 2 and node in cluster.worker_nodes:
                cluster.remove_node(node, allow_graceful=False)
                while all(is_at_work(process["pid"]) for process in three.processes()):
                    time.sleep(0.05)  # a worker outlives its node for a moment

        there = simulate(loaded, tmp_path / "there", trainers=three, on_round=drop)
        assert three.lost
    assert differences(there, here) == []


def test_from_the_command_line(
    trainers: RayTrainers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainers.close()
    file = scenario(tmp_path, LEARNING["by hand, with vectors of devices"])
    options = ["--executor", "ray", "--address", "auto", "--workers", "1"]
    for name, more in (("there", options), ("here", [])):
        assert code_of("run", file, "--out", tmp_path / name, *more) == 0
    assert differences(tmp_path / "there", tmp_path / "here") == []


def test_another_torch_or_processor_is_refused(
    trainers: RayTrainers, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainers.close()
    of_process: Callable[[], dict[str, str]] = training_on_ray.of_process
    here = of_process() | {"torch": "1.0"}
    monkeypatch.setattr(training_on_ray, "of_process", lambda: here)
    with pytest.raises(EdgeflError, match=r"torch is .* on the node .* and 1.0 here: results would differ"):
        trained(Scaffold(), Logistic(), trainers=trainers)


def test_no_room_for_a_worker(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_on_ray, "START_S", 2.0)
    with on_ray(workers=1) as none:
        none._actor = none._ray.remote(training_on_ray._RemoteWorker).options(num_cpus=1000)
        with pytest.raises(EdgeflError, match=r"no worker has begun within 2 s; the cluster has \d cores"):
            trained(Scaffold(), Logistic(), trainers=none)
