"""Build the large-scale gains, drawn by round or by place, the sites' panels, and the penetration loss."""

from collections.abc import Callable

import numpy as np

from edgefl.channel.antenna import Panel, Sectors
from edgefl.channel.gaussian_fields import Common
from edgefl.channel.large_scale import LargeScale
from edgefl.engine.air.extent import Extent
from edgefl.engine.air.gains import LargeScaleGains, SpatialGains
from edgefl.engine.air.gains_by_round import PerRoundGains
from edgefl.engine.air.indoors import Indoors, IndoorsByTrip, Obstacles
from edgefl.engine.devices.fleet import Fleet
from edgefl.errors import EdgeflError
from edgefl.mobility import Trips
from edgefl.mobility.static import Static
from edgefl.rng import Streams


def panels(extent: Extent) -> Sectors | None:
    """Return the sites' panels for devices at the extent's antenna height, or None without sectors."""
    layout = extent.layout
    if not layout.bearings_deg:
        return None
    return Sectors(
        layout.sites_m,
        [tuple(Panel(bearing, layout.downtilt_deg) for bearing in of) for of in layout.bearings_deg],
        extent.bs_height_m - extent.ut_height_m,
        extent.wraparound,
    )


def large_scale_gains(extent: Extent, fleet: Fleet, streams: Streams) -> LargeScaleGains:
    """Return the gains between sites and devices, which are drawn for each round (J) or are functions of the place.

    Raises:
        EdgeflError: line of sight is probabilistic, but gains are not a function of the place.
        ValueError: a setting of the radio is invalid for the package `channel`.
    """
    heights = {extra.ut_height_m: 0 for extra in fleet.extras}
    heights = {height: number for number, height in enumerate(heights)}
    of = np.array([heights[extra.ut_height_m] for extra in fleet.extras])[fleet.of]
    extents = [extent.at_height(height) for height in heights]
    by = _per_place if extent.radio.propagation.shadowing == "spatial" else _per_round
    return by(extents, of, streams)


def _per_round(extents: list[Extent], of: np.ndarray, streams: Streams) -> LargeScaleGains:
    """Return gains drawn for each round; `of` contains each device's index into `extents`."""
    if extents[0].radio.propagation.line_of_sight in ("probabilistic", "soft"):
        raise EdgeflError(
            "probabilistic line of sight depends on the place alone: set radio.propagation.shadowing: spatial",
            ("radio", "propagation", "line_of_sight"),
        )
    return PerRoundGains(extents, of, streams)


def _per_place(extents: list[Extent], of: np.ndarray, streams: Streams) -> LargeScaleGains:
    """Return gains that are functions of the place; `of` contains each device's index into `extents`."""
    radio, layout = extents[0].radio, extents[0].layout
    sites_m = layout.sites_m

    def common(share: float) -> Common | None:
        """Return the component shared by the random fields of all sites, or None if the fields are independent."""
        alone = len(sites_m) == 1 or share == 0
        return None if alone else Common(streams.key("place", "all sites"), share)

    stand_still = all(isinstance(model, Static) for model in extents[0].mobilities)
    large_scales = [
        LargeScale(
            sites_m=sites_m,
            model=radio.path_loss,
            carrier_hz=radio.carrier_hz,
            bs_height_m=extent.bs_height_m,
            ut_height_m=extent.ut_height_m,
            min_distance_m=extent.min_distance_m,
            area_radius_m=extent.field_radius_m,
            keys=[streams.key("place", site) for site in range(len(sites_m))],
            line_of_sight=radio.propagation.line_of_sight,
            shadowing_std_db=radio.propagation.shadowing_std_db,
            common=common(radio.propagation.site_correlation),
            los_common=common(radio.propagation.los_site_correlation),
            wraparound=extent.wraparound,
            few_places=stand_still,
        )
        for extent in extents
    ]
    sectors = [panels(extent) for extent in extents]
    beams = radio.budget
    sees = beams.nlos_array_gain_db not in (None, beams.array_gain_db)
    return SpatialGains(large_scales, of, radio.neighbour_load > 0, sectors, layout.antenna_gain_dbi, sees)


def obstacles(
    extent: Extent, fleet: Fleet, streams: Streams, trips: Callable[[], Trips] | None
) -> Obstacles | None:
    """Return the obstacles between devices and sites (buildings and cars), or None if there are none.

    Args:
        trips: returns the current trips of all devices; None if obstacles depend on the place and not on trips.
    """
    carrier_hz, depth_m = extent.radio.carrier_hz, extent.radio.path_loss.indoor_depth_m
    some_indoors = depth_m is not None and any(kind.indoor_share for kind in fleet.kinds)
    if trips is not None:
        in_cars = any(kind.vehicle_above_m_s is not None for kind in fleet.kinds)
        if some_indoors or in_cars:
            return IndoorsByTrip.of_fleet(fleet, depth_m, carrier_hz, streams, trips)
        return None
    return Indoors.of_fleet(fleet, depth_m, carrier_hz, streams) if some_indoors else None
