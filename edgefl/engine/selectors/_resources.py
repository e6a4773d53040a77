"""Convert candidates to input of the allocation, and an allocation to a decision."""

from collections.abc import Callable

import numpy as np

from edgefl.channel.schedulers import BoolArray
from edgefl.channel.units import FloatArray
from edgefl.engine.selectors import Candidates, Decision
from edgefl.engine.selectors._allocation import Allocation, Uploads

MATCHED = 0.02  # relative difference below which gains count as equal
MATCHES = 3  # iterations of matching gains to the rates of the operating point
ABOVE_LOWEST = 2.0  # least ratio of the SNR on a share to the lowest SNR that carries bits
# the second argument is an allocation for slightly different links
Allocate = Callable[[Uploads, Allocation | None], Allocation]


def uploads(chosen: Candidates, per_hz: FloatArray | float = 1.0, part: float = 1.0) -> Uploads:
    """Return the participants' computations and uploads, with gains for which Shannon's formula gives the rates.

    Actual rates are averaged over fading, capped, or rise in NR's steps, and a TDD frame serves the uplink only part
    of the time. The gain of each link is chosen so that Shannon's formula gives the link's mean rate at one power per
    Hz, `per_hz`. For a link that is too weak for the lowest rate on the whole band, the power per Hz is assumed to be
    at least as high as this rate requires.

    Args:
        per_hz: [n] power per Hz at which the rates agree; 1 is a device's maximum power spread over the whole band.
        part: part of the band available to the participants, which the result treats as the whole band.
    """
    carrier = chosen.uplink
    assert carrier is not None
    power = np.broadcast_to(np.asarray(per_hz, dtype=float), len(chosen))
    lowest = chosen.lowest_snr / chosen.snr_up
    power = np.where(lowest > 1.0, np.maximum(power, lowest), power)
    snr = chosen.snr_up * power
    efficiency = carrier.mean_efficiency(snr, chosen.static)
    gain = np.expm1(np.maximum(efficiency, 1e-9) * np.log(2.0)) / power
    on = carrier.frame.mean
    return Uploads(
        np.maximum(chosen.up_bits, 1.0) / (carrier.unit_bits * on) * carrier.slot_s / part,
        gain / part,
        chosen.amplifier_w,
        chosen.send_w,
        chosen.cycles,
        chosen.clock_hz,
        chosen.capacitance,
    )


def drawn(candidates: Candidates, number: int, rng: np.random.Generator) -> Candidates:
    """Draw participants at random."""
    return candidates.at(np.sort(rng.permutation(len(candidates))[:number]))


def allocated(chosen: Candidates, allocate: Allocate, part: float = 1.0) -> tuple[Uploads, Allocation]:
    """Allocate part of the band; iterate so that gains match the rates at the resulting allocation."""
    of = uploads(chosen, len(chosen) / part, part)
    allocation = allocate(of, None)
    for _ in range(MATCHES):
        matched = uploads(chosen, allocation.power / (allocation.shares * part), part)
        if np.allclose(matched.gain, of.gain, rtol=MATCHED):
            break
        of = matched
        allocation = allocate(of, allocation)
    return of, allocation


def carrying(chosen: Candidates) -> BoolArray:
    """Return [n] whether a link carries data on an equal share of the band, as allocation requires."""
    assert chosen.uplink is not None
    snr = chosen.uplink.share_snr(1.0 / len(chosen), chosen.snr_up)
    return np.asarray(snr >= chosen.lowest_snr)


def decision(chosen: Candidates, allocate: Callable[[Candidates], Allocate]) -> Decision:
    """Return a decision with the participants' allocated resources; raise powers that are too low to carry data.

    Devices whose links carry no data keep an equal share, since it is unknown when these links will recover. A device
    with a radio narrower than its best share uses the whole radio, with full power and clock. The rest of the band is
    allocated to the other devices.
    """
    n, widest, free = len(chosen), chosen.widest_shares, carrying(chosen)
    shares, power, clock_hz = np.minimum(1.0 / n, widest), np.ones(n), chosen.clock_hz.copy()
    while free.any():
        those, part = chosen.at(np.flatnonzero(free)), 1.0 - float(shares[~free].sum())
        allocation = allocated(those, allocate(those), part)[1]
        shares[free] = allocation.shares * part
        narrow = free & (shares > widest)
        if not narrow.any():
            power[free], clock_hz[free] = allocation.power, allocation.clock_hz
            if those.lowest_snr > 0:  # on a wider share, even maximum power would carry no data
                shares[free] = np.minimum(shares[free], those.snr_up / those.lowest_snr)
            break
        shares[narrow], free = widest[narrow], free & ~narrow
    floor = shares * ABOVE_LOWEST * chosen.lowest_snr / chosen.snr_up
    power = np.minimum(1.0, np.maximum(power, floor))
    return Decision(
        chosen.ids,
        up_shares=shares / max(1.0, float(shares.sum())),
        power=np.maximum(power, 1e-9),
        clock_hz=np.minimum(np.maximum(clock_hz, 1e-6 * chosen.clock_hz), chosen.clock_hz),
    )


def joules(power_w: FloatArray, time_s: FloatArray) -> FloatArray:
    """Return power times time, which is 0 without power even if the time is infinite; shapes are broadcast."""
    with np.errstate(invalid="ignore"):
        return np.where(power_w > 0, power_w * time_s, 0.0)
