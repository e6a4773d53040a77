"""Compare every algorithm with a derivation in NumPy and float64 (`softmax.py`), and test its degenerate cases.

Each derivation follows the algorithm's paper. APFL and Ditto train a second model, early stopping ends each device's
training separately, HypCluster and FedDrift let each device choose its initial model, `local_only` exchanges no
models, and top-k compression, which is not a registered algorithm, counts bits.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from edgefl.config import registry
from edgefl.learning.algorithms import Algorithm, Sent, ServerState, Trained, Vectors
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.data.batches import draw_batches
from edgefl.learning.updates.device_side import LOCAL_MODEL, PERSONAL_MODEL
from tests.tools.derived import underived
from tests.unit.learning.softmax import (
    ALL,
    BATCH,
    DEVICES,
    EPOCHS,
    EXACT,
    HELD,
    LR,
    OWN,
    RHO,
    SIZES,
    M,
    P,
    descend,
    fedavg,
    gradient,
    kept,
    logits_of,
    loss_and_gradient,
    named,
    plan,
    plans,
    played,
    shares,
    start,
    track,
    travel,
)
from tests.unit.learning.test_adaptive_servers import RULES

Array = np.ndarray

# ---- algorithms that are not registered


class EarlyStopping(FedAvg):
    """Panchal et al., FLASH, ICML 2023: train until the validation loss falls by less than gamma / e in epoch e."""

    gamma: float = 0.05
    apart: float = 0.3

    def keeps_apart(self) -> float:
        return self.apart

    def stop(self, epoch: Tensor, loss: Tensor, before: Tensor) -> Tensor:
        return before - loss < self.gamma / epoch


class TopK(FedAvg):
    """FedAvg that sends only the largest changes and keeps the rest for later (error feedback)."""

    device_vectors: ClassVar = ("residual",)

    count: int = 5

    def upload(self, trained: Trained, state: ServerState, own: Vectors) -> Sent:
        wanted = trained.local - trained.start + own["residual"]
        largest = wanted.abs().topk(self.count, dim=1).indices
        sparse = torch.zeros_like(wanted).scatter(1, largest, wanted.gather(1, largest))
        return Sent(trained.start + sparse, bits=torch.full((len(wanted),), self.count * (32 + 5)))

    def keep(self, trained: Trained, sent: Tensor, state: ServerState, own: Vectors) -> Vectors:
        return {"residual": trained.local - sent + own["residual"]}


# ---- each algorithm as in its paper; returns the model, and the state of the server (0) and of the devices (1)


def fedprox(w: Array, mu: float) -> Array:
    for ids, batches in plans():
        pulled = lambda g, v, start=w: g + mu * (v - start)  # noqa: E731
        w = shares(ids) @ [descend(w, batches, j, pulled) for j in range(len(ids))]
    return w


def scaffold(x: Array, server_lr: float) -> tuple[Array, Array, Array]:
    """Follow algorithm 1 of the paper, option II, with the sum of the gradients' weights in x - y as K eta_l."""
    c, c_k = np.zeros(M), np.zeros((DEVICES, M))
    for ids, batches in plans():
        ys, changes = [], []
        for j, k in enumerate(ids):
            y = descend(x, batches, j, lambda g, v, k=k, c=c: g - c_k[k] + c)
            plus = c_k[k] - c + (x - y) / (travel(batches.steps[j]) * LR)
            ys.append(y)
            changes.append(plus - c_k[k])
            c_k[k] = plus
        x = x + server_lr * (shares(ids) @ (np.array(ys) - x))
        c = c + P[ids] @ changes
    return x, c, c_k


def fedl(w: Array, eta: float) -> tuple[Array, Array]:
    """Follow the authors' code: SGD in round 1; later, eta G at the last models replaces the gradient at w."""
    slope: Array | None = None
    for ids, batches in plans():
        by = [0 * w if slope is None else eta * slope - loss_and_gradient(w, OWN[k])[1] for k in ids]
        rows = [descend(w, batches, j, lambda g, v, b=b: g + b) for j, b in enumerate(by)]
        slope = shares(ids) @ [loss_and_gradient(row, OWN[k])[1] for row, k in zip(rows, ids, strict=True)]
        w = shares(ids) @ rows
    return w, slope


def cosine(z: Array, r: Array) -> tuple[Array, Array]:
    """Return the similarity [B, 1] and its gradient by z, r / (|z| |r|) - s z / |z|^2."""
    n_z, n_r = (np.linalg.norm(v, axis=1, keepdims=True) for v in (z, r))
    s = (z * r).sum(1, keepdims=True) / (n_z * n_r)
    return s, r / (n_z * n_r) - s * z / n_z**2


def moon(w: Array, mu: float, tau: float) -> tuple[Array, Array]:
    """The loss -log(e^(s_g/tau) / (e^(s_g/tau) + e^(s_p/tau))) has slope sigma((s_p - s_g)/tau)/tau (s_p' - s_g')."""
    previous: dict[int, Array] = {}
    for ids, batches in plans():
        rows = []
        for j, k in enumerate(ids):
            before = previous.get(k, w)

            def push(x: Array, z: Array, w: Array = w, last: Array = before) -> Array:
                s_g, d_g = cosine(z, logits_of(w, x))
                s_p, d_p = cosine(z, logits_of(last, x))
                return mu / (1 + np.exp(-(s_p - s_g) / tau)) / tau * (d_p - d_g)

            rows.append(descend(w, batches, j, push=push))
        previous |= dict(zip(ids, rows, strict=True))
        w = shares(ids) @ rows
    return w, np.array([previous[k] for k in range(DEVICES)])


def fedacg(w: Array, lambda_: float, beta: float) -> tuple[Array, Array]:
    m = np.zeros(M)
    for ids, batches in plans():
        start = w + lambda_ * m
        pulled = lambda g, v, start=start: g + beta * (v - start)  # noqa: E731
        rows = np.array([descend(start, batches, j, pulled) for j in range(len(ids))])
        m = lambda_ * m + shares(ids) @ (rows - start)
        w = w + m
        # w+ = w + lambda m + Delta is the mean of the local models, which start from w + lambda m
        assert np.abs(w - shares(ids) @ rows).max() < 1e-12
    return w, m


def served(w: Array, name: str, equal: bool = False, **parameters: Any) -> Array:
    """Take the server's step from the mean change, by a rule of RULES, such as algorithm 2 of Reddi et al."""
    rule = RULES[name](parameters)
    for ids, batches in plans():
        weights = np.full(len(ids), 1 / len(ids)) if equal else shares(ids)
        w = w + rule(weights @ [descend(w, batches, j) - w for j in range(len(ids))])
    return w


def fednova(w: Array) -> Array:
    for ids, batches in plans():
        a = np.array([travel(steps) for steps in batches.steps])
        d = np.array([(w - descend(w, batches, j)) / (LR * a[j]) for j in range(len(ids))])
        w = w - (shares(ids) @ a) * LR * (shares(ids) @ d)
    return w


def feddyn(w: Array, alpha: float) -> tuple[Array, Array, Array]:
    h, h_k = np.zeros(M), np.zeros((DEVICES, M))
    for ids, batches in plans():
        how = [lambda g, v, k=k, w=w: g - h_k[k] + alpha * (v - w) for k in ids]
        rows = np.array([descend(w, batches, j, how[j]) for j in range(len(ids))])
        h_k[ids] -= alpha * (rows - w)
        h = h - alpha * (P[ids] @ (rows - w))
        w = shares(ids) @ rows - h / alpha
    return w, h, h_k


def feddc(x: Array, alpha: float) -> tuple[Array, Array, Array, Array]:
    """Follow the authors' code: use SCAFFOLD's control variates, and add all devices' mean drift to the model."""
    c, c_k, h_k = np.zeros(M), np.zeros((DEVICES, M)), np.zeros((DEVICES, M))
    for ids, batches in plans():
        ys, before = [], c_k.copy()
        for j, k in enumerate(ids):
            y = descend(x, batches, j, lambda g, v, k=k, c=c, x=x: g - c_k[k] + c + alpha * (v + h_k[k] - x))
            c_k[k] = before[k] - c + (x - y) / (travel(batches.steps[j]) * LR)
            h_k[k] += y - x
            ys.append(y)
        c = c + P @ (c_k - before)
        x = shares(ids) @ ys + P @ h_k
    return x, c, P @ h_k, h_k


def adaptive_fedavg(w: Array) -> Array:
    """Use one learning rate for all coordinates, from the mean model's variance, with bias-corrected moments."""
    b1, b2, b3 = 0.5, 0.6, 0.7
    m, centre, v, ratio, last, lr = np.zeros(M), w, 0.0, 0.0, 0.0, LR
    for t, (ids, batches) in enumerate(plans(), start=1):
        w = shares(ids) @ [descend(w, batches, j, lr=lr) for j in range(len(ids))]
        v = b2 * v + (1 - b2) * ((w - centre) ** 2).mean()
        corrected = v / (1 - b2**t)
        m = b1 * m + (1 - b1) * w
        centre = m / (1 - b1**t)
        ratio = b3 * ratio + (1 - b3) * (corrected / last if last > 0 else 1.0)
        last, lr = corrected, LR * min(1.0, ratio / (1 - b3**t))
    return w


def ca2fl(w: Array, eta: float) -> tuple[Array, Array]:
    """Keep each device's last change, as the server does, and use the mean of these changes."""
    h_k = np.zeros((DEVICES, M))
    for ids, batches in plans():
        deltas = np.array([descend(w, batches, j) - w for j in range(len(ids))])
        w = w + eta * (P @ h_k + shares(ids) @ (deltas - h_k[ids]))
        h_k[ids] = deltas
    return w, h_k


def with_personal(
    w: Array, point: Callable[..., Array], step_of: Callable[..., Array]
) -> tuple[Array, Array]:
    """Train w and v in the same steps; v's step is `step_of(g, v, start)`, with the gradient g at `point(v, w)`."""
    v = np.full((DEVICES, M), np.nan)
    for ids, batches in plans():
        rows = []
        for j, k in enumerate(ids):
            local, own = w, w if np.isnan(v[k]).any() else v[k]
            velocity, velocity_v = np.zeros(M), np.zeros(M)
            for step in range(batches.steps[j]):
                g, g_v = gradient(local, batches, j, step), gradient(point(own, local), batches, j, step)
                velocity, velocity_v = RHO * velocity + g, RHO * velocity_v + step_of(g_v, own, w)
                local, own = local - LR * velocity, own - LR * velocity_v
            v[k] = own
            rows.append(local)
        w = shares(ids) @ rows
    return w, v


def apfl(w: Array, a: float) -> tuple[Array, Array]:
    return with_personal(w, lambda v, w: a * v + (1 - a) * w, lambda g, v, start: a * g)


def ditto(w: Array, mu: float, lr_factor: float) -> tuple[Array, Array]:
    return with_personal(w, lambda v, w: v, lambda g, v, start: lr_factor * (g + mu * (v - start)))


def local_only(w: Array) -> tuple[Array, Array]:
    own = np.tile(w, (DEVICES, 1))
    for ids, batches in plans():
        own[ids] = [descend(own[k], batches, j) for j, k in enumerate(ids)]
    return w, own


def early_stopping(w: Array, gamma: float) -> tuple[Array, list[list[int]]]:
    epochs = []
    for ids, batches in plans(EarlyStopping()):
        rows, ended = [], []
        for j in range(len(ids)):
            local, velocity, last = w, np.zeros(M), loss_and_gradient(w, batches.validation[j])[0]
            for epoch in range(1, EPOCHS + 1):
                for step in range((epoch - 1) * batches.per_epoch[j], epoch * batches.per_epoch[j]):
                    velocity = RHO * velocity + gradient(local, batches, j, step)
                    local = local - LR * velocity
                now = loss_and_gradient(local, batches.validation[j])[0]
                fell, last = last - now, now
                assert abs(fell - gamma / epoch) > 10 * EXACT, "rounding decides no device's last epoch"
                if fell < gamma / epoch:
                    break
            rows.append(local)
            ended.append(epoch)
        w = shares(ids) @ rows
        epochs.append(ended)
    return w, epochs


def hypcluster(w: Array) -> tuple[Array, list[Array]]:
    models = track(CLUSTERS)[0].state["models"].double().numpy().copy()
    assert np.abs(models[0] - w).max() < EXACT
    assert 0.2 < np.std(models[1] - w) < 0.8, "noise of 21 numbers of standard deviation 0.5"
    choices = []
    for ids, batches in plans():
        losses = [[loss_and_gradient(model, OWN[k])[0] for model in models] for k in ids]
        chosen = np.argmin(losses, 1)
        rows = np.array([descend(models[c], batches, j) for j, c in enumerate(chosen)])
        for c in set(chosen):
            weights = SIZES[ids] * (chosen == c)
            models[c] = weights / weights.sum() @ rows
        choices.append(chosen)
        w = shares(ids) @ rows
    return w, choices


def top_k(w: Array, count: int) -> tuple[Array, Array]:
    residual = np.zeros((DEVICES, M))
    for ids, batches in plans():
        changes = []
        for j, k in enumerate(ids):
            wanted = descend(w, batches, j) - w + residual[k]
            change = np.where(np.abs(wanted) >= np.sort(np.abs(wanted))[-count], wanted, 0.0)
            residual[k] = wanted - change
            changes.append(change)
        w = w + shares(ids) @ changes
    return w, residual


CLUSTERS, APFL = named("hypcluster", spread=0.5), named("apfl", alpha=0.3)
DITTO = named("ditto", mu=0.4, lr_factor=0.7)
ADAPTIVE = {"server_lr": 0.1, "beta1": 0.6, "tau": 0.01}


def by_rule(name: str, of: str | None = None, **given: Any) -> tuple[Algorithm, Any, str]:
    parameters = {name: value for name, value in given.items() if name != "equal"}
    weighting = {"weighting": "equal"} if given.get("equal") else {}
    return named(name, **parameters, **weighting), partial(served, name=of or name, **given), ""


# algorithm, its derivation, and the names of other state of the server or the devices
DERIVED: list[tuple[Algorithm, Callable[..., Any], str]] = [
    (FedAvg(), fedavg, ""),
    (named("fedprox", mu=0.7), partial(fedprox, mu=0.7), ""),
    (named("scaffold", server_lr=0.8), partial(scaffold, server_lr=0.8), "server.control, devices.control"),
    (named("fedl", eta=0.6), partial(fedl, eta=0.6), "server.slope"),
    (named("moon", mu=1.3, tau=0.5), partial(moon, mu=1.3, tau=0.5), f"devices.{LOCAL_MODEL}"),
    (named("fedacg", momentum=0.6, beta=0.3), partial(fedacg, lambda_=0.6, beta=0.3), "server.momentum"),
    by_rule("fedavgm", beta=0.8, server_lr=0.9),
    by_rule("fedadagrad", **ADAPTIVE),
    by_rule("fedadam", **ADAPTIVE, beta2=0.9),
    by_rule("fedyogi", **ADAPTIVE, beta2=0.9),
    by_rule("oracle", "fedyogi", **ADAPTIVE, beta2=0.9),  # one of the oracle's two models
    by_rule("flash", **ADAPTIVE, beta2=0.9, validation=0),
    by_rule("flash", **ADAPTIVE, beta2=0.99, validation=0, equal=True),
    by_rule("fadas", **ADAPTIVE, beta2=0.9),
    (named("fednova"), fednova, ""),
    (named("feddyn", alpha=0.2), partial(feddyn, alpha=0.2), "server.gradient, devices.gradient"),
    (named("feddc", alpha=0.2), partial(feddc, alpha=0.2), "server.control, server.drift, devices.drift"),
    (named("adaptive_fedavg", beta1=0.5, beta2=0.6, beta3=0.7), adaptive_fedavg, ""),
    (named("ca2fl", server_lr=0.8), partial(ca2fl, eta=0.8), "devices.cached"),
    (APFL, partial(apfl, a=0.3), f"devices.{PERSONAL_MODEL}"),
    (DITTO, partial(ditto, mu=0.4, lr_factor=0.7), f"devices.{PERSONAL_MODEL}"),
    (EarlyStopping(), partial(early_stopping, gamma=0.05), ""),
    (CLUSTERS, hypcluster, ""),
    (named("feddrift"), fedavg, ""),  # the loss has no jump here, unlike in test_drift_methods.py
    (named("local_only"), local_only, "devices.model"),
    (TopK(), partial(top_k, count=5), "devices.residual"),
]
ROUNDING = 3e-5  # tolerance for servers that divide by differences of small numbers
AS_FEDAVG = ("fedavg", "apfl", "ditto", "feddrift")  # their global models equal FedAvg's here


def name_of(value: object) -> str:
    return type(value).__name__ if isinstance(value, Algorithm) else ""


def test_every_algorithm_has_a_derivation() -> None:
    ours = [one for one, _, _ in DERIVED if not isinstance(one, EarlyStopping | TopK)]
    assert not underived("algorithms", ours)


@pytest.mark.parametrize(("algorithm", "derivation", "holds"), DERIVED, ids=name_of)
def test_rounds_follow_the_derivation(
    algorithm: Algorithm, derivation: Callable[..., Any], holds: str
) -> None:
    """After three rounds, the model and the state of server and devices equal the results of the derivation."""
    one, states, _ = played(algorithm)
    found = derivation(start())
    model, *vectors = found if isinstance(found, tuple) else (found,)
    rounding = ROUNDING if type(algorithm).__name__ == "Flash" else EXACT
    assert np.abs(one.model.numpy() - model).max() < rounding
    for held, vector in zip(holds.split(", ") if holds else (), vectors, strict=False):
        who, _, name = held.partition(".")
        ours = one.state[name].numpy() if who == "server" else kept(states, name)
        divided = 1 / LR if name == "control" else 1.0
        assert np.abs(ours - vector).max() < divided * EXACT
    if registry.name_of("algorithms", algorithm) not in AS_FEDAVG:
        assert np.abs(model - fedavg(start())).max() > 100 * EXACT, "the test can tell them apart"


# ---- special cases that equal FedAvg or another algorithm

LARGE = 1e6  # a tau of adaptive servers far above any change
FLASH = {**ADAPTIVE, "beta2": 0.9, "disparity": 0.0, "validation": 0}
AS_FEDAVG_IS = [
    named("fedprox", mu=0),
    named("moon", mu=0),
    named("fedacg", momentum=0, beta=0),
    named("fedavgm", beta=0, server_lr=1),
    named("fedadagrad", tau=LARGE, server_lr=2 * LARGE, beta1=0.0),
    named("fedyogi", tau=LARGE, server_lr=2 * LARGE, beta1=0.0),
    named("feddyn", alpha=0),
    named("adaptive_fedavg", beta3=1.0),
    named("apfl", alpha=0),
    named("ditto"),
    named("hypcluster", models=1),
    named("hypcluster", models=3, spread=0.0),
    named("feddrift", models=1, delta=1e-9),
    named("feddrift"),
]
DEGENERATE: list[tuple[Algorithm, Algorithm, int]] = [
    *((one, FedAvg(), 3) for one in AS_FEDAVG_IS),
    (named("fedadam", tau=LARGE, server_lr=(1 + 0.81**0.5) * LARGE, beta1=0.0, beta2=0.81), FedAvg(), 1),
    (named("feddc", alpha=0, server_lr=0.8), named("scaffold", server_lr=0.8), 3),
    (named("flash", **FLASH), named("fedadam", **ADAPTIVE, beta2=0.9), 3),
]


@pytest.mark.parametrize(("algorithm", "other", "rounds"), DEGENERATE, ids=name_of)
def test_degenerate_cases(algorithm: Algorithm, other: Algorithm, rounds: int) -> None:
    ends = [played(one, rounds)[0].model for one in (algorithm, other)]
    torch.testing.assert_close(*ends, rtol=1.3e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("algorithm", "ids"),
    [(named("fednova"), ALL), (named("scaffold"), [5]), (named("ca2fl"), ALL), (named("fedl", eta=1), [5])],
    ids=name_of,
)
def test_with_equal_steps_one_device_or_everybody_it_is_fedavg(algorithm: Algorithm, ids: list[int]) -> None:
    """FedNova with equal steps, SCAFFOLD and FEDL with one device, and CA2FL with all devices equal FedAvg."""
    ends, sizes = [], {k: HELD[k] for k in ids}
    for one in (track(algorithm)[0], track(FedAvg())[0]):
        one.open(one.model, sizes)
        for round_ in range(3):
            generators = [np.random.default_rng([round_, k]) for k in ids]
            batches = draw_batches([OWN[k] for k in ids], [3] * len(ids), BATCH, generators)
            one.train(ids, batches, LR, [])
            one.aggregate(ids, sizes)
        ends.append(one.model)
    torch.testing.assert_close(*ends, atol=EXACT, rtol=0)


# ---- properties


def test_feddyn_begins_a_session_with_mean_zero() -> None:
    one, states, _ = played(named("feddyn", alpha=0.2))
    before = kept(states, "gradient")
    one.open(one.model, {1: HELD[1], 2: HELD[2]})
    after = kept(states, "gradient")
    assert np.abs(shares([1, 2]) @ after[[1, 2]]).max() < EXACT
    assert np.abs((after[1] - after[2]) - (before[1] - before[2])).max() < EXACT
    assert np.array_equal(after[[0, 3, 4, 5, 6]], before[[0, 3, 4, 5, 6]]), "only participants' states change"
    assert not one.state["gradient"].any()


MOMENTUM = ("fedacg", "fedavgm", "fedadagrad", "fedadam", "fedyogi", "flash")


@pytest.mark.parametrize("algorithm", [named(name) for name in MOMENTUM], ids=name_of)
def test_server_momentum_restarts_with_a_session(algorithm: Algorithm) -> None:
    one, _, _ = played(algorithm)
    used = one.state
    one.open(one.model, HELD)
    fresh = algorithm.init_state(one.model, {}, None)  # asks nobody
    for name, vector in one.state.items():
        assert torch.equal(vector, fresh[name])
        assert not torch.equal(vector, used[name])


@pytest.mark.parametrize(
    ("algorithm", "name"), [(named("scaffold"), "control"), (APFL, PERSONAL_MODEL)], ids=name_of
)
def test_lost_updates_leave_no_trace(algorithm: Algorithm, name: str) -> None:
    """Devices that are cut off keep their vectors unchanged, and have no weight in the mean."""
    one, states = track(algorithm)
    rows = one.train(ALL, plan(algorithm, ALL, 1), LR, []).round.rows.double().numpy().copy()
    one.aggregate([2, 5], HELD)
    assert np.abs(one.model.numpy() - shares([2, 5]) @ rows[[2, 5]]).max() < EXACT
    changed = np.abs(kept(states, name)).max(1) > 0
    assert changed.tolist() == [k in (2, 5) for k in ALL]
