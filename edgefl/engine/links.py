"""Links of a round between devices and their cell's site, and transfers over them, as values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from channel.fading import Fading
from channel.tdd import Direction
from channel.units import FloatArray
from edgefl.engine.broadcast import Broadcast
from edgefl.engine.parts import NO_STALL, Cause, Span, Stall
from edgefl.engine.readings import Readings

DIRECTIONS: tuple[Direction, Direction] = ("downlink", "uplink")


@dataclass(frozen=True)
class Link:
    """A device's large-scale SNR and its share of the band, both held for one round; readings may change the SNR."""

    device: int
    cell: int
    fading: Fading
    snr: dict[Direction, float]  # with full power over the whole band
    share: dict[Direction, float]  # of the band; not used where the band is shared dynamically
    neighbours: float = 0.0  # over the downlink's noise, of each share that they send; not in its snr
    readings: Readings | None = None  # None: the SNR holds for the round
    broadcast: Broadcast | None = None  # None: the downlink is unicast
    uplink_power: float = 1.0  # share of its power that the device radiates; counted in snr
    interfered: Mapping[Direction, Fading] | None = None  # None: interference is in the snr
    anew: "Anew | None" = None  # None: a link that has failed is not established again

    def power(self, direction: Direction) -> Fading:
        """What the SNR is multiplied by in each slot."""
        return self.fading if self.interfered is None else self.interfered[direction]

    def snr_now(self, direction: Direction) -> float:
        """The mean SNR now, with full power over the whole band."""
        return self.snr[direction] if self.readings is None else self.readings.snr(self.device, direction)


# a link, a cell -> its device's link to that cell's site as it is now; None: the device is absent
Anew = Callable[[Link, int], Link | None]


@dataclass(frozen=True)
class Links:
    """The links of n devices, [n] each; iterating gives one `Link` after the other."""

    devices: Sequence[int]
    cells: Sequence[int]
    fading: Sequence[Fading]
    snr: dict[Direction, FloatArray]
    share: dict[Direction, FloatArray]
    neighbours: FloatArray
    readings: Readings | None = None
    broadcast: Broadcast | None = None
    uplink_power: FloatArray | None = None
    interfered: Mapping[Direction, Sequence[Fading]] | None = None
    anew: Anew | None = None

    def __len__(self) -> int:
        return len(self.devices)

    def __iter__(self) -> Iterator[Link]:
        for i, (device, cell, fading) in enumerate(zip(self.devices, self.cells, self.fading, strict=True)):
            snr = {d: float(self.snr[d][i]) for d in DIRECTIONS}
            share = {d: float(self.share[d][i]) for d in DIRECTIONS}
            power = 1.0 if self.uplink_power is None else float(self.uplink_power[i])
            seen = None if self.interfered is None else {d: self.interfered[d][i] for d in DIRECTIONS}
            near = float(self.neighbours[i])
            yield Link(
                device, cell, fading, snr, share, near, self.readings, self.broadcast, power, seen, self.anew
            )

    def at(self, rows: Sequence[int]) -> "Links":
        """Return some of the links, by their places here."""
        return Links(
            [self.devices[row] for row in rows],
            [self.cells[row] for row in rows],
            [self.fading[row] for row in rows],
            {direction: snr[rows] for direction, snr in self.snr.items()},
            {direction: share[rows] for direction, share in self.share.items()},
            self.neighbours[rows],
            self.readings,
            self.broadcast,
            None if self.uplink_power is None else self.uplink_power[rows],
            None
            if self.interfered is None
            else {direction: [seen[row] for row in rows] for direction, seen in self.interfered.items()},
            self.anew,
        )


@dataclass(frozen=True)
class Transfers:
    """Transfers of n links that nothing cuts off, [n] each; clock_s: SimPy's time at their ends."""

    start_s: FloatArray
    end_s: FloatArray
    airtime_s: FloatArray
    clock_s: FloatArray


class Transfer(NamedTuple):
    """A transfer that has ended or was cut off: bits moved, and time for which the radio was on.

    stalled_s: of that, how long its link carried nothing. stalled_air_s: time for which the radio was on meanwhile.
    """

    start_s: float
    end_s: float
    bits: int
    airtime_s: float
    cut: Cause | None = None
    stalled_s: float = 0.0
    stalled_air_s: float = 0.0

    def span(self, energy_j: float, stalled_j: float = 0.0) -> Span:
        """Return the transfer as an activity of a device that cost this energy, so much of it without a link."""
        stall = NO_STALL
        if self.stalled_s:
            stall = Stall(self.stalled_s, stalled_j, int(self.cut is Cause.RADIO_LINK_FAILURE))
        return Span(
            self.start_s, self.end_s, energy_j, self.bits, cut=self.cut, airtime_s=self.airtime_s, stall=stall
        )
