"""Define immutable values for devices' links to their cells' sites, and for transfers over links."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edgefl.channel.fading import Fading
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.engine.parts import NO_STALL, Cause, Span, Stall

DIRECTIONS: tuple[Direction, Direction] = ("downlink", "uplink")


class Prospect(NamedTuple):
    """What n links are expected to be like in a round in which devices share the band equally.

    snr: [n] mean SNR over the whole band with full power; mean interference of other cells counts as noise.
    share: [n] share of the band, which a narrow radio limits. uplink_power: [n] fraction of its power that each
    device radiates.
    """

    snr: dict[Direction, FloatArray]
    share: FloatArray
    uplink_power: FloatArray


@dataclass(frozen=True)
class Links:
    """The links of n devices, with values [n] that are fixed for a round.

    snr: mean SNR over the whole band with full power; in the uplink, this SNR times uplink_power, the fraction of its
    power that a device radiates. share: share of the band, or the largest part of a dynamically shared band that a
    device can use. neighbours: interference of other sites over noise in the downlink, for each share that they send
    at once; snr does not include it. control: power that power control allows on the whole band, as a multiple of the
    device's power; inf without power control. On M of N resource blocks power control allows M / N times `control`.
    """

    devices: Sequence[int]
    cells: Sequence[int]
    fading: Sequence[Fading]
    snr: dict[Direction, FloatArray]
    share: dict[Direction, FloatArray]
    neighbours: FloatArray
    uplink_power: FloatArray
    control: FloatArray

    def __len__(self) -> int:
        return len(self.devices)

    def at(self, rows: Sequence[int]) -> "Links":
        """Return the links in these rows, in this order."""
        return Links(
            [self.devices[row] for row in rows],
            [self.cells[row] for row in rows],
            [self.fading[row] for row in rows],
            {direction: snr[rows] for direction, snr in self.snr.items()},
            {direction: share[rows] for direction, share in self.share.items()},
            self.neighbours[rows],
            self.uplink_power[rows],
            self.control[rows],
        )


@dataclass(frozen=True)
class Transfers:
    """Complete transfers over n links, as arrays [n].

    clock_s: SimPy's time at the end of each transfer. power: mean fraction of its power that each device radiated, or
    None if it is the links' `uplink_power`. rank: order in which transfers end in a shared band.
    """

    start_s: FloatArray
    end_s: FloatArray
    airtime_s: FloatArray
    clock_s: FloatArray
    power: FloatArray | None = None
    rank: Sequence[int] = ()


class Transfer(NamedTuple):
    """A transfer that has ended or was cut off, with the bits transferred and the time for which the radio was on.

    stalled_s: part of the transfer's duration in which the link carried no data. stalled_air_s: the radio's on-time
    during the stall. power: mean fraction of its power that the device radiated while its radio was on, or None if it
    is the link's `uplink_power`.
    """

    start_s: float
    end_s: float
    bits: int
    airtime_s: float
    cut: Cause | None = None
    stalled_s: float = 0.0
    stalled_air_s: float = 0.0
    power: float | None = None

    def span(self, energy_j: float, stalled_j: float = 0.0) -> Span:
        """Return the transfer as an activity that used energy_j, including stalled_j without a link."""
        stall = NO_STALL
        if self.stalled_s:
            stall = Stall(self.stalled_s, stalled_j, int(self.cut is Cause.RADIO_LINK_FAILURE))
        return Span(
            self.start_s, self.end_s, energy_j, self.bits, cut=self.cut, airtime_s=self.airtime_s, stall=stall
        )
