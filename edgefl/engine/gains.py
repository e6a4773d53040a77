"""Large-scale gain between devices and sites: drawn for each round (J), or fixed by the place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from channel.antenna import Sectors
from channel.large_scale import LargeScale
from channel.path_loss import PathLoss
from channel.shadowing import draw_shadowing_db
from channel.units import db_to_linear
from edgefl.engine.settings import RadioSettings
from edgefl.extent import Extent
from edgefl.rng import Streams

RoundKey = tuple[int, str, int]  # session, phase, round


@dataclass(frozen=True)
class Survey:
    """The large-scale state of the links to a cell's site during a round, [devices] each."""

    ids: Sequence[int]
    gains_db: np.ndarray  # path loss and shadowing, negative
    distances_m: np.ndarray  # 2D
    others: np.ndarray  # sum of the linear gains to all other sites; 0 where nobody asks for it

    def of(self, ids: Sequence[int]) -> "Survey":
        """Return the survey of some of its devices, given by sorted ids."""
        rows = np.searchsorted(self.ids, ids)
        return Survey(ids, self.gains_db[rows], self.distances_m[rows], self.others[rows])


class Gains(Protocol):
    """Path loss and shadowing as a gain in dB, negative."""

    @property
    def clamped(self) -> int:
        """Number of links closer than the minimum distance, which took the path loss there."""

    @property
    def beyond(self) -> int:
        """Number of links that took the gain at the world's border.

        Of devices that are beyond it for less than a tick: they are present until the next look at them.
        """

    def of_round(self, positions_m: np.ndarray, ids: Sequence[int], cell: int, key: RoundKey) -> Survey:
        """Survey the links of these devices to the cell's site during the round named by key."""


class PerRound:
    """Gains to one site at the origin: path loss of the place, shadowing drawn anew each round. J, (21)."""

    def __init__(
        self,
        path_loss: PathLoss,
        std_db: float,
        radio: RadioSettings,
        extent: Extent,
        streams: Streams,
    ) -> None:
        self._path_loss = path_loss
        self._std_db = std_db
        self._radio = radio
        self._extent = extent
        self._streams = streams
        self.clamped = 0
        self.beyond = 0

    def of_round(self, positions_m: np.ndarray, ids: Sequence[int], cell: int, key: RoundKey) -> Survey:
        chosen = np.asarray(ids)
        distances_m = np.linalg.norm(positions_m[chosen], axis=1)
        nearest_m, farthest_m = self._extent.min_distance_m, self._extent.model_ends_m
        self.clamped += int((distances_m < nearest_m).sum())
        self.beyond += int((distances_m > farthest_m).sum())
        loss_db = self._path_loss.path_loss_db(
            # path-loss models begin at the minimum distance; a device that walks closer is held at it
            np.clip(distances_m, nearest_m, farthest_m),
            carrier_hz=self._radio.carrier_hz,
            line_of_sight=self._radio.line_of_sight == "always",
            bs_height_m=self._extent.bs_height_m,
            ut_height_m=self._extent.ut_height_m,
        )
        # one draw for all devices, so that a link's shadowing does not depend on who takes part
        shadowing_db = draw_shadowing_db(
            self._streams("shadowing", *key), len(positions_m), std_db=self._std_db
        )[chosen]
        return Survey(ids, -(loss_db + shadowing_db), distances_m, np.zeros(len(ids)))


class PerPlace:
    """Gains to the cells of any number of sites: line of sight and shadowing are functions of the place.

    Args:
        large_scale: of the sites.
        interference: whether the gains to other cells are asked for.
        sectors: the panels of the sites, each a cell; None: every site is a cell and sends alike everywhere.
    """

    def __init__(
        self, large_scale: LargeScale, interference: bool = False, sectors: Sectors | None = None
    ) -> None:
        self.large_scale = large_scale
        self.beyond = 0
        self._interference = interference
        self._sectors = sectors

    @property
    def clamped(self) -> int:
        return self.large_scale.clamped_links

    def of_round(self, positions_m: np.ndarray, ids: Sequence[int], cell: int, key: RoundKey) -> Survey:
        places_m = positions_m[np.asarray(ids)]
        distances_m = np.hypot(places_m[:, 0], places_m[:, 1])
        if (outside := distances_m > self.large_scale.area_radius_m).any():
            self.beyond += int(outside.sum())
            places_m[outside] *= (self.large_scale.area_radius_m / distances_m[outside])[:, None]
        sectors = self._sectors
        sites = np.full(len(ids), cell if sectors is None else sectors.site_of(cell))
        gains_db = self.large_scale.gain_db_to(places_m, sites)
        if sectors is not None:
            gains_db += sectors.gain_dbi(places_m)[:, cell]
        others = np.zeros(len(ids))
        if self._interference:
            everywhere = db_to_linear(self._of_cells(places_m).astype(float))
            others = everywhere.sum(axis=1) - everywhere[:, cell]
        return Survey(ids, gains_db, self.large_scale.distance_m(places_m, sites), others)

    def power_db(self, positions_m: np.ndarray) -> np.ndarray:
        """Return [devices, cells] the gain in dB: what a measurement compares, as all cells send alike.

        -inf for a device that is absent, or beyond the world's border.
        """
        here = np.hypot(positions_m[:, 0], positions_m[:, 1]) <= self.large_scale.area_radius_m * (1 + 1e-10)
        if here.all():
            return self._of_cells(positions_m)
        measured_db = self._of_cells(positions_m[here])
        power_db = np.full((len(positions_m), measured_db.shape[1]), -np.inf, np.float32)
        power_db[here] = measured_db
        return power_db

    def _of_cells(self, positions_m: np.ndarray) -> np.ndarray:
        """Return [n, cells] the gain in dB at places within the world."""
        gain_db = self.large_scale.gain_db(positions_m)
        if self._sectors is None:
            return gain_db
        panels_dbi = self._sectors.gain_dbi(positions_m, single=True)
        return np.repeat(gain_db, len(self._sectors.panels), axis=1) + panels_dbi
