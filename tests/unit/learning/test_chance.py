"""Test that algorithms draw numbers by name, independent of other devices, and the same after a resume."""

from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from edgefl.learning.algorithms import Received, Receivers, Sent, ServerState, Trained, Updates, Vectors
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.chance import NO_CHANCE, RoundChance
from edgefl.rng import Streams
from tests.refusals import refused_at
from tests.unit.learning.federation.test_resume import SESSIONS, goes_on_after_any_round, settings

CPU = torch.device("cpu")
IDS = [2, 5, 11]


def chance(*at: int | str, seed: int = 1) -> RoundChance:
    return RoundChance(Streams(seed).below("chance", 0, "model"), at or (1, "train", 3), CPU)


def test_a_device_draws_the_same_in_any_company() -> None:
    def draws(ids: list[int]) -> list[Tensor]:
        rng = chance().of_devices("upload", ids)
        return [rng.uniform(4), rng.normal(2, 3), rng.uniform(), rng.subset(3, 10)]

    together = draws(IDS)
    assert [tuple(drawn.shape) for drawn in together] == [(3, 4), (3, 2, 3), (3,), (3, 3)]
    for place, id_ in enumerate(IDS):
        for one, many in zip(draws([id_]), together, strict=True):
            assert torch.equal(one[0], many[place])
    rng = chance().of_devices("upload", IDS)
    rng.uniform(9)
    # numbers for some of the devices begin at the start of their streams
    assert torch.equal(rng.part(1, 3).uniform(4), together[0][1:])


def test_no_two_names_share_numbers() -> None:
    drawn = [
        chance().of_devices("upload", [2]).uniform(4),
        chance().of_devices("keep", [2]).uniform(4),
        chance().of_devices("upload", [3]).uniform(4),
        chance(1, "train", 4).of_devices("upload", [2]).uniform(4),
        chance(1, "probe", 3).of_devices("upload", [2]).uniform(4),
        chance(seed=2).of_devices("upload", [2]).uniform(4),
        chance().of_server("upload").uniform(4).unsqueeze(0),
    ]
    assert len({tuple(numbers[0].tolist()) for numbers in drawn}) == len(drawn)


def test_the_server_draws_without_devices() -> None:
    rng = chance().of_server("aggregate")
    assert rng.normal(5).shape == (5,)
    assert rng.uniform().shape == ()
    assert sorted(rng.subset(4, 4).tolist()) == [0, 1, 2, 3]


def test_draws_follow_their_laws() -> None:
    """Means agree within four standard errors, 1 / sqrt(12 n) for uniform numbers, 1 / sqrt(n) for normal numbers."""
    n = 40_000
    uniform = chance().of_devices("upload", IDS).uniform(n).double()
    normal = chance().of_devices("upload", IDS).normal(n).double()
    assert (uniform.mean(1) - 0.5).abs().max() < 4 / np.sqrt(12 * n)
    assert normal.mean(1).abs().max() < 4 / np.sqrt(n)
    assert (normal.var(1) - 1).abs().max() < 4 * np.sqrt(2 / n)
    assert 0 <= float(uniform.min()) < float(uniform.max()) < 1


def test_where_nothing_may_be_left_to_chance_it_is_refused() -> None:
    with refused_at("learning.algorithm", "stream"):
        NO_CHANCE.uniform(3)


class Noisy(FedAvg):
    """An algorithm that adds noise in every method that may draw random numbers."""

    device_vectors: ClassVar = ("noise",)

    def receive(self, model: Tensor, state: ServerState, devices: Receivers) -> Received:
        return Received(model + 0.01 * devices.rng.normal(len(model)))

    def deployed(self, model: Tensor, state: ServerState, devices: Receivers) -> Tensor:
        with refused_at("learning.algorithm", "stream"):
            devices.rng.normal()
        return model

    def upload(self, trained: Trained, state: ServerState, own: Vectors) -> Sent:
        coin = trained.rng.uniform()
        return Sent(trained.local + 0.01 * trained.rng.normal(own["noise"].shape[1]), {"coin": coin})

    def keep(self, trained: Trained, sent: Tensor, state: ServerState, own: Vectors) -> Vectors:
        return {"noise": own["noise"] + trained.rng.normal(sent.shape[1])}

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        return updates.mean() + 0.01 * updates.rng.normal(len(model)), state


@pytest.mark.parametrize("warm_start", ["previous", "checked"])
def test_a_run_with_noise_in_every_verb_goes_on_after_any_round(warm_start: str) -> None:
    how = settings("fedavg", warm_start, partition={"name": "dirichlet", "alpha": 0.5})
    stages = {"checked": {0, 1, 2}}.get(warm_start, {0})
    noisy = how.model_copy(update={"algorithm": Noisy()})
    goes_on_after_any_round(noisy, SESSIONS[warm_start], stages)
