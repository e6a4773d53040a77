"""Compare shares, powers and clocks with those found by brute force and by a general optimiser."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, minimize, minimize_scalar

from edgefl.config import registry
from edgefl.engine.power_models import Draws, Equipment
from edgefl.engine.selectors._allocation import (
    LN2,
    WEAK,
    Allocation,
    Uploads,
    efficiency_of,
    fedl,
    least_energy,
    least_share,
    least_time,
    price,
    share_costs,
)

OPTIMUM = 1e-6  # relative error in energy; scipy's SLSQP ends within 1e-8 of its optimum
BRUTE = 1e-9
SWAP, PRICE = 1e-5, 1e-2  # relative steps of central differences; shares hardly depend on prices


def uploads(n: int, seed: int) -> Uploads:
    """Return uploads over links of 0 to 30 dB, some with circuit power, on processors whose clock matters."""
    rng = np.random.default_rng(seed)
    return Uploads(
        rng.uniform(0.005, 0.05, n),
        10 ** rng.uniform(0, 3, n),
        rng.uniform(0.1, 0.5, n),
        rng.choice([0.0, 0.1], n),
        rng.uniform(1e8, 1e9, n),
        rng.uniform(0.5e9, 2e9, n),
        rng.uniform(0.5e-28, 10e-28, n),
    )


def moved(of: Uploads, allocation: Allocation) -> np.ndarray:
    b, x = allocation.shares, allocation.power
    return np.asarray(b * np.log2(1 + of.gain * x / b) * allocation.sent_s)


def test_lambert_inverts() -> None:
    y = np.array([1e-6, 1e-3, 0.3, 4.0, 30.0])
    assert efficiency_of(price(y)) == pytest.approx(y, rel=1e-6)
    gain, share = np.array([0.1, 10.0, 1e4]), np.array([0.01, 0.3, 1.0])
    assert least_share(share * np.log2(1 + gain / share), gain) == pytest.approx(share, rel=1e-9)
    assert least_share(1.001 * gain / LN2, gain).tolist() == [np.inf] * 3  # more than any band can carry


@pytest.mark.parametrize("kappa", [1e-3, 0.05, 1.0, 50.0])
@pytest.mark.parametrize(("least_power", "least_clock_hz"), [(0.0, 0.0), (0.2, 0.6e9)])
def test_fedl_against_brute_force(kappa: float, least_power: float, least_clock_hz: float) -> None:
    """Each of FEDL's objectives has one unknown, found by a search: the computing time, or a device's turn.

    With a minimum clock, the first objective is convex between the times at which devices reach this clock.
    """
    of = replace(uploads(4, 1), send_w=np.zeros(4))
    got = fedl(of, kappa, least_power, least_clock_hz)
    least_hz = np.minimum(of.clock_hz, least_clock_hz)

    def computing(t: float) -> float:
        clock_hz = np.maximum(of.cycles / t, least_hz)
        return float((of.capacitance * of.cycles * clock_hz**2).sum() + kappa * t)

    slowest_s = float(of.shortest_s.max())
    with np.errstate(divide="ignore"):
        ends_s = sorted({slowest_s, *np.clip(of.cycles / least_hz, slowest_s, 1e3).tolist()})
    pieces = [computing(t) for t in ends_s] + [
        minimize_scalar(computing, bounds=piece, method="bounded", options={"xatol": 1e-12}).fun
        for piece in pairwise(ends_s)
    ]
    computed_s = float((of.cycles / got.clock_hz).max())
    assert np.all(got.clock_hz >= least_hz)
    assert np.all(got.clock_hz <= of.clock_hz)
    assert computing(computed_s) <= min(pieces) * (1 + BRUTE)
    turns_s = got.shares * got.sent_s
    for k in range(4):

        def sending(t: float, k: int = k) -> float:
            power = np.expm1(of.bits_hz[k] / t * LN2) / of.gain[k]
            return float(of.amplifier_w[k] * power * t + kappa * t)

        shortest_s = of.bits_hz[k] / np.log2(1 + of.gain[k])
        longest_s = of.bits_hz[k] / np.log2(1 + of.gain[k] * least_power) if least_power else 1e3
        best = minimize_scalar(
            sending, bounds=(shortest_s, longest_s), method="bounded", options={"xatol": 1e-14}
        )
        ends = (sending(shortest_s), sending(longest_s))
        assert shortest_s * (1 - BRUTE) <= turns_s[k] <= longest_s * (1 + BRUTE)
        assert sending(turns_s[k]) <= min(best.fun, *ends) * (1 + BRUTE)
    # a turn on the whole band carries the same bits as a share of the band during the time of all turns
    assert moved(of, got) == pytest.approx(of.bits_hz, rel=BRUTE)


def test_least_time_ends_all_at_once() -> None:
    of, begun_s = uploads(5, 2), np.linspace(0, 0.1, 5)
    end_s, got = least_time(of, begun_s)
    assert begun_s + of.shortest_s + got.sent_s == pytest.approx(np.full(5, end_s), rel=BRUTE)
    assert got.shares.sum() == pytest.approx(1.0, abs=1e-6)
    assert moved(of, got) == pytest.approx(of.bits_hz, rel=BRUTE)
    # with two equal devices, each has half of the band after computing, and the sending time solves one equation
    two = Uploads(*(np.full(2, value) for value in (0.02, 50.0, 0.2, 0.0, 1e8, 1e9, 1e-28)))
    sending_s = brentq(lambda t: 0.5 * np.log2(1 + 50.0 / 0.5) * t - 0.02, 1e-6, 1.0)
    assert least_time(two, np.zeros(2))[0] == pytest.approx(0.1 + sending_s, rel=1e-8)


@pytest.mark.parametrize(("n", "slack"), [(1, 1.5), (3, 1.05), (3, 4.0), (5, 20.0)])
def test_least_energy_against_an_optimiser(n: int, slack: float) -> None:
    of, begun_s = uploads(n, 3 + n), np.random.default_rng(n).uniform(0, 0.05, n)
    soonest = least_time(of, begun_s)
    end_s = slack * soonest[0]
    got = least_energy(of, begun_s, soonest, end_s)
    assert np.all(begun_s + of.cycles / got.clock_hz + got.sent_s <= end_s * (1 + BRUTE))
    assert got.shares.sum() <= 1 + BRUTE
    assert moved(of, got) == pytest.approx(of.bits_hz, rel=1e-6)
    assert got.energy_j(of).sum() <= searched_j(of, end_s - begun_s, got) * (1 + OPTIMUM)


def searched_j(of: Uploads, window_s: np.ndarray, near: Allocation) -> float:
    """Return the least energy that a general optimiser finds when it starts from an allocation."""
    n = len(window_s)

    def power(v: np.ndarray) -> np.ndarray:
        t, b = np.exp(v[:n]), np.exp(v[n:])
        return np.asarray(b * np.expm1(of.bits_hz / (b * t) * LN2) / of.gain)

    def joules(v: np.ndarray) -> float:
        t = np.exp(v[:n])
        computing = of.capacitance * of.cycles**3 / (window_s - t) ** 2
        return float(((of.send_w + of.amplifier_w * power(v)) * t + computing).sum())

    limits = [
        lambda v: 1 - np.exp(v[n:]).sum(),
        lambda v: 1 - power(v),
        lambda v: window_s - of.shortest_s - np.exp(v[:n]),
    ]
    best = minimize(
        joules,
        np.concatenate([np.log(0.97 * near.sent_s), np.log(0.97 * near.shares)]),
        constraints=[{"type": "ineq", "fun": limit} for limit in limits],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert best.status in (0, 8)  # 8: line search failed, within rounding of the optimum
    assert all(np.all(limit(best.x) >= -1e-9) for limit in limits)
    return float(best.fun)


def all_draws() -> dict[str, Draws]:
    """Return each power model's power draws, with its defaults and with each key at 0 that may be 0."""
    found: dict[tuple[float, float], tuple[str, Draws]] = {}
    for name in registry.names("power_models"):
        model: Any = registry.get("power_models", name)
        fields = model.model_fields.items()
        zero = [key for key, of in fields if any(getattr(limit, "ge", 1) == 0 for limit in of.metadata)]
        for keys in ([], *([key] for key in zero), zero):
            given = dict.fromkeys(keys, 0.0)
            for circuits_w in (0.0, 0.1):
                equipment = Equipment(0.2, 0.5, circuits_w, circuits_w)
                draws = model(**given).draws(equipment)
                what = f"{name}, {' and '.join(keys) or 'no key'} 0, circuits of {circuits_w} W"
                found.setdefault((draws.amplifier_w, draws.send_w), (what, draws))
    return dict(found.values())


DRAWS = all_draws()


@pytest.mark.parametrize("of_model", DRAWS)
@pytest.mark.parametrize("computing", ["computing", "no capacitance", "no cycles"])
def test_the_least_by_every_power_model(of_model: str, computing: str) -> None:
    """No result is nan, no optimiser finds less energy, and devices whose amplifier draws nothing send at full power.

    If transmission uses no energy, every allocation is optimal, and the optimiser is not run.
    """
    n, slack = 3, 1.6
    drawn, of = DRAWS[of_model], uploads(n, 21)
    of = replace(of, amplifier_w=np.full(n, drawn.amplifier_w), send_w=np.full(n, drawn.send_w))
    if computing != "computing":
        of = replace(of, **{computing.split()[1]: np.zeros(n)})
    soonest = least_time(of, np.zeros(n))
    got = least_energy(of, np.zeros(n), soonest, slack * soonest[0])
    in_turns = fedl(of, 0.5)
    for one in (got, in_turns):
        assert moved(of, one) == pytest.approx(of.bits_hz, rel=1e-6)
        assert one.shares.sum() <= 1 + BRUTE
        assert np.all((one.power > 0) & (one.clock_hz > 0) & (one.clock_hz <= of.clock_hz))
        if not drawn.amplifier_w:  # full power on its share, or on the whole band during its turn
            assert one.power == pytest.approx(np.ones(n) if one is got else in_turns.shares, rel=1e-6)
    spent_j = got.energy_j(of).sum()
    assert spent_j <= soonest[1].energy_j(of).sum() * (1 + BRUTE)
    if drawn.amplifier_w or drawn.send_w or computing == "computing":
        window_s = np.full(n, slack * soonest[0])
        assert spent_j <= searched_j(of, window_s, got) * (1 + OPTIMUM)
        assert got.energy_j(of).sum() <= in_turns_j(of, slack * soonest[0]) * (1 + OPTIMUM)
    else:
        assert spent_j == 0


def in_turns_j(of: Uploads, end_s: float) -> float:
    """Return the least energy at full power, by a grid search over a sending time that is common to all devices."""
    best_j = np.inf
    for t in np.linspace(0.02, 1.0, 400) * (end_s - of.shortest_s.max()):
        shares = least_share(of.bits_hz / t, of.gain)
        if shares.sum() <= 1:
            clock_hz = of.cycles / np.where(of.cycles > 0, end_s - t, 1.0)
            same = Allocation(shares, np.ones(len(shares)), clock_hz, np.full(len(shares), t))
            best_j = min(best_j, float(same.energy_j(of).sum()))
    return best_j


def test_without_an_amplifiers_draw_is_the_limit_of_a_small_one() -> None:
    """As the amplifier power P falls, the least energy approaches that for P = 0, to within P x sending time."""
    of = replace(uploads(4, 5), send_w=np.full(4, 0.5))
    soonest = least_time(of, np.zeros(4))
    none = least_energy(replace(of, amplifier_w=np.zeros(4)), np.zeros(4), soonest, 2 * soonest[0])
    for small_w in (1e-3, 1e-6, 1e-9):
        some = replace(of, amplifier_w=np.full(4, small_w))
        near = least_energy(some, np.zeros(4), soonest, 2 * soonest[0])
        less_j = none.energy_j(replace(of, amplifier_w=np.zeros(4))).sum()
        assert less_j * (1 - OPTIMUM) <= near.energy_j(some).sum()
        assert near.energy_j(some).sum() <= less_j * (1 + OPTIMUM) + small_w * none.sent_s.sum()


def test_nobody_would_swap_share_or_time() -> None:
    """At the optimum no device gains from trading share or time, for links of -10 to 50 dB and any slack.

    A slightly larger share saves the same energy for all devices below full power, and at most this energy for other
    devices. A slightly longer time saves no energy, except for devices at their highest clock.
    """
    rng = np.random.default_rng(11)
    for n in rng.integers(2, 60, 150):
        of = Uploads(
            10 ** rng.uniform(-4, 0, n) / n,
            10 ** rng.uniform(-1, 5, n),
            10 ** rng.uniform(-3, 1, n),
            rng.choice([0.0, 1e-3, 0.1, 1.0], n),
            rng.choice([0, 1, 1, 1], n) * 10 ** rng.uniform(6, 10, n),
            10 ** rng.uniform(8, 10, n),
            10 ** rng.uniform(-30, -26, n),
        )
        begun_s = rng.uniform(0, 10 ** rng.uniform(-3, 1), n)
        soonest = least_time(of, begun_s)
        end_s = (1 + 10 ** rng.uniform(-4, 2)) * soonest[0]
        got = least_energy(of, begun_s, soonest, end_s)
        b, t, window_s = got.shares, got.sent_s, end_s - begun_s
        assert b.sum() <= 1 + BRUTE
        assert moved(of, got) == pytest.approx(of.bits_hz, rel=1e-6)

        def joules(
            b: np.ndarray, t: np.ndarray, of: Uploads = of, window_s: np.ndarray = window_s
        ) -> np.ndarray:
            sending = of.amplifier_w * b * t * np.expm1(of.bits_hz / (b * t) * LN2) / of.gain + of.send_w * t
            with np.errstate(invalid="ignore"):
                computing = of.capacitance * of.cycles**3 / (window_s - t) ** 2
            return np.asarray(sending + np.where(of.cycles > 0, computing, 0.0))

        by_share = -(joules(b * (1 + SWAP), t) - joules(b * (1 - SWAP), t)) / (2 * SWAP * b)
        free, longest_s = got.power < 1 - 1e-6, window_s - of.shortest_s
        assert by_share[free] == pytest.approx(np.full(free.sum(), np.median(by_share[free])), rel=PRICE)
        assert np.all(by_share <= np.median(by_share[free]) * (1 + PRICE)) or not free.any()
        inside = free & (SWAP * t < 1e-3 * (window_s - t)) & (t < longest_s * (1 - 1e-5))
        spared = (joules(b, t * (1 - SWAP)) - joules(b, t * (1 + SWAP))) / (2 * SWAP)
        scale = np.abs(by_share * b) + of.send_w * t
        assert np.all(np.abs(spared[inside]) <= PRICE * scale[inside])


def test_weak_links_keep_their_digits() -> None:
    """At SNRs down to -90 dB, where rates are linear, all bits arrive and the shares sum to at most 1."""
    rng = np.random.default_rng(3)
    for n in rng.integers(1, 8, 16):
        of = replace(
            uploads(n, int(n)), gain=10 ** rng.uniform(-9, 3, n), amplifier_w=rng.choice([0, 0.2], n)
        )
        soonest = least_time(of, np.zeros(n))
        fast, slow = soonest[1], least_energy(of, np.zeros(n), soonest, 1.5 * soonest[0])
        for one in (fast, slow):
            assert one.shares.sum() <= 1 + BRUTE
            assert moved(of, one) == pytest.approx(of.bits_hz, rel=1e-6)
        assert slow.energy_j(of).sum() <= fast.energy_j(of).sum() * (1 + BRUTE)
    q = np.array([1e-12, 1e-6, 0.999e-3, 1.001e-3, 1.0])
    share = 1e-3 / q  # shares at a gain of 1e-3
    assert least_share(share * np.log1p(q) / LN2, np.full(5, 1e-3)) == pytest.approx(share, rel=1e-3)


def test_what_cannot_be_met_is_done_as_soon_as_possible() -> None:
    of = uploads(3, 9)
    soonest = least_time(of, np.zeros(3))
    got = least_energy(of, np.zeros(3), soonest, 0.5 * soonest[0])
    assert got.shares == pytest.approx(soonest[1].shares)


def test_what_a_share_is_worth_at_weak_links_is_its_series() -> None:
    """log2(1 + q) - q / ((1 + q) ln 2) equals its series (q^2 / 2 - 2 q^3 / 3 + ...) / ln 2 on both sides of WEAK."""
    snr = WEAK * np.array([1e-6, 0.1, 0.5, 0.999, 1.001, 3.0])
    series = sum((-1) ** k * (k - 1) / k * snr**k for k in range(2, 12)) / math.log(2)
    # after four terms the error is 5/3 q^4, below 2e-12 of the sum; beyond WEAK, 1 + q loses the last digits of q
    np.testing.assert_allclose(share_costs(snr), series, rtol=0.0, atol=2.0**-52)
    np.testing.assert_allclose(share_costs(snr[:4]), series[:4], rtol=1e-11)
