"""How many slots a transfer takes.

A transfer of Z bits that begins in slot n0 ends in the first slot in which the bits moved reach Z. Downlink
and uplink have intervals of their own (the journal paper's TDD): within its interval a transfer uses every
slot. Three fidelities: `slot` draws every slot and is exact, `renewal` draws the number of slots directly,
`auto` takes renewal where it is as good.

Bandwidths in Hz, snr linear (mean SNR of the share, before fading), slot_s is tau.
"""

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from channel.fading import BLOCK, LinkFading
from channel.ofdma import ergodic_rate, spectral_efficiency
from channel.rates import rate_moments
from channel.units import FloatArray

Fidelity = Literal["slot", "renewal", "auto"]
Direction = Literal["downlink", "uplink"]

# `auto` draws every slot of a transfer that is expected to be shorter than this ...
AUTO_SLOTS = 4000
# ... or shorter than this many coherence times 1 / (1 - rho): the normal limit behind renewal needs both
AUTO_COHERENCE_TIMES = 50

# 28 hours of 0.5 ms slots: a longer transfer is taken for one that cannot end
MAX_SLOTS = 200_000_000

# Blocks read at a time, at most; results do not depend on it.
CHUNK_BLOCKS = 8

# Numbers of the random streams that renewal draws from
_STREAMS: dict[Direction, int] = {"downlink": 0, "uplink": 1}


def slots_exact(
    payload_bits: float,
    *,
    bandwidth_hz: float,
    snr: float,
    slot_s: float,
    fading: LinkFading,
    first_slot: int,
    max_slots: int = MAX_SLOTS,
) -> int:
    """Smallest n with sum of W log2(1 + snr |h|^2) tau over slots first_slot .. first_slot + n - 1 >= Z.

    Args:
        payload_bits: Z, >= 0.
        fading: the link, read slot by slot; a static one is solved in closed form.

    Returns:
        Number of slots; 0 for an empty payload.

    Raises:
        ValueError: an argument is out of range, or the transfer would take more than max_slots.

    Source: journal paper, eq. (26). Left out: control channels, coding, retransmission.
    """
    need = _need(payload_bits, bandwidth_hz, snr, slot_s)
    if fading.static:
        return _slots_static(need, snr, fading, max_slots)
    if need == 0:
        return 0
    _refuse_endless(need, snr)
    for slots, totals in _running_totals(snr, fading, first_slot, max_slots):
        if totals[-1] >= need:
            return slots + int(np.searchsorted(totals, need)) + 1
    raise ValueError(_endless(f"its {max_slots} slots carried too little", max_slots))


def bits_in_slots(
    slots: int, *, bandwidth_hz: float, snr: float, slot_s: float, fading: LinkFading, first_slot: int
) -> float:
    """Bits that the link carries in `slots` slots from first_slot on; 0 slots carry 0.

    Raises:
        ValueError: an argument is out of range.
    """
    if slots < 0:
        raise ValueError(f"slots must be >= 0, got {slots}")
    _need(0.0, bandwidth_hz, snr, slot_s)
    if fading.static:
        return bandwidth_hz * slot_s * slots * _static_rate(snr, fading)
    total = 0.0
    for _, totals in _running_totals(snr, fading, first_slot, slots):
        total = float(totals[-1])
    return bandwidth_hz * slot_s * total


def expected_slots(payload_bits: float, *, bandwidth_hz: float, snr: float, slot_s: float) -> float:
    """need / mu with need = Z / (W tau): slots of a transfer at the ergodic rate, not rounded.

    Raises:
        ValueError: an argument is out of range.
    """
    return _need(payload_bits, bandwidth_hz, snr, slot_s) / float(ergodic_rate(snr))


def slots_renewal(
    payload_bits: float,
    *,
    bandwidth_hz: float,
    snr: float,
    slot_s: float,
    correlation: float,
    rng: np.random.Generator,
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

    Args:
        correlation: rho between slots, |rho| < 1.
        rng: gives one standard normal.

    Returns:
        Number of slots, >= 1; 0 for an empty payload.

    Raises:
        ValueError: an argument is out of range, or the transfer would take more than MAX_SLOTS.

    Left out: the state of the fading when the transfer begins, and the skewness of S_n. Both fade over
    many coherence times 1 / (1 - rho); `auto` asks for AUTO_COHERENCE_TIMES of them.
    """
    need = _need(payload_bits, bandwidth_hz, snr, slot_s)
    if need == 0:
        return 0
    _refuse_endless(need, snr)
    mean, long_run_variance = (float(moment) for moment in rate_moments(snr, correlation))
    half = 0.5 * math.sqrt(long_run_variance / (need * mean)) * float(rng.standard_normal())
    return math.ceil(need / mean * (half + math.sqrt(1.0 + half * half)) ** 2)


def transfer_slots(
    payload_bits: float,
    *,
    fidelity: Fidelity,
    bandwidth_hz: float,
    snr: float,
    slot_s: float,
    fading: LinkFading,
    first_slot: int,
    direction: Direction,
) -> int:
    """Number of slots of a transfer: a function of its arguments, whatever the fidelity.

    `slot` is `slots_exact`, `renewal` is `slots_renewal` with a draw that belongs to link, first slot and
    direction. `auto` is renewal for transfers that are expected to take AUTO_SLOTS and
    AUTO_COHERENCE_TIMES coherence times of the fading, slot otherwise. A static link is solved
    exactly in every fidelity.

    Raises:
        ValueError: an argument is out of range, or the transfer would take more than MAX_SLOTS.
    """
    if direction not in _STREAMS:
        raise ValueError(f"direction must be one of {', '.join(_STREAMS)}, got {direction!r}")
    if not _by_renewal(payload_bits, fidelity, bandwidth_hz, snr, slot_s, fading):
        return slots_exact(
            payload_bits,
            bandwidth_hz=bandwidth_hz,
            snr=snr,
            slot_s=slot_s,
            fading=fading,
            first_slot=first_slot,
        )
    return slots_renewal(
        payload_bits,
        bandwidth_hz=bandwidth_hz,
        snr=snr,
        slot_s=slot_s,
        correlation=fading.correlation,
        rng=fading.generator(first_slot, _STREAMS[direction]),
    )


def transfer_bits(
    payload_bits: float,
    slots: int,
    *,
    fidelity: Fidelity,
    bandwidth_hz: float,
    snr: float,
    slot_s: float,
    fading: LinkFading,
    first_slot: int,
    direction: Direction,
) -> float:
    """Bits moved after `slots` slots of the transfer that `transfer_slots` times with the same arguments.

    For a transfer that is cut off. Drawn slot by slot, it is what those slots carried; by renewal, the share
    of the payload that the slots are of the whole transfer. Never more than the payload.

    Raises:
        ValueError: an argument is out of range.
    """
    if not _by_renewal(payload_bits, fidelity, bandwidth_hz, snr, slot_s, fading):
        moved = bits_in_slots(
            slots,
            bandwidth_hz=bandwidth_hz,
            snr=snr,
            slot_s=slot_s,
            fading=fading,
            first_slot=first_slot,
        )
        return min(moved, payload_bits)
    if slots < 0:
        raise ValueError(f"slots must be >= 0, got {slots}")
    whole = transfer_slots(
        payload_bits,
        fidelity=fidelity,
        bandwidth_hz=bandwidth_hz,
        snr=snr,
        slot_s=slot_s,
        fading=fading,
        first_slot=first_slot,
        direction=direction,
    )
    return payload_bits * min(1.0, slots / whole) if whole else 0.0


def _by_renewal(
    payload_bits: float,
    fidelity: Fidelity,
    bandwidth_hz: float,
    snr: float,
    slot_s: float,
    fading: LinkFading,
) -> bool:
    if fidelity not in ("slot", "renewal", "auto"):
        raise ValueError(f"fidelity must be slot, renewal or auto, got {fidelity!r}")
    if fading.static or fidelity == "slot":
        return False
    if fidelity == "renewal":
        return True
    expected = expected_slots(payload_bits, bandwidth_hz=bandwidth_hz, snr=snr, slot_s=slot_s)
    coherence_times = expected * (1.0 - abs(fading.correlation))
    return expected >= AUTO_SLOTS and coherence_times >= AUTO_COHERENCE_TIMES


def _need(payload_bits: float, bandwidth_hz: float, snr: float, slot_s: float) -> float:
    """Z / (W tau), the sum of log2(1 + snr |h|^2) that the transfer has to gather."""
    if not 0 <= payload_bits < math.inf:
        raise ValueError(f"payload_bits must be >= 0 and finite, got {payload_bits}")
    if not (0 < bandwidth_hz < math.inf and 0 < slot_s < math.inf):
        raise ValueError(f"bandwidth_hz and slot_s must be > 0, got {bandwidth_hz} Hz and {slot_s} s")
    if not 0 < snr < math.inf:
        raise ValueError(f"snr must be positive and finite for a transfer to end, got {snr}")
    return payload_bits / (bandwidth_hz * slot_s)


def _refuse_endless(need: float, snr: float) -> None:
    """Refuse at once what would be read for MAX_SLOTS slots in vain."""
    # log2(1 + snr) is no less than the ergodic rate (Jensen), and always at hand
    rate = math.log1p(snr) / math.log(2.0)
    if need > MAX_SLOTS * rate:
        raise ValueError(_endless(f"at snr {snr:g} it is expected to take {need / rate:.3g}", MAX_SLOTS))


def _endless(why: str, max_slots: int) -> str:
    return (
        f"the transfer does not end within {max_slots} slots ({why}): give it more bandwidth or power, "
        "a smaller payload, or a shorter distance"
    )


def _running_totals(
    snr: float, fading: LinkFading, first_slot: int, count: int
) -> Iterator[tuple[int, FloatArray]]:
    """Slots before each chunk, and the sums of log2(1 + snr |h|^2) from first_slot to each of its slots.

    The sum is carried from chunk to chunk in order, so that its rounding does not depend on the chunks.
    """
    total, done, blocks = 0.0, 0, 1
    while done < count:
        # to the end of a block, so that no block is drawn twice
        chunk = min(blocks * BLOCK - (first_slot + done) % BLOCK, count - done)
        rates = spectral_efficiency(snr * fading.power(first_slot + done, chunk))
        rates[0] += total
        totals = np.cumsum(rates)
        yield done, totals
        total, done, blocks = float(totals[-1]), done + chunk, min(2 * blocks, CHUNK_BLOCKS)


def _static_rate(snr: float, fading: LinkFading) -> float:
    return float(spectral_efficiency(snr * fading.power(0, 1)[0]))


def _slots_static(need: float, snr: float, fading: LinkFading, max_slots: int) -> int:
    rate = _static_rate(snr, fading)
    if need > rate * max_slots:
        raise ValueError(_endless(f"a static link at {rate:g} bits/s/Hz", max_slots))
    slots = math.ceil(need / rate) if need else 0
    # the division may have rounded across an integer
    return slots + (slots * rate < need) - (slots > 0 and (slots - 1) * rate >= need)
