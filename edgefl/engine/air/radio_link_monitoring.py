"""Decide when gains are measured, and when a weak link is given up."""

import numpy as np
import numpy.typing as npt

from edgefl.channel.modulation import Steps
from edgefl.channel.resource_blocks import blocks_of
from edgefl.channel.tdd import Direction, rounding_s
from edgefl.channel.units import FloatArray
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.air.radio_settings import RadioSettings


class RadioLinkMonitoring:
    """The slots in which gains are measured, and the number of slots after which a link is given up.

    A link is out of sync, and carries no data, while its SNR, averaged over fading, is below the SNR of CQI 1, on the
    smallest part of the band on which the transmitter can concentrate its power. A link that stays out of sync for
    T310 fails; a link that recovers earlier continues as if nothing had happened.
    `edgefl.engine.federation.reestablishment` describes what follows. In 3GPP, T310 starts after N310 indications
    based on the block errors of a hypothetical downlink control channel. Here both directions are measured, and a
    failure of the uplink stands for reaching the maximum number of RLC retransmissions. Without monitoring, a device
    at -20 dB would "transfer" for minutes, and its round would wait for it.

    Source: 3GPP TS 38.331, 5.3.10; TS 38.133, 8.1. Left out: N310, N311, Qin above Qout.

    Args:
        interval_s: time between two measurements of a gain, or None if gains are measured only once.
    """

    def __init__(self, settings: RadioSettings, interval_s: float | None) -> None:
        self.slot_s = settings.slot_s
        self.interval = None if interval_s is None else max(1, round(interval_s / settings.slot_s))
        self.t310: int | None = None
        self.t311 = round(settings.monitoring.t311_s / settings.slot_s)
        self.reestablishment = max(1, round(settings.monitoring.reestablishment_s / settings.slot_s))
        # lowest SNR on the whole band, and the smallest part of the band, by direction
        self.lowest_snr: dict[Direction, float] = dict.fromkeys(DIRECTIONS, 0.0)
        self._smallest_part: dict[Direction, float] = dict.fromkeys(DIRECTIONS, 1.0)
        if settings.monitoring.t310_s is not None:
            self.t310 = max(1, round(settings.monitoring.t310_s / settings.slot_s))
            for direction in DIRECTIONS:
                steps = settings.steps(direction) or Steps(settings.link.snr_gap_db)
                whole = steps.whole.lowest_snr
                part = steps.lowest_snr / whole
                if settings.in_blocks(direction):  # a transmitter uses at least one block
                    part = max(part, 1 / blocks_of(settings.bandwidth_hz, settings.slot_s))
                self.lowest_snr[direction], self._smallest_part[direction] = part * whole, part

    def at_best(self, direction: Direction, snr: npt.ArrayLike, most_snr: npt.ArrayLike) -> FloatArray:
        """Return the SNR that is compared with `lowest_snr`, for links on resource blocks.

        A transmitter may concentrate its power on few blocks, but not beyond what power control allows on a block.

        Args:
            snr: SNR on the whole band. most_snr: highest SNR that power control allows on a block.
        """
        return np.minimum(snr, np.multiply(most_snr, self._smallest_part[direction]))

    def measures_at(self, time_s: float) -> bool:
        """Return whether the gains of all links are due for measurement at this time."""
        slot = round(time_s / self.slot_s)
        if self.interval is None or slot % self.interval:
            return False
        return abs(slot * self.slot_s - time_s) <= rounding_s(time_s)

    def next_measurement(self, slot: int) -> int | None:
        """Return the next slot after `slot` that begins with a measurement of gains, or None without measurements."""
        return None if self.interval is None else slot - slot % self.interval + self.interval
