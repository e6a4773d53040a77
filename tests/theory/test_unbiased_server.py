"""Test that weights 1 / (1 - q) make the mean of arrived updates unbiased; a plain mean favours strong links."""

from collections.abc import Callable

import numpy as np
import pytest

from edgefl.learning.algorithms import Algorithm
from edgefl.learning.updates.arrivals import Weighing
from tests.unit.learning.softmax import ALL, DEVICES, EXACT, HELD, LR, named, plan, shares, track

ARRIVES = np.linspace(0.15, 1.0, DEVICES)  # arrival probabilities; devices with more data have better links
DRAWS, ERRORS = 400, 3.0
# with a large tau, FedAdagrad's step is the mean change, up to (change / tau)^2
EQUAL = named("fedadagrad", weighting="equal", beta1=0.0, tau=1e3, server_lr=2e3)


def equal(ids: list[int]) -> np.ndarray:
    return np.full(len(ids), 1 / len(ids))


@pytest.mark.parametrize(("algorithm", "weights"), [(named("fedavg"), shares), (EQUAL, equal)])
def test_the_expectation_is_the_mean_of_all_participants(
    algorithm: Algorithm, weights: Callable[[list[int]], np.ndarray]
) -> None:
    """Averaged over arrivals, the weighted mean is unbiased, within 3 standard errors, and the plain mean is not."""
    one, _ = track(algorithm)
    rows = one.train(ALL, plan(algorithm, ALL, 1), LR, []).round.rows.double().numpy().copy()
    begun, waiting, state = one.model, dict(one.waiting), one.state
    everyone = weights(ALL) @ rows
    rng, made, plain = np.random.default_rng(3), [], []
    for _ in range(DRAWS):
        arrived = np.flatnonzero(rng.random(DEVICES) < ARRIVES).tolist()  # the last update always arrives
        one.model, one.waiting, one.state = begun, {id_: waiting[id_] for id_ in arrived}, state
        one.aggregate(arrived, HELD, Weighing(reweighed={id_: 1 / ARRIVES[id_] for id_ in arrived}))
        made.append(one.model.double().numpy())
        plain.append(weights(arrived) @ rows[arrived])
    lean = np.mean(plain, axis=0) - everyone
    lean /= np.linalg.norm(lean)
    for models, unbiased in ((made, True), (plain, False)):
        along = (np.array(models) - everyone) @ lean
        error = along.std(ddof=1) / np.sqrt(DRAWS)
        assert bool(abs(along.mean()) <= ERRORS * error) is unbiased
    # if all updates arrive with certainty, the weighted mean is the plain mean
    one.model, one.waiting, one.state = begun, dict(waiting), state
    one.aggregate(ALL, HELD, Weighing(reweighed=dict.fromkeys(ALL, 1.0)))
    assert np.abs(one.model.double().numpy() - everyone).max() < EXACT
