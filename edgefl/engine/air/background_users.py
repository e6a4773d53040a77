"""Draw the places of background users in a cell, and the SNR of their links."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgefl.channel.geometry import sample_ring
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray, dbm_to_watt
from edgefl.engine.air.budget import Budget
from edgefl.engine.air.extent import Extent
from edgefl.engine.air.gains import LargeScaleGains, LargeScaleState, SpatialGains
from edgefl.engine.air.gains_by_round import PerRoundGains
from edgefl.engine.air.indoors import Coats, Indoors
from edgefl.engine.backgrounds import Background
from edgefl.engine.settings import DeviceSettings
from edgefl.errors import EdgeflError
from edgefl.mobility._draws import UniformDraws
from edgefl.rng import Streams

MOST_DRAWS = 10_000  # maximum number of batches of random places drawn to find enough users for a cell


class UserLinks(NamedTuple):
    """Links of a cell's users.

    snr: direction -> [users] mean SNR on the whole band at the users' power. most: direction -> [users] highest mean
    SNR that power control allows on a resource block.
    """

    snr: dict[Direction, FloatArray]
    most: dict[Direction, FloatArray]


@dataclass(frozen=True)
class BackgroundUsers:
    """Background users at random places in a cell, at the height of device 0, some of them indoors."""

    devices: DeviceSettings
    gains: LargeScaleGains
    extent: Extent
    streams: Streams

    @property
    def _settings(self) -> Background:
        settings: Background = self.extent.radio.background
        return settings

    def links(self, cell: int) -> UserLinks:
        """Return the links of a cell's users."""
        state = self._large_scale(cell)
        power_w = np.full(self._settings.users, dbm_to_watt(self._settings.transmit_power_dbm))
        budget = Budget(self.extent.radio, power_w)
        snr, most = budget.snr(state), budget.control(state)
        most *= snr["uplink"]
        snr["uplink"] = snr["uplink"] * budget.uplink_power(state, np.ones(len(power_w)))
        return UserLinks(snr, {"downlink": np.full(len(power_w), math.inf), "uplink": most})

    def _large_scale(self, cell: int) -> LargeScaleState:
        rng, users = self.streams("background", "places", cell), self._settings.users
        if isinstance(self.gains, PerRoundGains):
            places_m = self._drawn_m(cell, rng)
            state = self.gains.of_places(places_m, rng)
        else:
            assert isinstance(self.gains, SpatialGains)
            places_m = self._places_m(self.gains, cell, rng)
            state = self.gains.of_links(places_m, np.zeros(users, dtype=np.intp), np.full(users, cell))
        walls = self._walls(cell)
        if walls is None:
            return state
        loss_db = walls.loss_db(places_m, np.arange(users))
        return state.behind(loss_db, walls.inside(loss_db, np.arange(users)))

    def _drawn_m(self, cell: int, rng: np.random.Generator) -> FloatArray:
        """Draw a place [users, 2] for each user, anywhere in the cell or in a range of distances from its site."""
        users, distance_m, extent = self._settings.users, self._settings.distance_m, self.extent
        if distance_m is None:
            return sample_ring(rng, users, inner_radius_m=extent.kept_free_m, outer_radius_m=extent.edge_m)
        if not extent.layout.several and distance_m[1] > extent.edge_m:
            raise EdgeflError(
                f"{distance_m[1]:g} m is beyond the cell's edge at {extent.edge_m:g} m: lower it,"
                " or raise cell.radius_m",
                ("radio", "background", "distance_m"),
            )
        uniform = rng.random((users, 2))
        radius_m = distance_m[0] + uniform[:, 0] * (distance_m[1] - distance_m[0])
        angle = 2.0 * math.pi * uniform[:, 1]
        panels = [len(of) for of in extent.layout.bearings_deg]
        site = int(np.repeat(np.arange(len(panels)), panels)[cell]) if panels else cell
        site_m: FloatArray = extent.layout.sites_m[site]
        return site_m + np.stack([radius_m * np.cos(angle), radius_m * np.sin(angle)], axis=1)

    def _places_m(self, gains: SpatialGains, cell: int, rng: np.random.Generator) -> FloatArray:
        """Draw random places until each user has a place where this cell is the strongest."""
        users, inside_m = self._settings.users, np.empty((0, 2))
        for _ in range(MOST_DRAWS):
            places_m = self._drawn_m(cell, rng)
            power_db = gains.power_db_of(places_m, np.zeros(users, dtype=np.intp))
            mine = (power_db.argmax(axis=1) == cell) & np.isfinite(power_db[:, cell])
            inside_m = np.concatenate([inside_m, places_m[mine]])[:users]
            if len(inside_m) == users:
                return inside_m
        raise EdgeflError(
            f"cell {cell} is too small a part of the world for background users", ("radio", "background")
        )

    def _walls(self, cell: int) -> Indoors | None:
        """Return the penetration loss of a cell's users, or None if no user can be indoors."""
        share, depth_m = self.devices.indoor_share, self.extent.radio.path_loss.indoor_depth_m
        if not share or depth_m is None:
            return None
        alike, streams = np.ones(self._settings.users), self.streams
        carrier_hz = self.extent.radio.carrier_hz
        coats = UniformDraws(streams, len(alike), ("background", "coated", cell))
        return Indoors(
            share * alike,
            carrier_hz,
            depth_m,
            UniformDraws(streams, len(alike), ("background", "indoors", cell)),
            Coats(self.devices.coated_share * alike, carrier_hz, coats),
        )
