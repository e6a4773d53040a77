"""Draw the number of slots of a long transfer directly instead of slot by slot."""

import math

import numpy as np

from edgefl.channel.carrier import Carrier, check_snr
from edgefl.channel.rates import rate_moments_of


def slots_renewal(
    payload_bits: float,
    carrier: Carrier,
    *,
    snr: float,
    correlation: float,
    rng: np.random.Generator,
    first_slot: int = 0,
) -> int:
    """Draw the number of slots of a long transfer from the distribution of `Flow.slots_exact`.

    Rates are never negative, so the transfer lasts beyond slot n if and only if the first n slots do not suffice: P(N
    > n) = P(S_n < need), need = Z / (W tau). S_n is close to normal with mean mu n and variance s2 n
    (`rate_moments`), hence N = ceil(T), where T solves mu T - need = X sqrt(s2 T) for a standard normal X. With b =
    need / mu and a = sqrt(s2 / (need mu)),

        T = b (a X / 2 + sqrt(1 + (a X / 2)^2))^2,   E N = need / mu + s2 / (2 mu^2) + 1/2.

    T has the Birnbaum-Saunders distribution (J. Appl. Probab. 1969): T is an inverse Gaussian number with mean
    need/mu and shape need^2/s2, to which, with probability 1/2, s2/mu^2 times a chi-squared number with one degree of
    freedom is added. The inverse Gaussian number alone is the first passage time of a Brownian motion, which may fall
    again after crossing `need`; without the chi-squared term, transfers are too short by s2/(2 mu^2), 0.7 % of 1,000
    slots at 0 dB and 10 m/s. T grows with the payload for the same X, so paired studies stay paired.

    With the weights of a TDD frame, the mean of S_n is known slot by slot: the transfer, which starts in first_slot,
    ends in the slot in which its airtime reaches mean(w) T.

    Args:
        carrier: the link's share of the band.
        snr: linear mean SNR on that share, > 0.
        correlation: rho between slots, |rho| < 1.
        rng: source of one standard normal number.
        first_slot: index of the first slot, which matters only with weights.

    Returns:
        Number of slots, >= 1; 0 for an empty payload.

    Raises:
        ValueError: an argument is out of range, or the transfer would take more than MAX_SLOTS.

    Left out: the state of the fading when the transfer begins, and the skewness of S_n. Both effects vanish over many
    coherence times 1 / (1 - rho); fidelity `auto` requires AUTO_COHERENCE_TIMES of them.
    """
    check_snr(snr)
    need = carrier.need(payload_bits)
    if need == 0:
        return 0
    carrier.refuse_endless(need, snr)
    mean, long_run_variance = rate_moments_of(snr, correlation, carrier)
    half = 0.5 * math.sqrt(long_run_variance / (need * mean)) * float(rng.standard_normal())
    slots = need / mean * (half + math.sqrt(1.0 + half * half)) ** 2
    frame = carrier.frame
    return math.ceil(slots) if frame.plain else frame.slots(first_slot, slots * frame.mean)
