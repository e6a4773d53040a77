"""Slot-by-slot interference from other cells at the receivers of a round's links."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from edgefl.channel.fading import Fading
from edgefl.channel.interference import Heard, Interfered, TransmitterActivity
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.engine.air.budget import Budget
from edgefl.engine.air.gains import LargeScaleGains, LargeScaleState
from edgefl.engine.derived import Derived
from edgefl.rng import Streams

# direction -> fading of a round's links, with the interference at their receivers
InterferedLinks = Callable[[Direction], Sequence[Interfered]]


class SlotInterference:
    """Interference from transmitters of other cells that are on or off in each slot.

    Args:
        load: fraction of slots in which each transmitter sends.
    """

    def __init__(self, load: float, budget: Budget, gains: LargeScaleGains, streams: Streams) -> None:
        self._budget = budget

        @cache
        def activity(direction: Direction, cells: int) -> TransmitterActivity:
            return TransmitterActivity(streams.key("interference", direction), cells, load)

        self._activity = activity
        # cached by the positions of all devices, since rounds of several cells may open at the same time
        self._at_cells = Derived(gains.power_db)

    def of_links(
        self, state: LargeScaleState, cell: int, fading: Sequence[Fading], uplink_share: FloatArray
    ) -> InterferedLinks:
        """Return the links' fading with interference at their receivers, computed on first use.

        Few of the links that a device tries after a failure can carry data even without interference, so interference
        is computed only for links that can carry data. Devices of other cells send on shares as large as this round's
        links, since all cells divide their bands in the same way.

        Args:
            uplink_share: [links] each link's share of the band; 1 if shares change within a round.
        """

        @cache
        def at_receivers(direction: Direction) -> list[Interfered]:
            if direction == "downlink":
                return list(map(Interfered, fading, self.heard_by_devices(state)))
            # a link without bits may have no share
            shares = np.where(uplink_share > 0, uplink_share, 1.0).tolist()
            positions_m = state.everywhere_m
            assert positions_m is not None  # the uplink's interference comes from devices of all cells
            heard = {share: self._heard_by_site(positions_m, cell, share) for share in set(shares)}
            return [Interfered(link, heard[share]) for link, share in zip(fading, shares, strict=True)]

        return at_receivers

    def _heard_by_site(self, positions_m: np.ndarray, cell: int, share: float) -> Heard:
        """Return the interference at a cell's site from devices of other cells, on a share of the band."""
        power_db = self._at_cells(positions_m)
        levels = self._budget.uplink_levels(power_db, cell, share)
        return Heard(self._activity("uplink", power_db.shape[1]), levels)

    def mean_at_site(self, positions_m: np.ndarray, cell: int, share: float = 1.0) -> float:
        """Return the mean interference-to-noise ratio at a cell's site, on a share of the band."""
        return self._heard_by_site(positions_m, cell, share).mean

    def heard_by_devices(self, state: LargeScaleState) -> list[Heard]:
        """Return each device's interference from the other sites."""
        levels = self._budget.downlink_levels(state)
        return Heard.each(self._activity("downlink", levels.shape[1]), levels)
