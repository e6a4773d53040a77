"""Test that the cloud's mean over cells is federated averaging over all devices."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from edgefl.learning.federation.cloud_stage import CloudModels, below_a_cloud
from tests.unit.learning.digits_cell import CPU, DEVICES, data_of, learner, opened, round_of, settings_of

ROUNDS = 4
# a mean of 12 rows differs from a mean of means by some 12 roundings of 6e-8 per round, for numbers up to 1
ROUNDING = ROUNDS * DEVICES * 2.0**-24


def trained(
    cells: Sequence[Sequence[int]], clouded: bool = True, every: int = 1, **changes: Any
) -> list[Tensor]:
    """Return the models of cells with these devices; every device takes part in every round."""
    changes["partition"] = {"name": "dirichlet", "alpha": 0.3}
    data = data_of(settings_of(**changes))
    learners = [learner(data=data, cell=number, **changes) for number in range(len(cells))]
    if clouded:
        below_a_cloud(learners, CPU)
    stages: list[Any] = [
        opened(one, ids=ids, longest=ROUNDS) for one, ids in zip(learners, cells, strict=True)
    ]
    for number in range(1, ROUNDS + 1):
        for stage, ids in zip(stages, cells, strict=True):
            round_of(stage, ids, number)
        if clouded and number % every == 0:
            assert all(stage.submit() for stage in stages)
            for stage in stages:
                stage.adopt(range(len(cells)), aggregated=True)
    return [stage.federation.model.model for stage in stages]


@pytest.mark.parametrize("algorithm", ["fedavg", "fedprox"])
def test_a_cloud_after_every_round_is_federated_averaging_over_all_devices(algorithm: str) -> None:
    """HierFAVG with kappa_2 = 1 is FedAvg, as sum_c N_c / N sum_k n_k / N_c w_k = sum_k n_k / N w_k."""
    devices = list(range(DEVICES))
    (whole,) = trained([devices], clouded=False, algorithm=algorithm)
    first, second = trained([devices[:3], devices[3:]], algorithm=algorithm)
    assert torch.equal(first, second)
    assert torch.allclose(first, whole, rtol=0, atol=ROUNDING)
    (alone, _) = trained([devices[:3], devices[3:]], clouded=False, algorithm=algorithm)
    assert (alone - whole).abs().max() > 1000 * ROUNDING, "independent cells would be found"


def test_one_cell_has_the_bytes_that_it_has_without_a_cloud() -> None:
    devices = list(range(DEVICES))
    assert torch.equal(trained([devices])[0], trained([devices], clouded=False)[0])


def test_two_means_every_second_round() -> None:
    """An exchange of models in every second round has other results than an exchange in every round."""
    cells = [list(range(3)), list(range(3, DEVICES))]
    seldom, often = trained(cells, every=2), trained(cells)
    assert torch.equal(seldom[0], seldom[1])
    assert (seldom[0] - often[0]).abs().max() > 1000 * ROUNDING


def test_cells_weigh_by_the_data_behind_their_models() -> None:
    """Device 5's samples count once although it sent two updates; cell 2, without updates, has no weight."""
    cloud = CloudModels(CPU)
    cloud.hear(0, {5: 30})
    cloud.hear(0, {5: 30, 6: 10})
    cloud.hear(1, {7: 10})
    ones = torch.ones(3)
    assert [cloud.send(number, (number + 1) * ones) for number in range(3)] == [40, 10, 0]
    assert torch.allclose(cloud.mean([0, 1]), (40 * 1 + 10 * 2) / 50 * ones)
    assert cloud.send(0, 9 * ones) == 0, "no samples since the last model"
    assert torch.equal(cloud.mean([0]), ones)


@pytest.mark.parametrize(("weights", "behind"), [(None, [1, 2]), ([1.0, 2.0], [0, 1, 2])])
def test_an_unbiased_mean_weighs_as_much_as_all_participants(
    weights: list[float] | None, behind: list[int]
) -> None:
    """Device 0's update is lost: with weights, the cell's model stands for the data of all three participants."""
    one = learner(partition={"name": "dirichlet", "alpha": 0.3})
    below_a_cloud([one], CPU)
    stage: Any = opened(one)
    stage.train([0, 1, 2], 1)
    stage.aggregate([1, 2], weights)
    assert stage.submit() == sum(len(one.device_data.samples(id_)) for id_ in behind)


def test_its_state_comes_back_from_a_snapshot() -> None:
    cloud, other = CloudModels(CPU), CloudModels(CPU)
    cloud.hear(3, {5: 30})
    cloud.send(3, torch.arange(3.0))
    cloud.hear(1, {7: 10, 8: 5})
    tensors, facts = cloud.state()
    other.restore(tensors, json.loads(json.dumps(facts)))
    assert torch.equal(other.mean([3]), torch.arange(3.0))
    assert other.send(1, torch.ones(3)) == 15
    assert other.state()[1]["samples"] == [[3, 30], [1, 15]]
