"""Decide which devices have a usable link and are therefore connected."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgefl.channel.units import FloatArray, db_to_linear
from edgefl.engine.air.budget import Budget
from edgefl.engine.air.gains import LargeScaleGains
from edgefl.engine.air.layout import LayoutSettings
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.air.radio_link_monitoring import RadioLinkMonitoring
from edgefl.engine.derived import same
from edgefl.engine.devices.fleet import Fleet


def remedies(layout: LayoutSettings, fleet: Fleet) -> str:
    """Return what gives more devices a link, as the subject of a sentence."""
    closer = "layout.isd_m" if layout.several else "cell.radius_m"
    if layout.sites is not None:
        closer = "layout.sites"
    most = [
        f"closer sites ({closer})",
        "more power (devices.transmit_power_dbm, radio.budget.server_power_dbm)",
    ]
    indoors = any(kind.indoor_share for kind in fleet.kinds)
    return f"{', '.join(most)} or a lower indoor_share" if indoors else " or ".join(most)


class Coverage:
    """Decide which devices have a usable link to a cell's site at their current positions.

    A link is usable if, in both directions, its SINR averaged over fading and interference exceeds the SINR of the
    lowest CQI by `coverage_margin_db`. The uplink is judged as if the device had the whole band and could concentrate
    its power on part of it, on resource blocks up to the power that power control allows there; its SINR on a smaller
    share is no lower. A device without a link is not in connected mode, so it is absent. `radio_link_monitoring`
    handles links that are lost during a transfer.

    Source: 3GPP TS 38.304, 5.2.3.2 (cell selection, S > 0); TS 38.133, 8.1 (Qin is above Qout: a link is lost at
    one quality and recovers only at a better one). In the standard, unlike here, only the downlink's quality matters,
    and a device takes some 100 ms to assess it. Without coverage checks, servers select unreachable devices, and
    rounds last until their timers expire.

    Args:
        at_sites: returns the mean interference over noise at a cell's site, given all devices' positions and the
            cell.
        by_blocks: whether the uplink has resource blocks.
    """

    def __init__(
        self,
        margin_db: float,
        budget: Budget,
        monitoring: RadioLinkMonitoring,
        gains: LargeScaleGains,
        at_sites: Callable[[np.ndarray, int], float],
        *,
        by_blocks: bool,
    ) -> None:
        margin = float(db_to_linear(margin_db))
        self._needed = {direction: margin * monitoring.lowest_snr[direction] for direction in DIRECTIONS}
        self._budget = budget
        self._gains = gains
        self._at_sites = at_sites
        self._monitoring, self._by_blocks = monitoring, by_blocks
        self._known: dict[int, _Known] = {}  # cell -> results for the latest positions

    def among(self, cell: int, ids: np.ndarray, positions_m: np.ndarray) -> np.ndarray:
        """Return [n] whether devices `ids` have a link to a cell's site; each device is checked once per position.

        Args:
            positions_m: [devices, 2] current positions of all devices, nan for absent devices.
        """
        known = self._known.get(cell)
        if known is None or not same(known.positions_m, positions_m):
            unjudged = np.zeros((2, len(positions_m)), dtype=bool)
            known = self._known[cell] = _Known(positions_m, *unjudged)
        unknown = ids[~known.judged[ids]]
        if len(unknown):
            known.judged[unknown] = True
            known.has_link[unknown] = self._has_link(cell, unknown, positions_m)
        return known.has_link[ids]

    def _has_link(self, cell: int, ids: np.ndarray, positions_m: np.ndarray) -> np.ndarray:
        state = self._gains.of_links(positions_m[ids], ids, np.full(len(ids), cell))
        sinr = self._budget.mean_snr(state, 1)
        uplink: FloatArray = sinr["uplink"] / (1.0 + self._at_sites(positions_m, cell))
        if self._by_blocks:
            uplink = self._monitoring.at_best("uplink", uplink, uplink * self._budget.control(state))
        else:
            uplink = uplink * self._budget.uplink_power(state, np.ones(len(ids)))
        enough: np.ndarray = (sinr["downlink"] >= self._needed["downlink"]) & (
            uplink >= self._needed["uplink"]
        )
        return enough


@dataclass(frozen=True, eq=False)
class _Known:
    """The devices' links to one cell: [devices] whether each has been checked, and whether it is usable."""

    positions_m: np.ndarray
    judged: np.ndarray
    has_link: np.ndarray
