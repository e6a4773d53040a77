"""Fast path of `Link.transfer`: time many transfers on fixed shares at once, where nothing cuts them off."""

from collections.abc import Sequence

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
    """Time transfers on fixed shares that nothing cuts off.

    Args:
        payload_bits: [links].
        from_s: [links] earliest start of each.
    """
    slot_s = air.slot_s
    first_slots = air.next_slots(from_s)
    start_s = first_slots * np.float64(slot_s)
    end_s = (first_slots + _slots(air, links, direction, payload_bits, first_slots)) * np.float64(slot_s)
    # the clock reaches a time by adding a wait to its current time, and the sum may be rounded
    begun_s = from_s + np.maximum(0.0, start_s - from_s)
    clock_s = begun_s + np.maximum(0.0, end_s - begun_s)
    airtime_s = end_s - start_s
    frame = air.carriers[direction].frame
    if not frame.plain:
        ends = zip(first_slots.tolist(), end_s.tolist(), strict=True)
        airtime_s = np.array([OnTime(frame, slot_s, first).until_s(end) for first, end in ends])
    return Transfers(start_s, end_s, airtime_s, clock_s)


def sure_to_end(air: AirInterface, links: Links, direction: Direction, bits: int, power: FloatArray) -> bool:
    """Return whether transfers are certain to end within a tenth of MAX_SLOTS.

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
    busy = np.flatnonzero(bits)  # a link with no bits may have no share
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
