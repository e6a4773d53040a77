"""Hold what all cells' transfers share: the grid of slots, the carriers, and each cell's dynamically shared bands."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import simpy

from edgefl.channel.band_slots import Groups
from edgefl.channel.carrier import Carrier
from edgefl.channel.shared_band import SharedBand
from edgefl.channel.tdd import Direction, rounding_s, roundings_s
from edgefl.channel.units import FloatArray
from edgefl.engine.air.band import BandInUse
from edgefl.engine.air.pieces import Pieces
from edgefl.engine.air.radio_link_monitoring import RadioLinkMonitoring
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.air.regime import RenewalRegime


@dataclass(frozen=True)
class AirInterface:
    """The state and settings that the transfers of all cells share.

    bands: dynamically shared bands in use, by cell and direction.
    pieces: pieces of transfers on fixed shares; pieces that begin at the same slot are computed together.
    groups: device groups that divide a band by weight; if None, the scheduler shares the whole band.
    """

    env: simpy.Environment
    settings: RadioSettings
    carriers: dict[Direction, Carrier]
    monitoring: RadioLinkMonitoring
    regime: RenewalRegime = field(default_factory=RenewalRegime)
    bands: dict[tuple[int, Direction], BandInUse] = field(default_factory=dict)
    pieces: Pieces = field(default_factory=Pieces)
    groups: Groups | None = None

    @property
    def slot_s(self) -> float:
        """Length of a slot, s."""
        return self.settings.slot_s

    @property
    def dynamic(self) -> bool:
        """Whether shares of the band change within a round."""
        return self.settings.sharing == "dynamic"

    def next_slot(self, time_s: float) -> int:
        """Return the first slot that begins at or after a time."""
        return math.ceil((time_s - rounding_s(time_s)) / self.settings.slot_s)

    def next_slots(self, times_s: FloatArray) -> npt.NDArray[np.int64]:
        """Return the first slot that begins at or after each of n times, exactly as `next_slot` does."""
        return np.ceil((times_s - roundings_s(times_s)) / self.settings.slot_s).astype(np.int64)

    def until(self, slot: int) -> simpy.Event:
        """Return an event at the start of a slot, or at the current time if the slot has begun."""
        return self.env.timeout(max(0.0, slot * self.settings.slot_s - self.env.now))

    def band(self, cell: int, direction: Direction) -> BandInUse:
        """Return a cell's dynamically shared band in a direction."""
        if (cell, direction) not in self.bands:
            band = SharedBand(self.settings.scheduler, self.carriers[direction], self.groups)
            # 5G-LENA, NrMacSchedulerNs3: uplinks are scheduled first, and the downlink gets the remaining symbols
            yields = self.settings.flexible and direction == "uplink"
            other = self.band(cell, "downlink") if yields else None
            self.bands[cell, direction] = BandInUse(self.env, band, self.settings.slot_s, other)
        return self.bands[cell, direction]

    def seconds_alone(
        self, direction: Direction, payload_bits: int, snr: FloatArray, most_snr: FloatArray
    ) -> FloatArray:
        """Return the mean duration in s of transfers [n] alone in the band; inf if a link carries no data.

        A transfer has the band up to the end of its last slot, so that a payload of half a slot takes a slot. With
        resource blocks, a transmitter with little power uses as many blocks as carry most.

        Args:
            snr: [n] mean SNR on the whole band.
            most_snr: [n] with resource blocks, highest mean SNR that power control allows on a block.
        """
        carrier = self.carriers[direction]
        best_snr = snr
        if carrier.steps and carrier.blocks and carrier.power == "full":
            best_snr = self.monitoring.at_best(direction, snr, most_snr)
            whole = carrier.steps.whole
            limited = most_snr <= snr  # power control allows no more on fewer blocks
            on_all = whole.mean_efficiency(snr, carrier.taps)
            on_some = replace(whole, blocks=carrier.blocks).mean_efficiency(snr, carrier.taps)
            rate = np.where(limited, on_all, on_some)
        else:
            rate = carrier.mean_share_rate(1.0, snr)
        reached = best_snr >= self.monitoring.lowest_snr[direction]
        taken_s = np.full(len(snr), np.inf)
        slots = carrier.need(payload_bits) / rate[reached]
        taken = [carrier.frame.whole_slots(airtime) for airtime in slots.tolist()]
        taken_s[reached] = np.array(taken) / carrier.frame.mean * self.slot_s
        return taken_s
