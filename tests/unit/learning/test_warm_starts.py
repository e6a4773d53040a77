"""Opening models against the formulas of the journal paper, Algorithm 1."""

import math

import pytest
import torch

from edgefl.learning.warm_starts import Final, Saved
from edgefl.learning.warm_starts.average import Average
from edgefl.learning.warm_starts.previous import Previous
from edgefl.learning.warm_starts.similarity import Similarity

CURRENT = torch.tensor([9.0, 9.0])
SAVED = [
    Saved(2, torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0])),
    Saved(3, torch.tensor([0.0, 1.0]), torch.tensor([3.0, 4.0])),
    Saved(4, torch.tensor([2.0, 2.0]), torch.tensor([0.0, 1.0])),
]
GRADIENT = torch.tensor([0.0, 0.0])  # distances to the saved ones: 0, 5, 1


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_similarity_weighs_by_a_softmax_of_distances(scale: float) -> None:
    raw = [math.exp(-scale * distance) for distance in (0.0, 5.0, 1.0)]
    mu = [value / sum(raw) for value in raw]
    opening = Similarity(scale=scale).opening(CURRENT, SAVED, GRADIENT)
    assert opening.weights == pytest.approx({2: mu[0], 3: mu[1], 4: mu[2]})
    assert opening.model.tolist() == pytest.approx([mu[0] + 2 * mu[2], mu[1] + 2 * mu[2]])


def test_similarity_with_scale_0_is_the_average() -> None:
    opening = Similarity(scale=0.0).opening(CURRENT, SAVED, GRADIENT)
    torch.testing.assert_close(opening.model, Average().opening(CURRENT, SAVED, None).model)


def test_similarity_with_a_large_scale_is_the_most_similar_session() -> None:
    assert Similarity(scale=1e4).opening(CURRENT, SAVED, GRADIENT).model.tolist() == [1.0, 0.0]


def test_the_pilot_is_the_mean_of_the_pilot_sessions() -> None:
    finals = [Final(torch.tensor([1.0, 2.0]), 0.5), Final(torch.tensor([3.0, 6.0]), 0.6)]
    assert Similarity().pilot(finals, CURRENT).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("warm_start", [Similarity(), Average(), Previous()])
def test_without_history_all_go_on_from_the_current_model(
    warm_start: Similarity | Average | Previous,
) -> None:
    opening = warm_start.opening(CURRENT, [], GRADIENT)
    assert torch.equal(opening.model, CURRENT)
    assert opening.weights == {}


def test_previous_and_average() -> None:
    assert torch.equal(Previous().opening(CURRENT, SAVED, None).model, CURRENT)
    assert Average().opening(CURRENT, SAVED, None).model.tolist() == [1.0, 1.0]
