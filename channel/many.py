"""Count the slots of many transfers at once, as a fast path of `Flow.slots`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.channel.carrier import MAX_SLOTS, Carrier, check_snr, endless
from edgefl.channel.fading import BLOCK, Fading
from edgefl.channel.fading_pages import PagedFading
from edgefl.channel.many_links import power_of_many
from edgefl.channel.rates import rate_moments
from edgefl.channel.tdd import Direction
from edgefl.channel.transfer import (
    AUTO_COHERENCE_TIMES,
    AUTO_SLOTS,
    CHUNK_BLOCKS,
    Fidelity,
    Flow,
    check_choices,
    exponential_draws,
)
from edgefl.channel.units import FloatArray

IntArray = npt.NDArray[np.int64]

# Maximum of links times slots that are read at once; half a dozen such arrays take 50 MB.
_LARGEST_CHUNK = 2**20
# Number of slots first read beyond the expected end of transfers, which doubles with each additional read
_MORE_SLOTS = 8
# Fraction of the expected remaining slots that is read at once if only whole pages are read
_SURE = 0.7
# The same operation on a number and on an array may round differently, by far less than this relative tolerance.
_CLOSE = 1e-9


def slots_of_many(
    carrier: Carrier,
    payload_bits: npt.ArrayLike,
    *,
    share: npt.ArrayLike,
    snr: npt.ArrayLike,
    fading: Sequence[Fading],
    first_slot: npt.ArrayLike,
    direction: Direction = "downlink",
    fidelity: Fidelity = "auto",
) -> IntArray:
    """Count the slots of n transfers at once, with exactly the results of `Flow.slots`.

    Transfers that are drawn slot by slot advance together, several slots at a time; each sum is added in order, to be
    rounded as if it were computed alone. Static links and renewal transfers are computed one by one.

    Args:
        carrier: the band that all transfers use.
        payload_bits, share, snr, first_slot: [n] one value per transfer, or one value for all: bits to send, share of
            the carrier, linear mean SNR on that share, first slot.
        fading: [n] fading of each transfer's link.

    Returns:
        [n] number of slots that each transfer takes.

    Raises:
        ValueError: an argument is out of range, or a transfer would take more than MAX_SLOTS.
    """
    check_choices(direction, fidelity)
    shape = (len(fading),)
    payload, part, gamma = (_each(np.asarray(value, float), shape) for value in (payload_bits, share, snr))
    first = _each(np.asarray(first_slot, np.int64), shape)
    need = carrier.needs(payload, part)
    for value in gamma[~((gamma > 0) & (gamma < np.inf))]:
        check_snr(float(value))

    mean = carrier.mean_efficiency(gamma) * carrier.frame.mean
    # a rate of 0 causes a division by zero here, and an error about the transfer further below
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = need / mean
    correlation = np.array([link.correlation for link in fading])
    static = np.array([link.static for link in fading], dtype=bool)
    alone = _may_not_be_drawn(expected, correlation, fidelity, static)
    if fidelity == "auto" and not carrier.plain:
        long = np.flatnonzero(alone & ~static)
        if long.size:
            draws = exponential_draws(expected[long], *rate_moments(gamma[long], correlation[long], carrier))
            alone[long] = draws >= (1.0 - _CLOSE) * AUTO_COHERENCE_TIMES
    # near the limit of `Carrier.refuse_endless`, flows are checked one by one
    alone |= need > (1.0 - _CLOSE) * MAX_SLOTS * carrier.frame.mean * carrier.efficiency(gamma)

    slots = np.zeros(shape, np.int64)
    for i in np.flatnonzero(alone).tolist():
        flow = Flow(
            carrier.part(float(part[i])), float(gamma[i]), fading[i], int(first[i]), direction, fidelity
        )
        slots[i] = flow.slots(float(payload[i]))
    rows = np.flatnonzero(~alone & (need > 0))
    links = [fading[i] for i in rows.tolist()]
    slots[rows] = _drawn(carrier, need[rows], gamma[rows], links, first[rows], mean[rows])
    return slots


def _each(values: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return values of a given shape, repeating a single value for all transfers."""
    return values if values.shape == shape else np.broadcast_to(values, shape)


def _may_not_be_drawn(
    expected: FloatArray, correlation: FloatArray, fidelity: Fidelity, static: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return [n] whether a transfer may be too long to draw slot by slot, or has a static link."""
    if fidelity == "slot":
        return static
    if fidelity == "renewal":
        return np.ones_like(static)
    coherence_times = expected * (1.0 - np.abs(correlation))
    nearly = 1.0 - _CLOSE
    return static | ((expected >= nearly * AUTO_SLOTS) & (coherence_times >= nearly * AUTO_COHERENCE_TIMES))


def _drawn(
    carrier: Carrier,
    need: FloatArray,
    snr: FloatArray,
    links: list[Fading],
    first: IntArray,
    mean: FloatArray,
) -> IntArray:
    """Return the slots [n] of transfers with bits to send over links that fade, as `Flow.slots_exact` does."""
    slots, got = np.zeros(len(need), np.int64), np.zeros(len(need))
    left, done, more = np.arange(len(need)), np.zeros_like(slots), _MORE_SLOTS
    page = _short_page(links)
    if page * len(need) > _LARGEST_CHUNK:
        page = 1
    while left.size:
        # all remaining transfers have been read up to the same number of slots
        rest = (need[left] - got[left]) / mean[left]
        at = first[left] + done[left]
        if page > 1:  # read only the pages that each link needs
            before, count = (
                at % page,
                page * max(1, int(_SURE * min(rest.min(), CHUNK_BLOCKS * BLOCK) / page)),
            )
        else:
            enough = int(min(rest.max(), 2.0 * rest.mean())) + more
            before, count = np.zeros_like(at), max(1, enough)
        count = min(count, max(page, _LARGEST_CHUNK // len(left) // page * page), CHUNK_BLOCKS * BLOCK)
        rates = carrier.efficiency(snr[left, None] * power_of_many(links, at - before, count))
        if not carrier.frame.plain:
            rates *= _weights(carrier, at - before, count)
        if before.any():
            rates[np.arange(count) < before[:, None]] = 0.0
        # sum in order, so that rounding does not depend on the number read at once
        rates[:, 0] += got[left]
        totals = np.cumsum(rates, axis=1)
        got[left] = totals[:, -1]
        ended = totals[:, -1] >= need[left]
        some = left[ended]
        short = np.count_nonzero(totals[ended] < need[some, None], axis=1)
        slots[some] = done[some] - before[ended] + 1 + short
        done[left] += count - before
        left, more = left[~ended], 2 * more
        links = [link for link, over in zip(links, ended.tolist(), strict=True) if not over]
        if done[left].max(initial=0) >= MAX_SLOTS or slots.max(initial=0) > MAX_SLOTS:
            raise ValueError(endless(f"its {MAX_SLOTS} slots carried too few bits", MAX_SLOTS))
    return slots


def _short_page(links: Sequence[Fading]) -> int:
    """Return the number of slots in a page of the links' fading, or 1 if links differ or pages are long."""
    sizes = {link.slots if isinstance(link, PagedFading) and not link.static else 1 for link in links}
    size = sizes.pop() if len(sizes) == 1 else 1
    return size if size < BLOCK else 1


def _weights(carrier: Carrier, first_slots: IntArray, count: int) -> FloatArray:
    """Return the frame's weights [transfers, count], beginning at each transfer's first slot."""
    frame = carrier.frame
    phases = np.stack([frame.weights_from(phase, count) for phase in range(frame.period)])
    return phases[first_slots % frame.period]
