"""Compare opening models with the formulas of the journal paper, Algorithm 1."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

from edgefl.learning.models import Outputs
from edgefl.learning.warm_starts import Final, Saved, WarmStart
from edgefl.learning.warm_starts.average import Average
from edgefl.learning.warm_starts.continuous import Continuous
from edgefl.learning.warm_starts.previous import Previous
from edgefl.learning.warm_starts.similarity import Similarity
from tests.tools.constants import with_constants
from tests.tools.derived import underived

CURRENT = torch.tensor([9.0, 9.0])
SAVED = [
    Saved(2, torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0])),
    Saved(3, torch.tensor([0.0, 1.0]), torch.tensor([3.0, 4.0])),
    Saved(4, torch.tensor([2.0, 2.0]), torch.tensor([0.0, 1.0])),
]
GRADIENT = torch.tensor([0.0, 0.0])  # distances to saved gradients are 0, 5, 1
FINALS = [
    Final(torch.tensor([1.0, 2.0]), 0.5),
    Final(torch.tensor([3.0, 6.0]), 0.8),
    Final(torch.tensor([8.0, 4.0]), 0.9),
]
ALL = [Similarity(), Average(), Previous(), Continuous()]


def saved(*gradients: list[float]) -> list[Saved]:
    return [Saved(z, torch.tensor([float(z)]), torch.tensor(g)) for z, g in enumerate(gradients, start=2)]


def sessions(kept: list[Saved]) -> list[int]:
    return [z.session for z in kept]


@pytest.mark.parametrize("warm_start", [*ALL, Similarity(scale=0.0), Similarity(distance="cosine")])
def test_two_sessions_as_previous(warm_start: WarmStart) -> None:
    """Only warm starts with `first_two_as_previous` open exactly with the last model and add no loss term."""
    last = Saved(2, torch.tensor([-0.0, 0.1]), torch.tensor([1e-30, 4e30]))
    cases = itertools.product(([], [last]), (None, GRADIENT))
    openings = [warm_start.opening(last.model, *case).model for case in cases]
    same = all(torch.equal(one.view(torch.int32), last.model.view(torch.int32)) for one in openings)
    anchored = warm_start.anchor(last.model, torch.tensor([True, True])) is not None
    assert warm_start.first_two_as_previous == (same and not anchored)


@pytest.mark.parametrize(
    "warm_start", [*ALL, *(kind(history=h) for kind in (Similarity, Average) for h in (1, 2))]
)
def test_who_keeps_the_first_two(warm_start: WarmStart) -> None:
    kept: list[Saved] = []
    for one in SAVED[:2]:
        kept = warm_start.retain([*kept, one])
    assert warm_start.keeps_first_two == (sessions(kept) == [2, 3])


def test_similarity_with_a_large_scale_is_the_most_similar_session() -> None:
    assert Similarity(scale=1e4).opening(CURRENT, SAVED, GRADIENT).model.tolist() == [1.0, 0.0]


def test_cosine_distance_is_blind_to_length() -> None:
    """At angles of 0, 90 and 180 degrees to the new gradient, cosine distances are 0, 1 and 2."""
    kept = saved([5.0, 0.0], [0.0, 0.1], [-3.0, 0.0])
    found = Similarity(scale=1.0, distance="cosine").opening(torch.zeros(1), kept, torch.tensor([2.0, 0.0]))
    raw = [math.exp(-d) for d in (0, 1, 2)]
    assert list(found.weights.values()) == pytest.approx([r / sum(raw) for r in raw])


def test_without_a_gradient_it_goes_on_from_the_current_model() -> None:
    """Without a gradient, `similarity` opens with the current model; it ignores saved sessions without a gradient."""
    assert torch.equal(Similarity().opening(CURRENT, SAVED, None).model, CURRENT)
    blind = [Saved(2, torch.ones(2), None), SAVED[1]]
    assert Similarity().opening(CURRENT, blind, GRADIENT).weights == {3: 1.0}
    assert Similarity().opening(CURRENT, blind[:1], GRADIENT).weights == {}


def test_auto_is_ten_over_the_median_distance() -> None:
    """Points 0, 1 and 3 (new) have distances 1, 3, 2 with median 2, so R = 5, and mu ~ e^(-5 d) for d = 3, 2."""
    found = Similarity(scale="auto").opening(torch.zeros(1), saved([0.0], [1.0]), torch.tensor([3.0]))
    assert found.weights[3] == pytest.approx(1 / (1 + math.exp(-5)))


@pytest.mark.parametrize("distance", ["two_norm", "cosine"])
def test_auto_needs_no_unit(distance: Any) -> None:
    rng = np.random.default_rng(1)
    gradients = torch.from_numpy(rng.standard_normal((5, 30)))
    found = []
    for unit in (1e-3, 1.0, 1e3):
        kept = [Saved(z, torch.zeros(1), unit * gradients[z]) for z in range(4)]
        opening = Similarity(scale="auto", distance=distance).opening(CURRENT, kept, unit * gradients[4])
        found.append(list(opening.weights.values()))
    assert found[0] == pytest.approx(found[1])
    assert found[2] == pytest.approx(found[1])


def test_auto_tells_kinds_of_sessions_apart_and_equal_ones_not() -> None:
    """Sessions are of two kinds; within a kind, they vary by a tenth of the distance between the kinds."""
    rng = np.random.default_rng(2)
    kinds = np.array([0, 1, 0, 1, 0, 1]) * 10.0
    gradients = torch.from_numpy(kinds[:, None] / np.sqrt(50) + rng.standard_normal((6, 50)) / np.sqrt(50))
    kept = [Saved(z, torch.zeros(1), g) for z, g in enumerate(gradients[:-1])]
    weights = Similarity(scale="auto").opening(CURRENT, kept, gradients[-1]).weights
    assert weights[1] + weights[3] > 0.99
    alike = [Saved(z, torch.zeros(1), torch.ones(3)) for z in range(4)]
    same = Similarity(scale="auto").opening(CURRENT, alike, torch.ones(3)).weights
    assert list(same.values()) == pytest.approx([0.25] * 4)


def test_the_pilot_is_the_mean_of_the_pilot_sessions() -> None:
    assert Similarity().pilot(FINALS, CURRENT).tolist() == [4.0, 4.0]


def test_the_pilot_by_exponential_weights() -> None:
    """By J (30) with P = 3, the weights are beta^2, beta (1 - beta), 1 - beta."""
    beta = 0.6
    expected = [beta**2 * a + beta * (1 - beta) * b + (1 - beta) * c for a, b, c in [(1, 3, 8), (2, 6, 4)]]
    found = Similarity(pilot_model="ema", beta=beta).pilot(FINALS, CURRENT)
    assert found.tolist() == pytest.approx(expected)
    assert Similarity(pilot_model="ema", beta=0).pilot(FINALS, CURRENT).tolist() == [8.0, 4.0]


def test_the_pilot_of_good_sessions() -> None:
    """Good sessions have at least 0.85 of the best accuracy: if 0.9 is the best, 0.8 is good, but 0.5 is not."""
    everyone = Similarity().pilot(FINALS, CURRENT).tolist()
    for share, pilot in ((0.85, [5.5, 5.0]), (1, [8.0, 4.0]), (0, everyone)):
        good = with_constants(Similarity, good_share=share)(pilot_model="good")
        assert good.pilot(FINALS, CURRENT).tolist() == pilot


def test_the_random_pilot_is_the_untrained_model() -> None:
    assert torch.equal(Similarity(pilot_model="random").pilot(FINALS, CURRENT), CURRENT)


def test_history_keeps_the_newest() -> None:
    kept = saved([0.0], [1.0], [2.0], [3.0])
    assert sessions(Similarity().retain(kept)) == [2, 3, 4, 5]
    assert sessions(Similarity(history=2).retain(kept)) == [4, 5]
    assert sessions(Average(history=3).retain(kept)) == [3, 4, 5]
    assert sessions(Average().retain(kept)) == [2, 3, 4, 5]
    assert sessions(Previous().retain(kept)) == sessions(Continuous().retain(kept)) == [5]


def test_diverse_keeps_what_lies_apart() -> None:
    """The older of the two most similar sessions, 0.0 and 0.1, is removed."""
    diverse = Similarity(history=3, retention="diverse")
    assert sessions(diverse.retain(saved([0.0], [5.0], [0.1], [9.0]))) == [3, 4, 5]
    assert sessions(diverse.retain(saved([0.0], [5.0], [9.0], [5.2]))) == [2, 4, 5]
    assert sessions(Similarity(history=1, retention="diverse").retain(saved([0.0], [5.0]))) == [3]


def test_a_session_without_a_gradient_is_the_first_to_go() -> None:
    kept = [SAVED[0], Saved(3, torch.ones(2), None), SAVED[2]]
    for retention in ("last", "diverse"):
        assert sessions(Similarity(history=2, retention=retention).retain(kept)) == [2, 4]


def by_softmax(scale: float) -> tuple[WarmStart, list[float], dict[int, float]]:
    """The weights of `similarity` are the softmax of -scale times the distances 0, 5 and 1."""
    raw = [math.exp(-scale * distance) for distance in (0.0, 5.0, 1.0)]
    mu = [value / sum(raw) for value in raw]
    weights = dict(zip((2, 3, 4), mu, strict=True))
    return Similarity(scale=scale), [mu[0] + 2 * mu[2], mu[1] + 2 * mu[2]], weights


# warm start, and the opening model and weights derived by hand from CURRENT, SAVED and GRADIENT
OPENINGS: list[tuple[WarmStart, list[float], dict[int, float]]] = [
    (Previous(), [9.0, 9.0], {4: 1.0}),
    (Continuous(), [9.0, 9.0], {4: 1.0}),
    (Average(), [1.0, 1.0], {2: 1 / 3, 3: 1 / 3, 4: 1 / 3}),
    *map(by_softmax, (0.0, 0.1, 1.0, 10.0)),  # 0: the average
]


def test_every_warm_start_has_its_opening() -> None:
    missing = underived("warm_starts", (warm_start for warm_start, _, _ in OPENINGS))
    assert not missing, f"derive by hand how these open a session, in OPENINGS of {__file__}: {missing}"


@pytest.mark.parametrize(("warm_start", "model", "weights"), OPENINGS)
def test_openings_by_hand(warm_start: WarmStart, model: list[float], weights: dict[int, float]) -> None:
    opening = warm_start.opening(CURRENT, SAVED, GRADIENT if warm_start.probes else None)
    assert opening.model.tolist() == pytest.approx(model)
    assert opening.weights == pytest.approx(weights)


@pytest.mark.parametrize("warm_start", ALL)
def test_without_history_all_go_on_from_the_current_model(warm_start: WarmStart) -> None:
    opening = warm_start.opening(CURRENT, [], GRADIENT)
    assert torch.equal(opening.model, CURRENT)
    assert opening.weights == {}


def test_a_check_needs_two_saved_sessions() -> None:
    """With one saved session, the constructed model is the previous model."""
    assert [Similarity(check=True).checks(SAVED[:n]) for n in range(4)] == [False, False, True, True]
    assert not any(warm_start.checks(SAVED) for warm_start in ALL)


def test_distillation_is_kl_on_the_known_classes() -> None:
    """The term is sum_c q_c log(q_c / p_c), with p and q renormalised over the classes 0, 2 and 3."""
    known = torch.tensor([True, False, True, True])
    term = Continuous(coefficient=0.5).anchor(CURRENT, known)
    assert term.references == (CURRENT,)
    own, teacher = np.array([[0.2, 5.0, -1.0, 0.4]]), np.array([[1.0, -7.0, 0.5, 0.0]])
    p, q = (np.exp(z[:, [0, 2, 3]]) for z in (own, teacher))
    p, q = p / p.sum(), q / q.sum()
    outputs = [Outputs(torch.from_numpy(z), torch.zeros(1)) for z in (own, teacher)]
    assert float(term.loss(outputs[0], [outputs[1]])) == pytest.approx(0.5 * (q * np.log(q / p)).sum())
    assert float(term.loss(outputs[1], [outputs[1]])) == 0.0


def test_no_anchor_where_nothing_is_to_be_kept() -> None:
    everything, one = torch.tensor([True, True]), torch.tensor([False, True])
    assert Continuous(coefficient=0).anchor(CURRENT, everything) is None
    assert Continuous().anchor(CURRENT, one) is None, "with a single class, both models are certain"
    assert all(w.anchor(CURRENT, everything) is None for w in ALL if not isinstance(w, Continuous))
