"""Test that methods for several concepts serve a tiny federation of two populations with opposite labels.

Samples are points on a line, with label 1 on the right in one concept, and label 0 in the other. A device has one of
the concepts, and a drift changes it. Training is deterministic, as it is logistic regression with full batches.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms._clustered import LOWEST_LOSS
from edgefl.learning.algorithms.ditto import Ditto
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.feddrift import FedDrift
from edgefl.learning.algorithms.hypcluster import HypCluster
from edgefl.learning.algorithms.local_only import LocalOnly
from edgefl.learning.data.batches import draw_batches
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.trained_model import PERSONAL_MODEL, TrainedModel
from edgefl.learning.updates.updates import LocalResult
from tests.tools.constants import with_constants

DEVICES, EACH = 6, 20
ALL = list(range(DEVICES))
SIZES = dict.fromkeys(ALL, EACH)
LR, STEPS = 0.5, 5
CPU = torch.device("cpu")
# samples of one concept are first: row + HALF is the same point with the other label
HALF = DEVICES * EACH
X = np.tile(np.linspace(-2, 2, EACH, dtype=np.float32), DEVICES)
X = np.concatenate([X, X]).reshape(-1, 1) + np.float32(0.01)  # no point is on the border
Y = np.concatenate([X[:HALF, 0] > 0, X[HALF:, 0] < 0]).astype(np.int64)


class Cell:
    """A trained model and its devices, each with concept 0 or 1."""

    def __init__(self, algorithm: Algorithm, concepts: Sequence[int], model: Model | None = None) -> None:
        torch.manual_seed(0)
        model = model or Logistic()
        module = model.build((1,), 2)
        data = SplitInMemory(Split(X, Y), np.float32(0), np.float32(1), CPU)
        training = LocalTraining(model, module, data, UpdateRule())
        self.algorithm, self.concepts, self.rounds = algorithm, list(concepts), 0
        self.states = DeviceStates(DEVICES, CPU)
        self.track = TrainedModel(training, algorithm, self.states, training.layout.flatten(module))
        self.open()

    def open(self, shift: float = 0.0) -> None:
        self.track.open(self.track.model + shift, SIZES)

    def samples(self, ids: Sequence[int]) -> list[np.ndarray]:
        return [np.arange(EACH) + id_ * EACH + HALF * self.concepts[id_] for id_ in ids]

    def play(
        self, rounds: int = 1, ids: Sequence[int] = ALL, arrived: Sequence[int] | None = None
    ) -> LocalResult:
        for _ in range(rounds):
            self.rounds += 1
            generators = [np.random.default_rng([self.rounds, id_]) for id_ in ids]
            batches = draw_batches(self.samples(ids), [STEPS] * len(ids), EACH, generators, smallest=2)
            done = self.track.train(ids, batches, LR, [])
            self.track.aggregate(ids if arrived is None else arrived, SIZES)
        return done

    def clusters(self, **how: Any) -> list[int]:
        return self.play(**how).scalars["cluster"].astype(int).tolist()

    def served(self) -> np.ndarray:
        """Return each device's accuracy on its current data, with the model that serves it."""
        models = self.track.deployed(ALL, self.samples(ALL)).expand(DEVICES, -1)
        scores = []
        for model, rows in zip(models, self.samples(ALL), strict=True):
            weights, bias = model[:2], model[2:4]
            scores.append(float(((X[rows] * weights.numpy() + bias.numpy()).argmax(1) == Y[rows]).mean()))
        return np.array(scores)


MIXED = [0, 1, 0, 1, 1, 0]


def test_hypcluster_separates_two_opposite_populations() -> None:
    """A single model serves at best half of the devices; HypCluster's two models serve all devices."""
    cell = Cell(with_constants(HypCluster, spread=0.5)(), MIXED)
    for _ in range(3):
        chosen = cell.clusters()
        first = chosen[0]
        assert chosen == [first if concept == 0 else 1 - first for concept in MIXED]
    assert (cell.served() == 1).all()
    one = Cell(FedAvg(), MIXED)
    one.play(3)
    assert one.served().mean() < 0.7


def test_the_models_of_hypcluster_go_on_in_the_next_session() -> None:
    cell = Cell(with_constants(HypCluster, spread=0.5)(), MIXED)
    cell.play(3)
    models = cell.track.state["models"]
    cell.open()
    assert torch.equal(cell.track.state["models"], models), "the session opens with the last model"
    cell.open(shift=0.25)  # if the session opens with another model, all models shift equally
    torch.testing.assert_close(cell.track.state["models"], models + 0.25)


def test_feddrift_makes_exactly_one_model_of_a_label_swap() -> None:
    """Each concept has one model; the old concept's model is unchanged, and serves again when the concept recurs."""
    cell = Cell(FedDrift(delta=1.0), [0] * DEVICES)
    for _ in range(8):
        assert cell.clusters() == [0] * DEVICES
    assert (cell.served() == 1).all()
    old = cell.track.state["models"][0].clone()
    cell.concepts = [1] * DEVICES
    assert (cell.served() == 0).all()
    for _ in range(8):
        assert cell.clusters() == [1] * DEVICES
    assert int(cell.track.state["begun"]) == 2
    assert (cell.served() == 1).all()
    assert torch.equal(cell.track.state["models"][0], old)
    cell.concepts = [0] * DEVICES  # the old concept recurs, and its model still exists
    assert (cell.served() == 1).all()
    assert cell.clusters() == [0] * DEVICES
    assert int(cell.track.state["begun"]) == 2


def test_feddrift_lets_those_who_drift_go_and_the_others_stay() -> None:
    cell = Cell(FedDrift(delta=1.0), [0] * DEVICES)
    cell.play(8)
    cell.concepts = MIXED
    assert cell.clusters() == MIXED
    assert cell.clusters() == MIXED


@pytest.mark.parametrize(("window", "begun"), [(20, 2), (1, 3)])
def test_devices_that_come_a_round_later_follow_within_the_window(window: int, begun: int) -> None:
    """Devices that only take part a round after the drift, when their loss jumps, use the existing new model."""
    cell = Cell(with_constants(FedDrift, window=window)(delta=1.0), [0] * DEVICES)
    cell.play(8)
    cell.concepts = [1] * DEVICES
    assert cell.clusters(ids=[0, 1, 2]) == [1] * 3
    # make the new model as bad as the old model, so that it does not hide the drift from these devices
    models = cell.track.state["models"]
    cell.track.state = {**cell.track.state, "models": models.index_copy(0, torch.tensor([1]), models[:1])}
    assert cell.clusters(ids=[3, 4, 5]) == [begun - 1] * 3
    assert int(cell.track.state["begun"]) == begun


def test_feddrift_has_no_more_models_than_it_may() -> None:
    cell = Cell(FedDrift(delta=1.0, models=1), [0] * DEVICES)
    cell.play(8)
    cell.concepts = [1] * DEVICES
    assert cell.clusters() == [0] * DEVICES


def test_what_a_device_remembers_is_lost_with_its_update_and_goes_with_it() -> None:
    cell = Cell(FedDrift(delta=1.0), [0] * DEVICES)
    first = cell.play(arrived=[2, 5]).scalars[LOWEST_LOSS]
    kept = cell.states.rows(LOWEST_LOSS, ALL, torch.full((1,), torch.inf))[:, 0]
    assert torch.isfinite(kept).tolist() == [id_ in (2, 5) for id_ in ALL]
    assert kept[[2, 5]].tolist() == pytest.approx(first[[2, 5]].tolist())
    # a drift that only lost updates reported creates no model
    cell.play(8)
    cell.concepts = [1] * DEVICES
    assert cell.clusters(arrived=[]) == [1] * DEVICES
    assert int(cell.track.state["begun"]) == 1
    # a device brings its previous loss to another cell, whose untrained model then seems to have drifted
    for brought, chosen in ((cell.states, 1), (DeviceStates(DEVICES, CPU), 0)):
        other = Cell(FedDrift(delta=0.3), [0] * DEVICES)
        other.track.devices = brought
        assert other.clusters() == [chosen] * DEVICES


def test_local_models_never_mix() -> None:
    """With local_only, each device has the model that it would train alone, and sends nothing."""
    cell = Cell(LocalOnly(), MIXED)
    start = cell.track.model.clone()
    cell.play(3)
    done = cell.play(ids=[0, 1])
    assert done.down_bits.tolist() == done.up_bits.tolist() == [0, 0]
    assert torch.equal(cell.track.model, start)
    assert (cell.served() == 1).all()
    together = cell.states.rows("model", ALL, start)
    for id_ in ALL:
        alone = Cell(FedAvg(), MIXED)
        alone.play(4 if id_ in (0, 1) else 3, ids=[id_])
        torch.testing.assert_close(together[id_], alone.track.model)


def test_who_never_took_part_has_the_opening_model() -> None:
    cell = Cell(LocalOnly(), MIXED)
    cell.play(2, ids=[0, 1])
    served = cell.track.deployed(ALL, cell.samples(ALL))
    assert torch.equal(served[2:], cell.track.model.expand(4, -1))
    assert (served[:2] != cell.track.model).any(1).all()


class Normed(Model):
    """A model that begins with batch norm, which keeps statistics of the inputs."""

    typical_input = (1,)
    typical_classes = 2

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(1), nn.Linear(1, classes))


def test_local_statistics_never_mix_either() -> None:
    """local_only does not average batch norm's statistics, unlike the learner with all other algorithms."""
    cell = Cell(LocalOnly(), MIXED, Normed())
    start = cell.track.model.clone()
    done = cell.play(3)
    assert done.down_bits.tolist() == done.up_bits.tolist() == [0] * DEVICES
    assert torch.equal(cell.track.model, start)
    served = cell.track.deployed(ALL, cell.samples(ALL))
    alone = Cell(FedAvg(), MIXED, Normed())
    alone.play(3, ids=[4])
    torch.testing.assert_close(served[4], alone.track.model)
    assert not torch.equal(served[4], start)


def test_ditto_without_pull_trains_alone() -> None:
    ditto, alone = Cell(Ditto(mu=0.0), MIXED), Cell(LocalOnly(), MIXED)
    for cell in (ditto, alone):
        cell.play(4)
    missing = alone.track.model
    torch.testing.assert_close(
        ditto.states.rows(PERSONAL_MODEL, ALL, missing), alone.states.rows("model", ALL, missing)
    )


def test_the_pull_of_ditto_leads_back_to_the_received_model() -> None:
    """As mu grows, personal models approach the received model: |v - w| <= |gradient| / lambda."""
    distances = []
    for mu in (0.0, 0.5, 2.0):
        cell = Cell(Ditto(mu=mu), MIXED)
        cell.play(20)
        received = cell.track.model
        cell.play(1)
        personal = cell.states.rows(PERSONAL_MODEL, ALL, received)
        distances.append(float((personal - received).norm(dim=1).max()))
    assert distances[0] > 2 * distances[1] > 4 * distances[2] > 0
