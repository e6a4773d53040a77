"""Allocate shares of the band, powers and clocks to a round's participants, in closed form or by optimisation.

The devices share the band and send at the same time; device k sends its bits on a share b_k for a time t_k. With a
fraction x_k of its maximum power, the device sends z_k = b_k t_k log2(1 + g_k x_k / b_k) bits per Hz. Only the area a
= b t matters: sending z bits in an area takes a power per Hz of (2^(z/a) - 1) / g.

If an amplifier draws no power, P = 0, more radiated power costs nothing and saves time or bandwidth, both of which
have a price, so the maximum power, x = 1, is best. The solutions for P > 0 and P = 0 agree in the limit: as P falls,
the best spectral efficiency y, with h(y) = price g / (P t) (see `price`), grows until the maximum power limits it.
"""

from dataclasses import dataclass

import numpy as np
from numpy import exp, expm1, log1p, log2

from edgefl.channel.schedulers import BoolArray
from edgefl.channel.units import FloatArray

LN2 = float(np.log(2.0))
STEPS = 200  # limit on Newton steps; about ten are needed
CLOSE, FITS = 1e-10, 1e-6  # relative tolerance of the earliest end; how far shares may sum above 1
LOOSE, NEAR = 1e-2, 1e-6  # steps of logarithms that count as short, and that end the search
STRIDE = 4.0  # longest step of the price's logarithm
NOTHING = 1e-30  # W
WEAK, FAINT = 1e-3, 1e-13  # SNR below which four terms of a series are accurate to 1e-12; the lowest SNR


@dataclass(frozen=True)
class Uploads:
    """Computations and uploads of n devices, as arrays [n].

    Args:
        bits_hz: z, bits per Hz of the whole band. gain: g, SNR on the whole band with the maximum power.
        amplifier_w: P, power of the amplifier at maximum power; 0 if it does not depend on the radiated power.
        send_w: other power that a device draws while it sends.
        cycles: c, processor cycles. clock_hz: f, maximum clock. capacitance: xi; computing takes xi c f^2 joules.
    """

    bits_hz: FloatArray
    gain: FloatArray
    amplifier_w: FloatArray
    send_w: FloatArray
    cycles: FloatArray
    clock_hz: FloatArray
    capacitance: FloatArray

    @property
    def shortest_s(self) -> FloatArray:
        """Seconds [n] that devices compute at their maximum clock."""
        return self.cycles / self.clock_hz


@dataclass(frozen=True)
class Allocation:
    """Shares of the band, fractions of the maximum power, clocks, and the resulting sending times, as arrays [n]."""

    shares: FloatArray
    power: FloatArray
    clock_hz: FloatArray
    sent_s: FloatArray

    def energy_j(self, of: Uploads) -> FloatArray:
        """Return the joules [n] that devices spend on computing and sending."""
        sending = (of.send_w + of.amplifier_w * self.power) * self.sent_s
        return sending + of.capacitance * of.cycles * self.clock_hz**2


def price(y: FloatArray) -> FloatArray:
    """Return h(y) = 1 + 2^y (y ln 2 - 1), the marginal saving of area at y bits/s/Hz."""
    u = y * LN2
    return np.where(u < 1e-4, u * u * (0.5 + u / 3.0), 1.0 + exp(u) * (u - 1.0))


def efficiency_of(h: FloatArray) -> FloatArray:
    """Return the inverse of `price`, y = (1 + W((h - 1) / e)) / ln 2, with Lambert's W on its main branch."""
    from scipy.special import lambertw

    small = np.sqrt(2.0 * h)  # near the branch point, W((h - 1) / e) + 1 loses digits
    u = np.where(h < 1e-9, small - small**2 / 3.0, 1.0 + lambertw((h - 1.0) / np.e).real)
    return np.asarray(u / LN2)


def _rate_of(snr: FloatArray) -> FloatArray:
    """Return log2(1 + q) for an SNR q, accurate even for small q."""
    return np.where(snr < WEAK, log1p(snr) / LN2, log2(1.0 + snr))


def least_share(rate: FloatArray, gain: FloatArray) -> FloatArray:
    """Return the share on which maximum power carries `rate` bit/s per Hz of the whole band; inf if no share does.

    b log2(1 + g / b) = r: with v = 1 + g / b and k = r ln 2 / g, ln v = k (v - 1), on the lower branch of W.
    """
    from scipy.special import lambertw

    k = rate * LN2 / gain
    with np.errstate(invalid="ignore", divide="ignore"):
        snr = -lambertw(-k * exp(-k), -1).real / k - 1.0
        left = np.maximum(1.0 - k, FAINT)  # near the branch point, W loses digits, unlike its series
        weak = left * (2 + left * (8 / 3 + left * (28 / 9 + left * (464 / 135 + left * 1496 / 405))))
        return np.where(k < 1.0, gain / np.where(weak < WEAK, weak, snr), np.inf)


def fedl(of: Uploads, kappa: float, least_power: float = 0.0, least_clock_hz: float = 0.0) -> Allocation:
    """Minimise joules + kappa x (slowest device's computing time + sum of all sending times).

    Dinh et al., IEEE/ACM Trans. Networking, 2021: all devices compute for T = (2 sum xi c^3 / kappa)^(1/3), but no
    shorter than the slowest device at its maximum clock (alpha in the paper is 2 xi); device k sends on the whole
    band for t_k = z_k ln 2 / (1 + W((kappa g / P - 1) / e)), but no shorter than at its maximum power. Here devices
    do not take turns; each sends on a share t_k / sum(t) of the band for sum(t) seconds, with the same power per Hz,
    bits and amplifier energy.

    At `least_clock_hz`, a device computes for L_k = c_k / least_clock_hz. With devices in descending order of L, and
    T_m from the sum over the first m devices, T = max_m min(T_m, L_m). `least_power` is relative to maximum power.
    """
    cubes = of.capacitance * of.cycles**3
    with np.errstate(divide="ignore", invalid="ignore"):
        longest_s = np.where(of.cycles > 0, of.cycles / np.minimum(least_clock_hz, of.clock_hz), 0.0)
        longest_turns_s = of.bits_hz / _rate_of(of.gain * least_power)
    by_length = np.argsort(-longest_s, kind="stable")
    priced_s = (2.0 * cubes[by_length].cumsum() / kappa) ** (1.0 / 3.0)
    compute_s = max(float(np.minimum(priced_s, longest_s[by_length]).max()), float(of.shortest_s.max()))
    saves = of.amplifier_w > 0
    paid_w = np.where(saves, of.amplifier_w, 1.0)
    best = np.where(saves, efficiency_of((kappa + of.send_w) * of.gain / paid_w), np.inf)
    turns_s = np.minimum(of.bits_hz / np.minimum(best, _rate_of(of.gain)), longest_turns_s)
    full = expm1(of.bits_hz / turns_s * LN2) / of.gain
    shares = turns_s / turns_s.sum()
    clock_hz = np.clip(np.maximum(of.cycles, 1e-300) / max(compute_s, 1e-300), least_clock_hz, of.clock_hz)
    clock_hz = np.where(of.cycles > 0, clock_hz, of.clock_hz)
    return Allocation(shares, np.minimum(1.0, full) * shares, clock_hz, np.full(len(shares), turns_s.sum()))


def least_time(of: Uploads, begun_s: FloatArray) -> tuple[float, Allocation]:
    """Minimise the end of the last upload, with full power and clocks and shares for which all uploads end together.

    The sum of the shares is a decreasing, convex function of the end, so Newton steps from an end that is too early
    never overshoot the root.

    Args:
        begun_s: [n] time at which each device can begin to compute.

    Returns:
        The time at which the last upload ends, and the allocation.
    """
    ready_s = begun_s + of.shortest_s
    # lower bound: each device needs this time even with the whole band
    end_s = float((ready_s + of.bits_hz / _rate_of(of.gain)).max()) * (1.0 + CLOSE)
    for _ in range(STEPS):
        sent_s = end_s - ready_s
        shares = least_share(of.bits_hz / sent_s, of.gain)
        falls = of.bits_hz / (sent_s**2 * share_costs(of.gain / shares))
        over = float(shares.sum()) - 1.0
        step_s = over / float(falls.sum())
        if (
            step_s <= CLOSE * end_s and over <= FITS
        ):  # second test, since shares of weak links depend on the last digits of the time
            break
        end_s += step_s
    end_s *= 1.0 + CLOSE  # an end slightly too early would need more than the whole band
    shares = least_share(of.bits_hz / (end_s - ready_s), of.gain)
    shares = shares / max(1.0, float(shares.sum()))
    return end_s, Allocation(shares, np.ones(len(shares)), of.clock_hz, end_s - ready_s)


def share_costs(snr: FloatArray) -> FloatArray:
    """Return d rate / d share at maximum power in bit/s/Hz: log2(1 + q) - q / ((1 + q) ln 2) for an SNR q."""
    # use a series, since the difference of nearly equal numbers loses all digits
    low = snr**2 * (1 / 2 - snr * (2 / 3 - snr * (3 / 4 - snr * 4 / 5))) / LN2
    return np.where(snr < WEAK, low, _rate_of(snr) - snr / ((1.0 + snr) * LN2))


def least_energy(
    of: Uploads,
    begun_s: FloatArray,
    soonest: tuple[float, Allocation],
    end_s: float,
    near: Allocation | None = None,
) -> Allocation:
    """Minimise the joules of computing and sending under the constraint that all uploads end by end_s.

    For a given price of the band, devices are independent, and each has one unknown, its sending time; its share
    follows in closed form, and its clock from the remaining time. At the right price, the shares sum to 1. Newton
    steps find times and price together. If `end_s` cannot be met, the result is the allocation of `least_time`.

    Args:
        soonest: allocation from `least_time` for the same devices.
        near: optimum for slightly different links, from which the search starts.
    """
    soonest_s, fastest = soonest
    if end_s <= soonest_s * (1 + 1e-9):
        return fastest
    window_s = end_s - begun_s
    longest_s = window_s - of.shortest_s  # longest sending times, at maximum clock
    shortest_s = of.bits_hz * LN2 / of.gain * (1 + 1e-12)  # shortest sending times, with an infinite band
    longest, shortest = np.log(longest_s), np.log(shortest_s)
    if near is None:  # start halfway between the shortest and longest times, with the price at equal shares
        t = 0.5 * (shortest_s + longest_s)
        y = np.minimum(of.bits_hz * len(t) / t, _rate_of(of.gain * len(t)))
        price_j = float(_worth_j(of, window_s, t, y).mean())
    else:
        t = np.clip(near.sent_s, shortest_s, longest_s)
        y = of.bits_hz / (near.shares * t)
        price_j = float(_worth_j(of, window_s, t, y).max())
    log_t, log_price = np.log(t), float(np.log(price_j))
    low, high, close = -np.inf, np.inf, LOOSE
    for _ in range(STEPS):
        log_t, at, move, held = _sending_times(of, window_s, float(exp(log_price)), log_t, close)
        # extrapolate the sum by the steps that times still have to take; times depend on the price
        along = np.where(held, 0.0, at.gain_by_price / at.falls_by_t)
        sum_ = float(at.share.sum())
        moved = float((at.share_by_t * move).sum()) / sum_
        above = np.log(sum_) + moved
        falls = float((at.share_by_price + at.share_by_t * along).sum()) / sum_
        # if all devices send at maximum power, the price does not affect their times
        step = -above / falls if falls < 0 else float(np.copysign(STRIDE, above))
        if abs(moved) < 0.5 * abs(above):  # otherwise `above` may have the wrong sign
            low, high = (log_price, high) if above > 0 else (low, log_price)
        place = log_price + float(np.clip(step, -STRIDE, STRIDE))
        if not low < place < high:
            place = 0.5 * (low + high) if np.isfinite(high - low) else log_price + np.copysign(STRIDE, above)
        step, log_price = place - log_price, place
        log_t = np.clip(log_t + move + along * step, shortest, longest)
        if abs(step) < NEAR:
            break
        close = min(LOOSE, max(NEAR, step**2))
    t = exp(log_t)
    best, least = _priced(of, window_s, t, float(exp(log_price))).share, least_share(of.bits_hz / t, of.gain)
    spare = np.maximum(0.0, best - least)
    b = least + spare * max(0.0, 1.0 - float(least.sum())) / max(float(spare.sum()), NOTHING)
    if not b.sum() <= 1.0 + FITS:  # links so weak that rounded times give useless shares
        return fastest
    b = b / max(1.0, float(b.sum()))
    power = np.minimum(1.0, b * expm1(of.bits_hz / (b * t) * LN2) / of.gain)
    computes = of.cycles > 0
    clock_hz = np.minimum(of.clock_hz, of.cycles / np.where(computes, window_s - t, 1.0))
    return Allocation(b, power, np.where(computes, clock_hz, of.clock_hz), t)


def _circuit_w(of: Uploads, window_s: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the cost in W, outside the amplifier, of sending longer; its part due to computing; and computing times.

    Computing has window - t seconds, so another second of sending adds 2 xi c^3 / (window - t)^3 joules.
    """
    compute_s = np.where(of.cycles > 0, window_s - t, 1.0)
    cubes_w = 2.0 * of.capacitance * (of.cycles / compute_s) ** 3
    return np.maximum(of.send_w + cubes_w, NOTHING), cubes_w, compute_s


def _worth_j(of: Uploads, window_s: FloatArray, t: FloatArray, y: FloatArray) -> FloatArray:
    """Return [n] the value in J of the whole band to a device that sends for a time t at y bit/s/Hz.

    The value is the energy that a larger share saves in the amplifier or, if the amplifier draws nothing, by a
    shorter time at maximum power.
    """
    amplifier_j = t * of.amplifier_w / of.gain * price(y)
    takes_w, _, _ = _circuit_w(of, window_s, t)
    time_j = takes_w * t**2 * share_costs(of.gain * t * y / of.bits_hz) / of.bits_hz
    return np.where(of.amplifier_w > 0, amplifier_j, time_j)


def _sending_times(
    of: Uploads, window_s: FloatArray, band_j: float, begin: FloatArray, close: float
) -> tuple[FloatArray, "_Priced", FloatArray, BoolArray]:
    """Find, by Newton steps with bisection, the logarithms of the best sending times for a given price of the band.

    Args:
        begin: [n] logarithms of the times from which the search starts.
        close: the search ends once all steps are shorter than this.

    Returns:
        Logarithms of the times, shares at these times, the next step, and whether each device sends for as long as
        its maximum clock allows.
    """
    low, high = np.log(of.bits_hz * LN2 / of.gain), np.log(window_s - of.shortest_s)
    log_t, open_ = begin, np.ones(len(begin), dtype=bool)
    for _ in range(STEPS):
        at = _priced(of, window_s, exp(log_t), band_j)
        late = at.gain < 0
        held = (log_t >= high) & ~late & open_
        move = np.where(held, 0.0, at.gain / at.falls_by_t)
        # near infinite bandwidth, even short steps matter, as shares depend on the last digits of the time
        if np.abs(move).max() < close and np.abs(at.gain[~held]).max(initial=0.0) < 1.0:
            break
        open_ &= ~late
        low, high = np.where(late, low, log_t), np.where(late, log_t, high)
        place, middle = log_t + move, 0.5 * (low + high)
        inside = (place > low) & (place < high)
        log_t = np.where(inside | held, place, np.where(open_, high, middle))
    return log_t, at, move, held


@dataclass(frozen=True)
class _Priced:
    """Best shares of the band for given sending times and a given price of the band, with derivatives, as arrays [n].

    `..._by_t` and `..._by_price` are derivatives with respect to the logarithms of time and price.

    Attributes:
        share: best share of the band at that price.
        gain: logarithm of the ratio of the watts that more time saves to the watts that it costs; falls with time.
    """

    share: FloatArray
    share_by_t: FloatArray
    share_by_price: FloatArray
    gain: FloatArray
    falls_by_t: FloatArray
    gain_by_price: FloatArray


def _priced(of: Uploads, window_s: FloatArray, t: FloatArray, band_j: float) -> _Priced:
    """Compute the best shares for sending times t at a price of the band in J per share.

    Without a power limit, y = z / (b t) has h(y) = price g / (P t) (`efficiency_of`), and another second saves b
    price / t joules. If this y takes more than maximum power, or the amplifier draws nothing, b log2(1 + g / b) = z /
    t, and more time saves price z / (t^2 s) - P, where s is `share_costs`. More time costs `_circuit_w`.
    """
    takes_w, cubes_w, compute_s = _circuit_w(of, window_s, t)
    saves = of.amplifier_w > 0
    h = band_j * of.gain / (np.where(saves, of.amplifier_w, 1.0) * t)
    y = efficiency_of(h)
    more = exp(y * LN2)
    share = of.bits_hz / (t * y)
    by_price = h / (y * y * more * LN2**2)  # d log y by log price, and the negative of d log y by log t
    share_by_t, share_by_price = share * (by_price - 1.0), -share * by_price
    spares_w, falls, rises = share * band_j / t, 2.0 - by_price, 1.0 - by_price
    full = np.flatnonzero(~saves | (share * (more - 1.0) > of.gain))
    if len(full):
        g, z = of.gain[full], of.bits_hz[full]
        # no shorter than the sending time at infinite bandwidth
        t_full = np.maximum(t[full], z * LN2 / g * (1.0 + FAINT))
        least = least_share(z / t_full, g)
        q = g / least
        costs = share_costs(q)
        costs_by_t = q**2 * z / (t_full * least * ((1.0 + q) * costs) ** 2 * LN2)  # d log s
        limited_w = band_j * z / (t_full**2 * costs)
        share[full], share_by_t[full], share_by_price[full] = least, -z / (t_full * costs), 0.0
        spares_w[full] = np.maximum(limited_w - of.amplifier_w[full], FAINT * limited_w)
        rises[full] = limited_w / spares_w[full]
        falls[full] = rises[full] * (2.0 + costs_by_t)
    return _Priced(
        share,
        share_by_t,
        share_by_price,
        np.log(spares_w / takes_w),
        falls + 3.0 * cubes_w * t / (compute_s * takes_w),
        rises,
    )
