"""Compare adaptive servers over long random sequences of updates with their papers' formulas in float64."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgefl.config import registry
from edgefl.learning.algorithms import Algorithm, ServerState, Updates
from edgefl.learning.algorithms.adaptive_fedavg import AdaptiveFedAvg
from edgefl.learning.algorithms.flash import Flash
from tests.tools.constants import made

DEVICES, SIZE, ROUNDS = 3, 7, 50
SIZES = np.array([1.0, 2.0, 5.0])
AGREE = 1e-6  # relative difference of the model after each round
LR = 0.1

Rule = Callable[..., np.ndarray]  # (mean change, staleness) -> step of the server


def adaptive(next_square: Callable[[Any, np.ndarray], np.ndarray], p: dict[str, Any]) -> Rule:
    """Implement algorithm 2 of Reddi et al."""
    m, v = np.zeros(1), np.full(1, p["tau"] ** 2)

    def step(delta: np.ndarray, stale: int = 0) -> np.ndarray:
        nonlocal m, v
        m = p["beta1"] * m + (1 - p["beta1"]) * delta
        v = next_square(v, delta)
        return p["server_lr"] * m / (np.sqrt(v) + p["tau"])

    return step


def flash(p: dict[str, Any]) -> Rule:
    """Implement algorithm 1 of Panchal et al., with norms per coordinate and a denominator of at least tau."""
    m, v, d = np.zeros(1), np.full(1, p["tau"] ** 2), np.zeros(1)

    def step(delta: np.ndarray, stale: int = 0) -> np.ndarray:
        nonlocal m, v, d
        m = p["beta1"] * m + (1 - p["beta1"]) * delta
        before, v = v, p["beta2"] * v + (1 - p["beta2"]) * delta**2
        gap = delta**2 - v
        sums = np.abs(gap) + before
        beta3 = np.where(sums > 0, before / np.where(sums > 0, sums, 1.0), 1.0)
        d = beta3 * d + (1 - beta3) * gap
        return p["server_lr"] * m / np.maximum(np.sqrt(v) - d + p["tau"], p["tau"])

    return step


def fedavgm(p: dict[str, Any]) -> Rule:
    v = np.zeros(1)

    def step(delta: np.ndarray, stale: int = 0) -> np.ndarray:
        nonlocal v
        v = p["beta"] * v + delta
        return p["server_lr"] * v

    return step


def fadas(p: dict[str, Any]) -> Rule:
    """Implement AMSGrad from v = u = tau^2; if staleness exceeds `patience`, server_lr is at most 1 / staleness."""
    m, v = np.zeros(1), np.full(1, p["tau"] ** 2)
    u, patience = v, math.inf if p.get("patience") is None else p["patience"]

    def step(delta: np.ndarray, stale: int = 0) -> np.ndarray:
        nonlocal m, v, u
        m = p["beta1"] * m + (1 - p["beta1"]) * delta
        v = p["beta2"] * v + (1 - p["beta2"]) * delta**2
        u = np.maximum(u, v)
        eta = min(p["server_lr"], 1 / stale) if stale > patience else p["server_lr"]
        return eta * m / (np.sqrt(u) + p["tau"])

    return step


RULES: dict[str, Callable[[dict[str, Any]], Rule]] = {
    "flash": flash,
    "fedadagrad": lambda p: adaptive(lambda v, d: v + d**2, p),
    "fedadam": lambda p: adaptive(lambda v, d: p["beta2"] * v + (1 - p["beta2"]) * d**2, p),
    "fedyogi": lambda p: adaptive(lambda v, d: v - (1 - p["beta2"]) * d**2 * np.sign(v - d**2), p),
    "fedavgm": fedavgm,
    "fadas": fadas,
}
SHARE = st.floats(0.0, 0.99)
PARAMETERS = {
    "server_lr": st.floats(1e-3, 2.0),
    "beta1": SHARE,
    "beta2": SHARE,
    "beta": SHARE,
    "tau": st.floats(1e-4, 0.5),
    "patience": st.sampled_from([None, 0, 2]),
}


def updates(model: torch.Tensor, changes: np.ndarray, sizes: np.ndarray) -> Updates:
    ones = torch.ones(len(changes), dtype=torch.float64)
    shares = torch.from_numpy(sizes / sizes.sum())
    return Updates(model + torch.from_numpy(changes), model, shares, 0.5, ones, ones, LR, {})


def begin(algorithm: Algorithm, model: torch.Tensor) -> ServerState:
    return algorithm.init_state(model, {}, None)  # asks nobody


@st.composite
def sequences(draw: st.DrawFn) -> np.ndarray:
    """Draw changes [rounds, devices, size] whose scale jumps, with rounds and coordinates that do not change."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scales = draw(st.lists(st.sampled_from([0.0, 1e-4, 1e-2, 0.3, 3.0]), min_size=1, max_size=5))
    scale = np.repeat(scales, -(-ROUNDS // len(scales)))[:ROUNDS]
    moves = rng.random(SIZE) < 0.8
    return scale[:, None, None] * moves * rng.normal(size=(ROUNDS, DEVICES, SIZE))


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), changes=sequences())
def test_fifty_steps_follow_the_definition(name: str, data: st.DataObject, changes: np.ndarray) -> None:
    kind = registry.get("algorithms", name)
    own = {
        key: data.draw(PARAMETERS[key], key)
        for key in PARAMETERS
        if hasattr(kind, key) or key in kind.model_fields
    }
    algorithm, rule = made(kind, **own), RULES[name](own)
    model = torch.linspace(-1, 1, SIZE, dtype=torch.float64)
    state, expected = begin(algorithm, model), model.numpy().copy()
    for number, change in enumerate(changes):
        stale = 7 * number % 9
        arrived = replace(updates(model, change, SIZES), staleness=stale)
        model, state = algorithm.aggregate(model, arrived, state)
        expected = expected + rule(SIZES / SIZES.sum() @ change, stale)
        assert np.abs(model.numpy() - expected).max() <= AGREE * np.abs(expected).max()
        assert name != "fadas" or model.numpy() == pytest.approx(expected)
        expected = model.numpy().copy()  # compare individual steps, without accumulated rounding


@settings(max_examples=15)
@given(changes=sequences(), betas=st.tuples(SHARE, SHARE, SHARE))
def test_the_rate_of_adaptive_fedavg(changes: np.ndarray, betas: tuple[float, float, float]) -> None:
    b1, b2, b3 = betas
    algorithm = made(AdaptiveFedAvg, beta1=b1, beta2=b2, beta3=b3)
    model = torch.linspace(-1, 1, SIZE, dtype=torch.float64)
    state = begin(algorithm, model)
    w = model.numpy().copy()
    m, centre, v, r, corrected = np.zeros(SIZE), w, 0.0, 0.0, 0.0
    assert algorithm.learning_rate(LR, state) == LR
    for t, change in enumerate(changes, start=1):
        model, state = algorithm.aggregate(model, updates(model, change, SIZES), state)
        w = model.numpy()
        v, last = b2 * v + (1 - b2) * float(((w - centre) ** 2).mean()), corrected
        corrected = v / (1 - b2**t)
        m = b1 * m + (1 - b1) * w
        centre = m / (1 - b1**t)
        r = b3 * r + (1 - b3) * (corrected / last if t > 1 and last > 0 else 1.0)
        rate = LR * min(1.0, r / (1 - b3**t))
        # if the variance is only a rounding error, the ratio is, too
        if last > 1e-20 or t == 1:
            assert algorithm.learning_rate(LR, state) == pytest.approx(rate, rel=AGREE)
        r, corrected = float(state["ratio"]), float(state["variance"]) / (1 - b2**t)
        v = float(state["variance"])


def one_step(algorithm: Flash, change: float, state: dict[str, float]) -> tuple[float, ServerState]:
    """Return the step of a single coordinate and the next state, from a state of scalars."""
    model = torch.zeros(1, dtype=torch.float64)
    tensors = {name: torch.tensor([value], dtype=torch.float64) for name, value in state.items()}
    moved = updates(model, np.array([[change]]), np.ones(1))
    after, kept = algorithm.aggregate(model, moved, tensors)
    return float(after), kept


def test_where_nothing_has_ever_moved_d_stays() -> None:
    """If v and Delta are 0, beta3 = 0/0 counts as 1, so that d does not change."""
    still = {"mean": 0.0, "square": 0.0, "disparity": 0.25}
    step, kept = one_step(Flash(tau=0.01), 0.0, still)
    assert step == 0.0
    assert float(kept["disparity"]) == 0.25


@pytest.mark.parametrize("disparity", [0.4, 0.5, 0.504, 0.51, 3.0])
def test_the_denominator_never_falls_below_tau(disparity: float) -> None:
    """With d near sqrt(v) = 0.5, the denominator is tau; otherwise the step would grow, and finally be reversed."""
    algorithm = made(Flash, beta1=0.5, beta2=0.99, server_lr=1.0, tau=0.01)
    # Delta^2 = v leaves v unchanged; the gap of 0 makes beta3 = 1, which leaves d unchanged
    step, kept = one_step(algorithm, 0.5, {"mean": 0.0, "square": 0.25, "disparity": disparity})
    assert float(kept["disparity"]) == pytest.approx(disparity)
    assert step == pytest.approx(0.25 / max(0.5 - disparity + 0.01, 0.01))


def test_flash_steps_further_than_adam_when_changes_grow() -> None:
    """When changes jump from 0.05 to 0.3, FLASH makes a larger step, which is its purpose."""
    steps = []
    for disparity in (1.0, 0.0):
        algorithm = made(Flash, disparity=disparity, beta2=0.9, server_lr=0.05)
        model = torch.zeros(1, dtype=torch.float64)
        state = begin(algorithm, model)
        for change in [0.05] * 40 + [0.3]:
            before = model
            model, state = algorithm.aggregate(model, updates(model, np.array([[change]]), np.ones(1)), state)
        steps.append(float(model - before))
    assert steps[0] > 1.2 * steps[1] > 0


@pytest.mark.parametrize("name", ["fedadagrad", "fedadam", "fedyogi", "flash", "oracle"])
def test_all_devices_alike_or_by_data(name: str) -> None:
    """Changes 1 and 4, of devices with 3 and 1 samples, have the mean 1.75 by data, and 2.5 with equal weights."""
    changes, sizes = np.array([[1.0], [4.0]]), np.array([3.0, 1.0])
    model = torch.zeros(1, dtype=torch.float64)
    for weighting, mean in (("data", 1.75), ("equal", 2.5)):
        algorithm = made(registry.get("algorithms", name), beta1=0.0, weighting=weighting)
        _, state = algorithm.aggregate(model, updates(model, changes, sizes), begin(algorithm, model))
        assert float(state["mean"]) == mean
