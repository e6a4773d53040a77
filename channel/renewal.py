"""The number of slots of a long transfer, drawn directly instead of slot by slot."""

import math

import numpy as np
import numpy.typing as npt

from channel.limits import needed_rate, refuse_endless
from channel.rates import rate_moments, rate_moments_of
from channel.tdd import frame


def slots_renewal(
    payload_bits: float,
    *,
    bandwidth_hz: float,
    snr: float,
    slot_s: float,
    correlation: float,
    rng: np.random.Generator,
    weights: npt.ArrayLike | None = None,
    cap: float | None = None,
    first_slot: int = 0,
) -> int:
    """A random number of slots with the law of `slots_exact` for long transfers.

    Rates are never negative, so the transfer lasts beyond slot n exactly when the first n slots fall short:
    P(N > n) = P(S_n < need), need = Z / (W tau). S_n is close to normal with mean mu n and variance s2 n
    (`rate_moments`), hence N = ceil(T) where T solves mu T - need = X sqrt(s2 T) for one standard normal X:
    with b = need / mu and a = sqrt(s2 / (need mu)),

        T = b (a X / 2 + sqrt(1 + (a X / 2)^2))^2,   E N = need / mu + s2 / (2 mu^2) + 1/2.

    This is the law of Birnbaum and Saunders (J. Appl. Probab. 1969). It is the inverse Gaussian law with
    mean need/mu and shape need^2/s2, to which s2/mu^2 times a chi-square of one degree is added every
    second time. The inverse Gaussian alone is the first passage of a Brownian motion, which also runs back
    down after it has crossed; without the addition it is short by s2/(2 mu^2), 0.7 % of 1,000 slots at
    0 dB and 10 m/s. T grows with the payload for the same X, so paired studies stay paired.

    With the weights of a TDD frame the mean of S_n is known slot by slot: the transfer ends in the slot in
    which its airtime reaches mean(w) T, with the phase that first_slot gives it.

    Args:
        correlation: rho between slots, |rho| < 1.
        rng: gives one standard normal.
        weights: [period] of a TDD frame; None: every slot in full.
        first_slot: index of the first slot; it matters with weights only.

    Returns:
        Number of slots, >= 1; 0 for an empty payload.

    Raises:
        ValueError: an argument is out of range, or the transfer would take more than MAX_SLOTS.

    Left out: the state of the fading when the transfer begins, and the skewness of S_n. Both fade over
    many coherence times 1 / (1 - rho); `auto` asks for AUTO_COHERENCE_TIMES of them.
    """
    need = needed_rate(payload_bits, bandwidth_hz, snr, slot_s)
    if need == 0:
        return 0
    of = frame(weights)
    refuse_endless(need, snr, of, cap)
    mean, long_run_variance = rate_moments_of(snr, correlation, of, cap)
    half = 0.5 * math.sqrt(long_run_variance / (need * mean)) * float(rng.standard_normal())
    slots = need / mean * (half + math.sqrt(1.0 + half * half)) ** 2
    return math.ceil(slots) if of.plain else of.slots(first_slot, slots * of.mean)


def slots_renewal_many(
    payload_bits: npt.ArrayLike,
    *,
    bandwidth_hz: npt.ArrayLike,
    snr: npt.ArrayLike,
    slot_s: float,
    correlation: npt.ArrayLike,
    rng: np.random.Generator,
    weights: npt.ArrayLike | None = None,
    cap: float | None = None,
    first_slot: npt.ArrayLike = 0,
) -> npt.NDArray[np.int64]:
    """`slots_renewal` of many transfers at once: less than 1 us each from some thousand on.

    The numbers are those that `slots_renewal` draws one after another from the same rng, where no payload
    is empty.

    Args:
        payload_bits, bandwidth_hz, snr, correlation, first_slot: [transfers], or one for all.
        rng: gives one standard normal per transfer.

    Returns:
        [transfers] slots.

    Raises:
        ValueError: an argument of a transfer is out of range, or it would take more than MAX_SLOTS.
    """
    payload, bandwidth, gamma, rho, first = np.broadcast_arrays(
        *(np.asarray(value, dtype=float) for value in (payload_bits, bandwidth_hz, snr, correlation)),
        np.asarray(first_slot, dtype=np.int64),
    )
    if not (np.all(payload >= 0) and np.all(payload < math.inf)):
        raise ValueError(f"payload_bits must be >= 0 and finite, got {payload}")
    if not (np.all(bandwidth > 0) and np.all(bandwidth < math.inf) and 0 < slot_s < math.inf):
        raise ValueError(f"bandwidth_hz and slot_s must be > 0, got {bandwidth} Hz and {slot_s} s")
    of = frame(weights)
    mean, long_run_variance = rate_moments(gamma, rho, weights=weights, cap=cap)
    need = payload / (bandwidth * slot_s)
    if need.size:
        # the first that is refused raises
        longest = np.argmax(need / mean)
        refuse_endless(float(need.flat[longest]), float(gamma.flat[longest]), of, cap)

    # an empty payload takes no slot, whatever is drawn
    with np.errstate(divide="ignore", invalid="ignore"):
        half = 0.5 * np.sqrt(long_run_variance / (need * mean)) * rng.standard_normal(need.shape)
        slots = need / mean * (half + np.sqrt(1.0 + half * half)) ** 2
    slots = np.where(need > 0, slots, 0.0)
    return np.ceil(slots).astype(np.int64) if of.plain else of.slots_many(first, slots * of.mean)
