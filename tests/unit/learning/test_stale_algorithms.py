"""Algorithms made for servers that do not wait, against their papers' lines in NumPy."""

import math

import numpy as np
import pytest
import torch

from edgefl import load_scenario
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import Trained, Updates
from edgefl.learning.algorithms.ca2fl import Ca2fl
from edgefl.learning.algorithms.fadas import Fadas
from tests.tools.constants import with_constants
from tests.unit.learning.test_adaptive_servers import begin, updates
from tests.unit.learning.updates.test_cloud_models import DEVICES, ROUNDING, trained

SIZE, LR = 5, 0.1
ROUNDS = 30


class NoMembers:
    """Devices that have never kept anything."""

    def forget(self, name: str) -> None: ...


def test_ca2fl_moves_by_the_mean_of_all_last_changes() -> None:
    """Each round hears two of four devices; a cache of all changes in NumPy, as the paper's server has it."""
    rng = np.random.default_rng(3)
    sizes = np.array([1.0, 2.0, 3.0, 4.0])
    algorithm = Ca2fl(server_lr=0.7)
    model = torch.zeros(SIZE, dtype=torch.float64)
    state = algorithm.init_state(model, {}, NoMembers())  # type: ignore[arg-type]
    own = torch.zeros(4, SIZE, dtype=torch.float64)
    expected, cache = np.zeros(SIZE), np.zeros((4, SIZE))
    for _ in range(ROUNDS):
        heard = np.sort(rng.choice(4, 2, replace=False))
        deltas = rng.normal(size=(2, SIZE))
        shares = sizes[heard] / sizes[heard].sum()
        mean = sizes / sizes.sum() @ cache
        expected = expected + 0.7 * (mean + shares @ (deltas - cache[heard]))
        cache[heard] = deltas

        ones = torch.ones(2, dtype=torch.float64)
        work = Trained(model + torch.from_numpy(deltas), model, ones, ones, LR, {})
        sent = algorithm.upload(work, state, {"cached": own[heard].clone()}).rows
        coverage = float(sizes[heard].sum() / sizes.sum())
        arrived = Updates(sent, model, torch.from_numpy(shares), coverage, ones, ones, LR, {})
        kept = algorithm.keep(work, sent, state, {"cached": own[heard].clone()})["cached"]
        model, state = algorithm.aggregate(model, arrived, state)
        own[heard] = kept
        assert model.numpy() == pytest.approx(expected)
        assert own.numpy() == pytest.approx(cache, abs=1e-12)


def test_ca2fl_with_everybody_in_every_round_is_fedavg() -> None:
    devices = [list(range(DEVICES))]
    calibrated = trained(devices, clouded=False, algorithm="ca2fl")[0]
    assert torch.allclose(
        calibrated, trained(devices, clouded=False, algorithm="fedavg")[0], rtol=0, atol=ROUNDING
    )


@pytest.mark.parametrize("patience", [None, 0, 2])
def test_fadas_is_amsgrad_whose_step_shrinks_with_the_staleness(patience: int | None) -> None:
    """From v = u = tau^2, as for all adaptive servers; 1 / tau_max is below server_lr from 4 on."""
    p = {"server_lr": 0.3, "beta1": 0.9, "beta2": 0.8, "tau": 0.01}
    algorithm, rng = (
        with_constants(Fadas, beta1=0.9, beta2=0.8, patience=patience)(server_lr=0.3, tau=0.01),
        np.random.default_rng(2),
    )
    model = torch.zeros(SIZE, dtype=torch.float64)
    state, sizes = begin(algorithm, model), np.array([1.0, 2.0, 5.0])
    expected, m = np.zeros(SIZE), np.zeros(SIZE)
    v = u = np.full(SIZE, p["tau"] ** 2)
    for number in range(ROUNDS):
        stale = int(rng.integers(0, 9))
        changes = rng.normal(size=(3, SIZE)) / (1 + number % 7)
        delta = sizes / sizes.sum() @ changes
        m = p["beta1"] * m + (1 - p["beta1"]) * delta
        v = p["beta2"] * v + (1 - p["beta2"]) * delta**2
        u = np.maximum(u, v)
        eta = min(p["server_lr"], 1 / stale) if stale > (math.inf if patience is None else patience) else 0.3
        expected = expected + eta * m / (np.sqrt(u) + p["tau"])
        arrived = updates(model, changes, sizes)
        model, state = algorithm.aggregate(model, Updates(**{**vars(arrived), "staleness": stale}), state)
        assert model.numpy() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("server", "taken"),
    [
        ({"name": "fedbuff", "buffer": 2, "staleness": "constant"}, True),
        ({"name": "semi_synchronous", "period_s": 1.0, "staleness": "constant"}, True),
        ({"name": "fedbuff", "buffer": 2}, False),
        ({"name": "fedbuff", "buffer": 2, "staleness": "constant", "server_lr": 0.5}, False),
        ({"name": "fedasync", "staleness": "constant"}, False),
        ("synchronous", True),
    ],
)
def test_ca2fl_takes_updates_as_they_were_sent(server: object, taken: bool) -> None:
    data = {
        "name": "cached",
        "devices": {"count": 4},
        "radio": {"sharing": "dynamic", "scheduler": "round_robin"},
        "sessions": {"name": "schedule", "count": 1, "rounds": 2},
        "rounds": {"server": server},
        "learning": {"dataset": "digits", "model": "logistic", "partition": "iid", "algorithm": "ca2fl"},
    }
    if taken:
        load_scenario(data)
        return
    with pytest.raises(EdgeflError, match="set staleness: constant"):
        load_scenario(data)
