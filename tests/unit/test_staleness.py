"""Test the weights of stale updates for each staleness law, and for libraries that implement FedBuff."""

import math

import numpy as np
import pytest

from edgefl.contract import Staleness
from edgefl.engine.servers.fedasync import FedAsync
from edgefl.engine.servers.fedbuff import FedBuff

EVEN = [0.25] * 4
# four updates in a buffer: staleness, model received, model trained; and the current model
STALE, RECEIVED, LOCAL, TODAY = [0, 1, 2, 3], [10.0, 9.0, 8.0, 6.0], [12.0, 11.0, 11.0, 10.0], 10.0


def moved(staleness: Staleness) -> float:
    """Return w + sum_k p_k weight_k delta_k, as the contract defines it."""
    base = np.array(RECEIVED) if staleness.base == "received" else np.full(4, TODAY)
    weights = np.array(staleness.weights(STALE, EVEN))
    return float(TODAY + EVEN @ (weights * (np.array(LOCAL) - base)))


def test_laws() -> None:
    assert Staleness("constant").factors([0, 7]) == [1.0, 1.0]
    assert Staleness("polynomial").factors([0, 3]) == [1.0, 0.5]
    assert Staleness("polynomial", exponent=2.0).factors([1]) == [0.25]
    hinge = Staleness("hinge", slope=0.5, after=4)
    assert hinge.factors([0, 4, 6]) == [1.0, 1.0, 1 / (0.5 * 2 + 1)]
    assert Staleness("polynomial", cap=3).factors([3, 50]) == [0.5, 0.5]


@pytest.mark.parametrize("law", ["constant", "polynomial", "hinge"])
@pytest.mark.parametrize("divisor", ["buffer", "weights"])
def test_fresh_updates_weigh_exactly_one(law: str, divisor: str) -> None:
    shares = [0.1, 0.2, 0.3, 0.4]
    assert Staleness(law, divisor=divisor).weights([0] * 4, shares) == [1.0] * 4  # type: ignore[arg-type]


def test_by_weights_the_change_is_a_mean_whatever_the_staleness() -> None:
    shares = [0.1, 0.2, 0.3, 0.4]
    weights = Staleness(divisor="weights").weights([5, 0, 2, 9], shares)
    assert sum(p * w for p, w in zip(shares, weights, strict=True)) == pytest.approx(1.0, rel=1e-15)
    assert Staleness(divisor="weights").weights([5, 5, 5, 5], shares) == [1.0] * 4, "equally stale"


def test_a_sum_is_the_buffer_times_the_mean() -> None:
    """A sum is the buffer size times the mean, so FedBuff in FLSim divides the lr by the buffer size."""
    mean, sum_ = Staleness(), Staleness(divisor="none", scale=1 / 4)
    assert sum_.weights(STALE, EVEN) == mean.weights(STALE, EVEN)


# each library's formula, and the equivalent parameters of `fedbuff`
ROOTS = [1 / math.sqrt(1 + tau) for tau in STALE]
CHANGES = [local - received for local, received in zip(LOCAL, RECEIVED, strict=True)]
FROM_TODAY = [local - TODAY for local in LOCAL]
CONVENTIONS = {
    # FedBuff's algorithm 1 sums s(tau) Delta_k to Delta, and sets w + eta_g Delta / K
    "paper": (TODAY + sum(s * d for s, d in zip(ROOTS, CHANGES, strict=True)) / 4, {}),
    # this variant takes a weighted mean of the changes
    "weights": (
        TODAY + sum(s * d for s, d in zip(ROOTS, CHANGES, strict=True)) / sum(ROOTS),
        {"divisor": "weights"},
    ),
    # FLSim takes a sum with weights s(tau) / s(average staleness), where the average staleness is 1 by default
    "FLSim": (
        TODAY + sum(s / (1 / math.sqrt(2)) * d for s, d in zip(ROOTS, CHANGES, strict=True)),
        {"divisor": "none", "server_lr": math.sqrt(2)},
    ),
    # FLGo takes the plain mean of the changes
    "FLGo": (TODAY + sum(CHANGES) / 4, {"staleness": "constant"}),
    # FedScale takes a weighted mean of the models
    "FedScale": (
        sum(s * local for s, local in zip(ROOTS, LOCAL, strict=True)) / sum(ROOTS),
        {"divisor": "weights", "base": "current"},
    ),
    # Plato takes the plain mean of the differences from the current model to the updates' models
    "Plato": (TODAY + sum(FROM_TODAY) / 4, {"staleness": "constant", "base": "current"}),
    # APPFL has alpha = 0.9, and divides by the number of clients, 10
    "APPFL": (
        TODAY + sum(0.9 * s * d for s, d in zip(ROOTS, FROM_TODAY, strict=True)) / 10,
        {"base": "current", "server_lr": 0.9 * 4 / 10},
    ),
}


@pytest.mark.parametrize("library", CONVENTIONS)
def test_parameters_reproduce_what_libraries_make_of_the_same_buffer(library: str) -> None:
    expected, parameters = CONVENTIONS[library]
    assert moved(FedBuff(buffer=4, **parameters).learning) == pytest.approx(expected, rel=1e-14)


def test_what_they_make_of_it() -> None:
    """The formula of each library results in the numbers in docs/async.md."""
    made = {name: round(expected, 3) for name, (expected, _) in CONVENTIONS.items()}
    assert made == {
        "paper": 11.787, "weights": 12.566, "FLSim": 20.106, "FLGo": 12.75, "FedScale": 11.18, "Plato": 11.0,
        "APPFL": 10.296,
    }  # fmt: skip


def test_fedasync_mixes() -> None:
    """w+ = (1 - a) w + a w_k, a = alpha s(tau)."""
    for tau, local in zip(STALE, LOCAL, strict=True):
        (weight,) = FedAsync(alpha=0.6).learning.weights([tau], [1.0])
        share = 0.6 / math.sqrt(1 + tau)
        assert TODAY + weight * (local - TODAY) == pytest.approx(
            (1 - share) * TODAY + share * local, rel=1e-15
        )
