"""Test FEDL on quadratic losses: a hand-computed step, rounds in closed form, an optimum that averaging misses."""

import numpy as np
import torch

from edgefl.learning.algorithms import RECEIVED_GRADIENT, ServerState, Trained, Updates
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.fedl import Fedl

CURVATURES = np.array([1.0, 2.0, 4.0])  # F_k(w) = a_k / 2 |w - b_k|^2
OPTIMA = np.array([[3.0, 0.0], [-1.0, 2.0], [0.5, -2.0]])
SHARES = np.array([0.5, 0.3, 0.2])
BEST = SHARES * CURVATURES @ OPTIMA / (SHARES @ CURVATURES)  # the point where the mean gradient is 0
EXACT = 1e-9


def slopes(w: torch.Tensor) -> torch.Tensor:
    """Return gradients [3, 2] of the three losses, at a common point or at one point each."""
    return torch.from_numpy(CURVATURES)[:, None] * (w - torch.from_numpy(OPTIMA))


def round_of(
    algorithm: Fedl | FedAvg, w: torch.Tensor, state: ServerState, steps: int, lr: float
) -> tuple[torch.Tensor, ServerState]:
    """Run a round of gradient descent on all three devices with the algorithm's own methods."""
    local = w.expand(3, -1).clone()
    own = {RECEIVED_GRADIENT: slopes(w)}
    for _ in range(steps):
        local = local - lr * algorithm.correct(slopes(local), local, w, state, own)
    ones = torch.ones(3, dtype=torch.float64)
    trained = Trained(local, w, ones, ones, lr, {}, gradients=slopes(local))
    sent = algorithm.upload(trained, state, own)
    updates = Updates(sent.rows, w, torch.from_numpy(SHARES), 1.0, ones, ones, lr, sent.notes)
    return algorithm.aggregate(w, updates, state)


def begun(algorithm: Fedl) -> tuple[torch.Tensor, ServerState]:
    w = torch.tensor([1.0, 1.0], dtype=torch.float64)
    return w, algorithm.init_state(w, {}, None)  # type: ignore[arg-type]  # asks no device


def test_two_rounds_of_one_step_by_hand() -> None:
    """The first coordinate starts at w = 1, with lr = 0.1 and eta = 0.5.

    The gradients are 1 (1 - 3) = -2, 2 (1 + 1) = 4 and 4 (1 - 0.5) = 2. A plain step leads to 1.2, 0.6 and 0.8, with
    weighted mean 0.6 + 0.18 + 0.16 = 0.94. At these models the gradients are -1.8, 3.2 and 1.2, and G = -0.9 + 0.96 +
    0.24 = 0.3. In the second round, first steps are along eta G = 0.15 only, so all reach 0.94 - 0.015 = 0.925.
    """
    algorithm = Fedl(eta=0.5)
    w, state = round_of(algorithm, *begun(algorithm), steps=1, lr=0.1)
    assert float(w[0]) == np.float64(0.94) or abs(float(w[0]) - 0.94) < EXACT
    assert abs(float(state["slope"][0]) - 0.3) < EXACT
    w, state = round_of(algorithm, w, state, steps=1, lr=0.1)
    assert abs(float(w[0]) - 0.925) < EXACT


def test_exact_minimisers_follow_the_recursion() -> None:
    """A device that minimises exactly moves by -eta G / a_k, where its gradient is grad F_k(w) - eta G.

    Hence w+ = w - eta h G with h = sum p_k / a_k, and G+ = grad F(w) - eta G.
    """
    eta, h = 0.3, SHARES @ (1 / CURVATURES)
    algorithm = Fedl(eta=eta)
    w, state = round_of(algorithm, *begun(algorithm), steps=400, lr=0.2)
    for _ in range(6):
        at, slope = w.numpy(), state["slope"].numpy()
        gradient = SHARES @ slopes(w).numpy()
        w, state = round_of(algorithm, w, state, steps=400, lr=0.2)
        assert np.abs(w.numpy() - (at - eta * h * slope)).max() < EXACT
        assert np.abs(state["slope"].numpy() - (gradient - eta * slope)).max() < EXACT


def test_it_converges_to_the_optimum_and_plain_averaging_does_not() -> None:
    """The recursion's matrix has spectral radius r < 1, so that after n rounds the error is of order r^n.

    Plain averaging of exact minimisers stays at the mean of the devices' own optima.
    """
    eta, rounds = 0.3, 120
    h, curvature = SHARES @ (1 / CURVATURES), SHARES @ CURVATURES
    radius = np.abs(np.linalg.eigvals([[1.0, -eta * h], [curvature, -eta]])).max()
    assert radius < 0.9
    algorithm = Fedl(eta=eta)
    w, state = begun(algorithm)
    for _ in range(rounds):
        w, state = round_of(algorithm, w, state, steps=100, lr=0.2)
    assert np.abs(w.numpy() - BEST).max() < 100 * radius**rounds + EXACT
    plain, _ = round_of(FedAvg(), w, {}, steps=400, lr=0.2)
    assert np.abs(plain.numpy() - SHARES @ OPTIMA).max() < EXACT
    assert np.abs(SHARES @ OPTIMA - BEST).max() > 0.1
