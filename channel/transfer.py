"""How many slots a transfer takes.

A transfer of Z bits that begins in slot n0 ends in the first slot in which the bits moved reach Z. Slots
count from the simulation's start; with the weights of a TDD frame (`channel.tdd`) slot n carries w_n of what
it could, without them the transfer uses every slot of an interval of its own (the journal paper's TDD).
Three fidelities: `slot` draws every slot and is exact, `renewal` draws the number of slots directly,
`auto` takes renewal where it is as good.

Bandwidths in Hz, snr linear (mean SNR of the share, before fading), slot_s is tau, cap in bits/s/Hz the
highest spectral efficiency (`channel.ofdma`; None: no limit).
"""

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from channel.fading import BLOCK, LinkFading
from channel.limits import MAX_SLOTS, endless, needed_rate, refuse_endless
from channel.ofdma import ergodic_rate, spectral_efficiency
from channel.renewal import slots_renewal
from channel.tdd import Direction, Frame, frame
from channel.units import FloatArray

Fidelity = Literal["slot", "renewal", "auto"]

# `auto` draws every slot of a transfer that is expected to be shorter than this ...
AUTO_SLOTS = 4000
# ... or shorter than this many coherence times 1 / (1 - rho): the normal limit behind renewal needs both
AUTO_COHERENCE_TIMES = 50

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
    weights: npt.ArrayLike | None = None,
    cap: float | None = None,
    max_slots: int = MAX_SLOTS,
) -> int:
    """Smallest n with sum of w W min(log2(1 + snr |h|^2), cap) tau over n slots from first_slot >= Z.

    Args:
        payload_bits: Z, >= 0.
        fading: the link, read slot by slot; a static one is solved in closed form.
        weights: [period] of a TDD frame; None: every slot in full.

    Returns:
        Number of slots, those in which the frame serves the other direction included; 0 for an empty payload.

    Raises:
        ValueError: an argument is out of range, or the transfer would take more than max_slots.

    Source: journal paper, eq. (26). Left out: control channels, coding, retransmission.
    """
    need = needed_rate(payload_bits, bandwidth_hz, snr, slot_s)
    of = frame(weights)
    if fading.static:
        return _slots_static(need, _static_rate(snr, fading, cap), of, first_slot, max_slots)
    if need == 0:
        return 0
    refuse_endless(need, snr, of, cap)
    for slots, totals in _running_totals(snr, fading, first_slot, max_slots, of, cap):
        if totals[-1] >= need:
            return slots + int(np.searchsorted(totals, need)) + 1
    raise ValueError(endless(f"its {max_slots} slots carried too little", max_slots))


def bits_in_slots(
    slots: int,
    *,
    bandwidth_hz: float,
    snr: float,
    slot_s: float,
    fading: LinkFading,
    first_slot: int,
    weights: npt.ArrayLike | None = None,
    cap: float | None = None,
) -> float:
    """Bits that the link carries in `slots` slots from first_slot on; 0 slots carry 0.

    Raises:
        ValueError: an argument is out of range.
    """
    if slots < 0:
        raise ValueError(f"slots must be >= 0, got {slots}")
    needed_rate(0.0, bandwidth_hz, snr, slot_s)
    of = frame(weights)
    if fading.static:
        airtime = of.airtime(first_slot, slots)
        return bandwidth_hz * slot_s * airtime * _static_rate(snr, fading, cap)
    total = 0.0
    for _, totals in _running_totals(snr, fading, first_slot, slots, of, cap):
        total = float(totals[-1])
    return bandwidth_hz * slot_s * total


def expected_slots(
    payload_bits: float,
    *,
    bandwidth_hz: float,
    snr: float,
    slot_s: float,
    weights: npt.ArrayLike | None = None,
    cap: float | None = None,
) -> float:
    """need / mu with need = Z / (W tau): slots of a transfer at the ergodic rate, not rounded.

    Raises:
        ValueError: an argument is out of range.
    """
    need = needed_rate(payload_bits, bandwidth_hz, snr, slot_s)
    return need / (float(ergodic_rate(float(snr), cap)) * frame(weights).mean)


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
    weights: npt.ArrayLike | None = None,
    cap: float | None = None,
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
    if not _by_renewal(payload_bits, fidelity, bandwidth_hz, snr, slot_s, fading, weights, cap):
        return slots_exact(
            payload_bits,
            bandwidth_hz=bandwidth_hz,
            snr=snr,
            slot_s=slot_s,
            fading=fading,
            first_slot=first_slot,
            weights=weights,
            cap=cap,
        )
    return slots_renewal(
        payload_bits,
        bandwidth_hz=bandwidth_hz,
        snr=snr,
        slot_s=slot_s,
        correlation=fading.correlation,
        rng=fading.generator(first_slot, _STREAMS[direction]),
        weights=weights,
        cap=cap,
        first_slot=first_slot,
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
    weights: npt.ArrayLike | None = None,
    cap: float | None = None,
) -> float:
    """Bits moved after `slots` slots of the transfer that `transfer_slots` times with the same arguments.

    For a transfer that is cut off. Drawn slot by slot, it is what those slots carried; by renewal, the share
    of the payload that their airtime is of the whole transfer's. Never more than the payload.

    Raises:
        ValueError: an argument is out of range.
    """
    if not _by_renewal(payload_bits, fidelity, bandwidth_hz, snr, slot_s, fading, weights, cap):
        moved = bits_in_slots(
            slots,
            bandwidth_hz=bandwidth_hz,
            snr=snr,
            slot_s=slot_s,
            fading=fading,
            first_slot=first_slot,
            weights=weights,
            cap=cap,
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
        weights=weights,
        cap=cap,
    )
    if whole == 0:
        return 0.0
    of = frame(weights)
    return payload_bits * min(1.0, of.airtime(first_slot, slots) / of.airtime(first_slot, whole))


def _by_renewal(
    payload_bits: float,
    fidelity: Fidelity,
    bandwidth_hz: float,
    snr: float,
    slot_s: float,
    fading: LinkFading,
    weights: npt.ArrayLike | None,
    cap: float | None,
) -> bool:
    if fidelity not in get_args(Fidelity):
        raise ValueError(f"fidelity must be slot, renewal or auto, got {fidelity!r}")
    if fading.static or fidelity == "slot":
        return False
    if fidelity == "renewal":
        return True
    expected = expected_slots(
        payload_bits, bandwidth_hz=bandwidth_hz, snr=snr, slot_s=slot_s, weights=weights, cap=cap
    )
    coherence_times = expected * (1.0 - abs(fading.correlation))
    return expected >= AUTO_SLOTS and coherence_times >= AUTO_COHERENCE_TIMES


def _running_totals(
    snr: float, fading: LinkFading, first_slot: int, count: int, of: Frame, cap: float | None
) -> Iterator[tuple[int, FloatArray]]:
    """Slots before each chunk, and the sums of w min(log2(1 + snr |h|^2), cap) up to each of its slots.

    The sum is carried from chunk to chunk in order, so that its rounding does not depend on the chunks.
    """
    total, done, blocks = 0.0, 0, 1
    while done < count:
        # to the end of a block, so that no block is drawn twice
        chunk = min(blocks * BLOCK - (first_slot + done) % BLOCK, count - done)
        rates = spectral_efficiency(snr * fading.power(first_slot + done, chunk), cap)
        if not of.plain:
            rates *= of.of(first_slot + done, chunk)
        rates[0] += total
        totals = np.cumsum(rates)
        yield done, totals
        total, done, blocks = float(totals[-1]), done + chunk, min(2 * blocks, CHUNK_BLOCKS)


def _static_rate(snr: float, fading: LinkFading, cap: float | None) -> float:
    return float(spectral_efficiency(snr * fading.power(0, 1)[0], cap))


def _slots_static(need: float, rate: float, of: Frame, first_slot: int, max_slots: int) -> int:
    if need == 0:
        return 0
    if need > rate * of.airtime(first_slot, max_slots):
        raise ValueError(endless(f"a static link at {rate:g} bits/s/Hz", max_slots))
    slots = of.slots(first_slot, need / rate)
    # the division may have rounded across a slot
    while of.airtime(first_slot, slots) * rate < need:
        slots += 1
    while of.airtime(first_slot, slots - 1) * rate >= need:
        slots -= 1
    return slots
