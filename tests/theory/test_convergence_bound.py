"""Test J's Theorem 1 and I's Lemma 1 on a quadratic problem, whose constants are known exactly.

Device k has samples d with losses (w - d)' A (w - d) / 2 and gradients A (w - d): beta and mu are the largest and
smallest eigenvalues of A, the noise is sigma_k^2 = trace(A Cov_k A), and with zeta1 = 1 the divergence is
zeta2 = sum_k a_k |A (c_k - c)|^2 at every w, where c_k is the mean of device k's samples and c that of all samples.
"""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from edgefl.analysis.reports.theory import constants, lemma1, theorem1
from edgefl.learning.federation.theory import of_gradients

A = np.diag([2.0, 1.0, 0.25])
BETA, MU = 2.0, 0.25
DEVICES, SAMPLES, BATCH, STEPS, ROUNDS, LR = 4, 12, 3, 2, 15, 0.02
REPEATS = 200
RNG = np.random.default_rng(5)
DATA = [RNG.normal(k, 1.0, (SAMPLES + 4 * k, 3)) for k in range(DEVICES)]
SIZES = np.array([len(own) for own in DATA])
SHARES = SIZES / SIZES.sum()
CENTRES = np.array([own.mean(axis=0) for own in DATA])
CENTRE = SHARES @ CENTRES
VARIANCES = np.array([np.trace(A @ np.cov(own.T, ddof=1) @ A) for own in DATA])
ZETA2 = float(SHARES @ (((CENTRES - CENTRE) @ A) ** 2).sum(axis=1))


def loss(w: np.ndarray) -> float:
    return float(
        sum(
            a * np.einsum("ni,ij,nj->n", w - d, A, w - d).mean() / 2
            for a, d in zip(SHARES, DATA, strict=True)
        )
    )


def one_round(w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    local = []
    for own in DATA:
        v = w.copy()
        for _ in range(STEPS):
            batch = own[rng.choice(len(own), BATCH, replace=False)]
            v -= LR * A @ (v - batch.mean(axis=0))
        local.append(v)
    return SHARES @ np.array(local)


def a_run(seed: int) -> pd.DataFrame:
    """Return a run's measurements, computed as `learning.theory` computes them."""
    rng, w, rows = np.random.default_rng(seed), np.array([6.0, -4.0, 3.0]), []
    noise = SHARES * (1 - BATCH / SIZES) * VARIANCES / BATCH
    for round_ in range(1, ROUNDS + 1):
        new = one_round(w, rng)
        before, after = (torch.tensor((x - CENTRES) @ A) for x in (w, new))
        found = of_gradients(list(before), list(after), SHARES, float(np.linalg.norm(new - w)))
        where = {"variant": "v", "seed": seed, "cell": 0, "session": 1, "round": round_}
        losses = {"theory_lr": LR, "theory_loss": loss(w), "theory_loss_after": loss(new)}
        noises = {"theory_noise_steps": STEPS * noise.sum(), "theory_noise_drift": (STEPS - 1) * noise.sum()}
        rows.append(
            {**where, **losses, **found, **noises, "theory_steps_min": STEPS, "theory_steps_max": STEPS}
        )
        w = new
    return pd.DataFrame(rows)


def test_estimated_constants_are_the_known_ones() -> None:
    """The estimated divergence is exact; secant slopes stay below beta, and equal it in the steepest direction."""
    found = constants(a_run(0)).iloc[0]
    assert found.zeta2 == pytest.approx(ZETA2)
    assert MU <= found.beta_median <= found.beta <= BETA * (1 + 1e-12)
    step = torch.tensor([0.5, 0.0, 0.0])
    slope = of_gradients([torch.zeros(3)], [torch.tensor(A).float() @ step], np.ones(1), 0.5)
    assert slope["theory_smoothness"] == pytest.approx(BETA)
    assert of_gradients([torch.zeros(3)], [torch.zeros(3)], np.ones(1), 0.0)["theory_smoothness"] is None


def test_the_bound_holds_with_the_known_constants() -> None:
    """Means over repeats estimate the expectations, and the bound exceeds the mean by over 4 standard errors."""
    runs = [theorem1(a_run(seed), beta=BETA, zeta2=ZETA2) for seed in range(REPEATS)]
    left = np.array([run["gradient2"].mean() for run in runs])
    right = np.array([run["bound"].mean() for run in runs])
    error = (right - left).std(ddof=1) / math.sqrt(REPEATS)
    assert (right - left).mean() > 4 * error
    # all terms are positive, so the bound does not hold merely because the loss decreases
    assert (np.array([[run[term].mean() for term in "abcd"] for run in runs]) > 0).all()


def test_the_terms_by_hand() -> None:
    """For e = 2, beta = 2, eta = 0.1 and zeta1 = 1, x = 4 * 4 * 0.01 * 2 = 0.32 and Lambda = 0.32 / 0.68 = 8/17."""
    where = {"variant": "v", "seed": 1, "cell": 0, "session": 1, "round": 1}
    loss = {"theory_lr": 0.1, "theory_loss": 3.0, "theory_loss_after": 2.0, "theory_gradient2": 5.0}
    noise = {"theory_noise_steps": 4.0, "theory_noise_drift": 2.0}
    row = {**where, **loss, **noise, "theory_steps_min": 2, "theory_steps_max": 2}
    found = theorem1(pd.DataFrame([row]), beta=2.0, zeta2=0.5).iloc[0]
    slack = 9 / 17
    assert found.control == pytest.approx(8 / 17)
    assert found.a == pytest.approx(2 * 1.0 / (0.1 * slack))
    assert found.b == pytest.approx(2 * 2 * 0.1 * 4 / slack)
    assert found.c == pytest.approx(2 * 4 * 0.01 * 2 / slack)
    assert found.d == pytest.approx(8 * 4 * 0.01 * 2 * 0.5 / slack)
    assert found.lr_limit_steps == pytest.approx((0.5 - 0.25) / 2)
    assert found.lr_limit_drift == pytest.approx(1 / (2 * 2 * math.sqrt(2 * 2)))


def test_the_drift_term_grows_with_pairs_of_steps() -> None:
    """For e = 3, e (e - 1) = 6, so x = 4 * 4 * 0.0025 * 6 = 0.24 and Lambda = 0.24 / 0.76 = 6/19."""
    row = {"variant": "v", "seed": 1, "cell": 0, "session": 1, "round": 1}
    row |= {"theory_lr": 0.05, "theory_loss": 3.0, "theory_loss_after": 2.0, "theory_gradient2": 5.0}
    row |= {
        "theory_noise_steps": 4.0,
        "theory_noise_drift": 2.0,
        "theory_steps_min": 3,
        "theory_steps_max": 3,
    }
    found = theorem1(pd.DataFrame([row]), beta=2.0, zeta2=0.5).iloc[0]
    assert found.control == pytest.approx(6 / 19)
    assert found.d == pytest.approx(8 * 4 * 0.0025 * 6 * 0.5 / (13 / 19))
    assert found.lr_limit_drift == pytest.approx(1 / (2 * 2 * math.sqrt(2 * 6)))


def test_a_rate_beyond_the_limit_has_no_bound_and_one_below_it_has() -> None:
    row = a_run(0).iloc[[0]]
    limit = float(theorem1(row, beta=BETA, zeta2=ZETA2)["lr_limit_drift"].iloc[0])
    for factor, bounded in ((0.999, True), (1.001, False)):
        found = theorem1(row.assign(theory_lr=factor * limit), beta=BETA, zeta2=ZETA2).iloc[0]
        assert math.isfinite(found.bound) == bounded
    # with four steps (0.5 - (1/4 - 1)^2) < 0, so no learning rate meets J's condition
    four = theorem1(row.assign(theory_steps_min=4, theory_steps_max=4), beta=BETA, zeta2=ZETA2)
    assert float(four["lr_limit_steps"].iloc[0]) < 0


def test_the_lemma_by_hand() -> None:
    """A client with distribution (1, 0) over two universal samples is replaced by a client with (0, 1); D = 4.

    Then psi(g, g+1) = (1, 0)/4 - (0, 1)/4 = (1/4, -1/4), psi(g+1, g) is the negative, and both minima are -1/4.
    """
    found = lemma1(
        strong_convexity=2.0,
        gradient_bound=3.0,
        types=[np.array([1.0, 0.0])],
        types_after=[np.array([0.0, 1.0])],
        samples=4,
        samples_after=4,
    )
    assert found == pytest.approx((2 * math.sqrt(3 * math.pi / 48) + 3 * 0.5) / 2)


def test_minimisers_move_no_further_than_their_bound() -> None:
    """I (11) holds when device 0 leaves, with equality if the shift is along the flattest direction."""
    after = SHARES[1:] @ CENTRES[1:] / SHARES[1:].sum()
    bound = np.linalg.norm(A @ (CENTRE - after)) / MU
    assert np.linalg.norm(CENTRE - after) <= bound
    flat = np.array([0.0, 0.0, 0.7])
    assert np.linalg.norm(A @ flat) / MU == pytest.approx(0.7)
