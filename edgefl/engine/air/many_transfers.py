"""Compute the times of many uninterrupted transfers in one batch, as a fast path of `Link.transfer`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.channel.carrier import MAX_SLOTS
from edgefl.channel.many import slots_of_many
from edgefl.channel.tdd import Direction, OnTime
from edgefl.channel.units import FloatArray
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.links import Links, Transfers
from edgefl.errors import refused


def time_transfers(
    air: AirInterface, links: Links, direction: Direction, payload_bits: Sequence[int], from_s: FloatArray
) -> Transfers:
    """Compute the times of uninterrupted transfers on fixed shares.

    Args:
        payload_bits: [links] bits of each transfer.
        from_s: [links] earliest start of each transfer.
    """
    first_slots, start_s, begun_s = _begins_of(air, from_s)
    end_s = (first_slots + _slots(air, links, direction, payload_bits, first_slots)) * np.float64(air.slot_s)
    clock_s = begun_s + np.maximum(0.0, end_s - begun_s)
    return Transfers(start_s, end_s, _airtimes_s(air, direction, first_slots, start_s, end_s), clock_s)


def time_in_band(
    air: AirInterface,
    cell: int,
    direction: Direction,
    flows: Sequence[dict[str, Any]],
    from_s: FloatArray,
    led: Sequence[tuple[float, ...]],
) -> Transfers:
    """Compute the times of transfers that have a cell's dynamically shared band to themselves.

    Args:
        flows: [links] each transfer's arguments of `SharedBand.add`. from_s: [links] each transfer's earliest start.
        led: [links] times of the chain of events that led to from_s, the last event first; transfers that begin at
            the same time begin in the order of these times.
    """
    band, slot_s = air.band(cell, direction), np.float64(air.slot_s)
    first_slots, start_s, begun_s = _begins_of(air, from_s)
    times = zip(begun_s.tolist(), from_s.tolist(), led, strict=True)
    order = [row for *_, row in sorted((*when, row) for row, when in enumerate(times))]
    begun, first = begun_s.tolist(), first_slots.tolist()
    with refused("radio"):
        ends = band.time((begun[row], first[row], flows[row]) for row in order)
    ids = [flow["id_"] for flow in flows]
    end_slots, clock_s = zip(*map(ends.__getitem__, ids), strict=True)
    end_s, rank = np.array(end_slots) * slot_s, {id_: place for place, id_ in enumerate(ends)}
    power = None
    if direction == "uplink" and air.carriers[direction].blocks is not None:
        on, at_power = np.array([band.band.sent_by(id_) for id_ in ids]).T
        airtime_s, power = on * slot_s, np.divide(at_power, on, out=np.zeros_like(on), where=on > 0)
    else:
        airtime_s = _airtimes_s(air, direction, first_slots, start_s, end_s)
    return Transfers(start_s, end_s, airtime_s, np.array(clock_s), power, [rank[id_] for id_ in ids])


def _begins_of(air: AirInterface, from_s: FloatArray) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray]:
    """Return the first slot [n] of each transfer, the slot's start, and the clock's time at that start.

    The clock advances by adding a delay to its current time, and the sum may be rounded.
    """
    first_slots = air.next_slots(from_s)
    start_s = first_slots * np.float64(air.slot_s)
    return first_slots, start_s, from_s + np.maximum(0.0, start_s - from_s)


def _airtimes_s(
    air: AirInterface,
    direction: Direction,
    first_slots: npt.NDArray[np.int64],
    start_s: FloatArray,
    end_s: FloatArray,
) -> FloatArray:
    """Return the on-time [n] of radios that are on in all slots of their direction."""
    frame = air.carriers[direction].frame
    if frame.plain:
        return end_s - start_s
    ends = zip(first_slots.tolist(), end_s.tolist(), strict=True)
    return np.array([OnTime(frame, air.slot_s, first).until_s(end) for first, end in ends])


def sure_to_end(air: AirInterface, links: Links, direction: Direction, bits: int, power: FloatArray) -> bool:
    """Return whether all transfers of `bits` are certain to end within a tenth of MAX_SLOTS.

    Args:
        power: [links] fading power that nearly all slots exceed.
    """
    carrier, share = air.carriers[direction], links.share[direction]
    snr = carrier.share_snr(share, links.snr[direction])
    if not bits:
        return True
    if not (np.all(share > 0) and np.all((snr > 0) & (snr < np.inf))):
        return False
    rate = carrier.efficiency(power * snr) * carrier.frame.mean
    need = carrier.needs(np.full(len(links), float(bits)), share)
    return bool(np.all(need <= MAX_SLOTS / 10 * rate))


def _slots(
    air: AirInterface,
    links: Links,
    direction: Direction,
    payload_bits: Sequence[int],
    first_slots: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Return the number of slots [links] that each transfer takes."""
    carrier, bits, fidelity = air.carriers[direction], np.asarray(payload_bits), air.settings.fidelity
    busy = np.flatnonzero(bits)  # an empty transfer may have no share
    share = links.share[direction][busy]
    snr = carrier.share_snr(share, links.snr[direction][busy])
    fading = [links.fading[i] for i in busy.tolist()]
    slots = np.zeros(len(links), np.int64)
    with refused("radio"):
        slots[busy] = slots_of_many(
            carrier,
            bits[busy],
            share=share,
            snr=snr,
            fading=fading,
            first_slot=first_slots[busy],
            direction=direction,
            fidelity=fidelity,
        )
    if fidelity == "renewal":
        expected = carrier.needs(bits[busy], share) / (carrier.mean_efficiency(snr) * carrier.frame.mean)
        air.regime.count(expected, [link.correlation for link in fading])
    return slots
