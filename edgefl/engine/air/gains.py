"""Large-scale gain between devices and sites: drawn for each round (J), or fixed by the place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from channel.antenna import Sectors
from channel.geometry import within
from channel.large_scale import LargeScale
from channel.path_loss import PathLoss
from channel.shadowing import draw_shadowing_db
from channel.units import db_to_linear
from edgefl.engine.air.extent import Extent
from edgefl.engine.air.measurements import Survey
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.rng import Streams

RoundKey = tuple[int, str, int]  # session, phase, round


@dataclass(frozen=True)
class LargeScaleState:
    """The large-scale state of the links to a cell's site during a round, [devices] each."""

    ids: Sequence[int]
    gains_db: np.ndarray  # path loss and shadowing, negative
    distances_m: np.ndarray  # 2D, nan: not measured
    others: np.ndarray  # sum of the linear gains to all other sites; 0 where nobody asks for it
    key: RoundKey | None = None  # names the round
    of_cells: np.ndarray | None = None  # [devices, cells] linear gains to the other cells, where asked for
    everywhere_m: np.ndarray | None = None  # [all devices, 2] where they all are, nan: absent

    def of(self, ids: Sequence[int]) -> "LargeScaleState":
        """Return the state of some of its devices, given by sorted ids."""
        rows = np.searchsorted(self.ids, ids)
        of_cells = None if self.of_cells is None else self.of_cells[rows]
        gains_db, distances_m, others = self.gains_db[rows], self.distances_m[rows], self.others[rows]
        return LargeScaleState(ids, gains_db, distances_m, others, self.key, of_cells, self.everywhere_m)

    def behind(self, loss_db: np.ndarray) -> "LargeScaleState":
        """Return the state with a further loss [devices] towards all sites."""
        through = db_to_linear(-loss_db)
        of_cells = None if self.of_cells is None else self.of_cells * through[:, None]
        gains_db, others = self.gains_db - loss_db, self.others * through
        return replace(self, gains_db=gains_db, others=others, of_cells=of_cells)


class LargeScaleGains(Protocol):
    """Path loss and shadowing as a gain in dB, negative."""

    @property
    def clamped(self) -> int:
        """Number of links closer than the minimum distance, which took the path loss there."""

    @property
    def beyond(self) -> int:
        """Number of links that took the gain at the world's border.

        Of devices that are beyond it for less than a tick: they are present until the next look at them.
        """

    def of_round(
        self, positions_m: np.ndarray, ids: Sequence[int], cell: int | np.ndarray, key: RoundKey
    ) -> LargeScaleState:
        """Return the state of links to a cell's site, or to one for each device, in the round named by key."""

    def of_survey(self, survey: Survey, ids: Sequence[int], cells: np.ndarray) -> LargeScaleState:
        """Return the state of links to the sites of cells [ids], from what all devices measured: within 1e-3 dB."""

    def power_db(self, positions_m: np.ndarray) -> np.ndarray:
        """Return [devices, cells] the gain in dB; -inf for a device that is absent."""


@dataclass(frozen=True)
class _Measured:
    """What does not change from round to round while devices stand still, [devices] each but for the counts."""

    places_m: np.ndarray
    kinds: np.ndarray
    distances_m: np.ndarray
    loss_db: np.ndarray
    clamped: int
    beyond: int


class PerRoundGains:
    """Gains to one site at the origin: path loss of the place, shadowing drawn anew each round. J, (21).

    Args:
        extents: of each kind of device that stands at a height of its own.
        of: [devices] the kind of each, a place in `extents`.
        antenna_gain_dbi: of the site.
    """

    def __init__(
        self,
        path_loss: PathLoss,
        std_db: float,
        radio: RadioSettings,
        extents: Sequence[Extent],
        of: np.ndarray,
        streams: Streams,
        antenna_gain_dbi: float = 0.0,
    ) -> None:
        self._antenna_gain_dbi = antenna_gain_dbi
        self._path_loss = path_loss
        self._std_db = std_db
        self._radio = radio
        self._extents = extents
        self._of = of
        self._streams = streams
        self._last: _Measured | None = None
        self.clamped = 0
        self.beyond = 0

    def of_round(
        self, positions_m: np.ndarray, ids: Sequence[int], cell: int | np.ndarray, key: RoundKey
    ) -> LargeScaleState:
        chosen = np.asarray(ids)
        of = self._of_round(positions_m[chosen], self._of[chosen])
        # one draw for all devices, so that a link's shadowing does not depend on who takes part
        shadowing_db = draw_shadowing_db(
            self._streams("shadowing", *key), len(positions_m), std_db=self._std_db
        )[chosen]
        gains_db, none = -(of.loss_db + shadowing_db), np.zeros(len(ids))
        return LargeScaleState(ids, gains_db, of.distances_m, none, key, everywhere_m=positions_m)

    def _of_round(self, places_m: np.ndarray, kinds: np.ndarray) -> "_Measured":
        """Measure places [n, 2] of devices of kinds [n]; those of the round before, where nobody has moved since."""
        last = self._last
        if last is not None and np.array_equal(last.places_m, places_m) and np.array_equal(last.kinds, kinds):
            self.clamped += last.clamped
            self.beyond += last.beyond
            return last
        clamped, beyond = self.clamped, self.beyond
        distances_m = np.linalg.norm(places_m, axis=1)
        loss_db = np.empty(len(places_m))
        for extent, rows in by_kind(self._extents, kinds):
            loss_db[rows] = self._loss_db(distances_m[rows], extent)
        counts = self.clamped - clamped, self.beyond - beyond
        self._last = _Measured(places_m, kinds, distances_m, loss_db, *counts)
        return self._last

    def of_places(self, places_m: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return [n] the gains of users at places [n, 2], like the first device's, in dB."""
        loss_db = self._loss_db(np.linalg.norm(places_m, axis=1), self._extents[0])
        shadowing_db: np.ndarray = draw_shadowing_db(rng, len(places_m), std_db=self._std_db)
        return -(loss_db + shadowing_db)

    def of_survey(self, survey: Survey, ids: Sequence[int], cells: np.ndarray) -> LargeScaleState:
        raise NotImplementedError("one cell is not surveyed")

    def power_db(self, positions_m: np.ndarray) -> np.ndarray:
        raise NotImplementedError("one cell has no neighbours")

    def _loss_db(self, distances_m: np.ndarray, extent: Extent) -> np.ndarray:
        nearest_m, farthest_m = extent.min_distance_m, extent.model_ends_m
        self.clamped += int((distances_m < nearest_m).sum())
        self.beyond += int((distances_m > farthest_m).sum())
        loss_db = self._path_loss.path_loss_db(
            # path-loss models begin at the minimum distance; a device that walks closer is held at it
            np.clip(distances_m, nearest_m, farthest_m),
            carrier_hz=self._radio.carrier_hz,
            line_of_sight=self._radio.line_of_sight == "always",
            bs_height_m=extent.bs_height_m,
            ut_height_m=extent.ut_height_m,
        )
        return loss_db - self._antenna_gain_dbi


@dataclass(frozen=True)
class _Last:
    """What was asked last of gains that belong to places, and the answer.

    beyond, held: links that were beyond the world's border, and held at the minimum distance.
    """

    ids: np.ndarray
    places_m: np.ndarray
    cell: int | np.ndarray
    state: LargeScaleState
    beyond: int
    held: int

    def is_of(self, ids: np.ndarray, places_m: np.ndarray, cell: int | np.ndarray) -> bool:
        """Return whether the same is asked again."""
        return (
            np.array_equal(self.ids, ids)
            and np.array_equal(self.cell, cell)
            and np.array_equal(self.places_m, places_m)
        )


class SpatialGains:
    """Gains to the cells of any number of sites: line of sight and shadowing are functions of the place.

    Args:
        large_scales: of the sites, for each kind of device that stands at a height of its own.
        of: [devices] the kind of each, a place in `large_scales`.
        interference: whether the gains to other cells are asked for.
        sectors: the panels of the sites, each a cell, for each kind of device; None: every site is a cell and
            sends alike everywhere.
        antenna_gain_dbi: of sites without sectors.
    """

    def __init__(
        self,
        large_scales: Sequence[LargeScale],
        of: np.ndarray,
        interference: bool = False,
        sectors: Sequence[Sectors | None] = (None,),
        antenna_gain_dbi: float = 0.0,
    ) -> None:
        self._antenna_gain_dbi = antenna_gain_dbi
        self.large_scales = large_scales
        self.large_scale = large_scales[0]
        self._kinds = list(zip(large_scales, sectors, strict=True))
        self._of = of
        self.beyond = 0
        self._interference = interference
        self._held_again = 0  # links closer than the minimum distance, of rounds that were not computed anew
        self._last: _Last | None = None

    @property
    def clamped(self) -> int:
        return self._held_again + sum(one.clamped_links for one in self.large_scales)

    def of_round(
        self, positions_m: np.ndarray, ids: Sequence[int], cell: int | np.ndarray, key: RoundKey
    ) -> LargeScaleState:
        chosen = np.asarray(ids)
        places_m, last = positions_m[chosen], self._last
        if last is not None and last.is_of(
            chosen, places_m, cell
        ):  # a million who stand still are measured once
            self.beyond += last.beyond
            self._held_again += last.held
            return replace(last.state, ids=ids, key=key, everywhere_m=positions_m)
        beyond, held = self.beyond, self.clamped
        state = self._of_round(positions_m, ids, chosen, cell, key)
        self._last = _Last(chosen, places_m, cell, state, self.beyond - beyond, self.clamped - held)
        return state

    def _of_round(
        self,
        positions_m: np.ndarray,
        ids: Sequence[int],
        chosen: np.ndarray,
        cell: int | np.ndarray,
        key: RoundKey,
    ) -> LargeScaleState:
        places_m = positions_m[chosen]
        distances_m = np.hypot(places_m[:, 0], places_m[:, 1])
        if (outside := distances_m > self.large_scale.area_radius_m).any():
            self.beyond += int(outside.sum())
            places_m[outside] *= (self.large_scale.area_radius_m / distances_m[outside])[:, None]
        _, sectors = self._kinds[0]
        cells = cell if isinstance(cell, np.ndarray) else np.full(len(ids), cell)
        sites = cells if sectors is None else sectors.site_of(cells)
        gains_db, others, of_all = np.empty(len(ids)), np.zeros(len(ids)), None
        for (large_scale, sectors), rows in by_kind(self._kinds, self._of[chosen]):
            here_m, to, of_sites = places_m[rows], sites[rows], None
            own = np.arange(len(to)), cells[rows]
            if self._interference:
                gains_db[rows], distances_m[rows], of_sites = large_scale.links_among(here_m, to)
            else:
                gains_db[rows], distances_m[rows] = large_scale.links_to(here_m, to)
            gains_db[rows] += self._antenna_gain_dbi if sectors is None else sectors.gain_dbi(here_m)[own]
            if of_sites is not None:
                of_cells = self._of_cells(of_sites, sectors, here_m)
                # device by device in memory: a sum's rounding depends on it
                everywhere = db_to_linear(of_cells.astype(float, order="C"))
                others[rows] = everywhere.sum(axis=1) - everywhere[own]
                everywhere[own] = 0.0
                if of_all is None:
                    of_all = np.empty((len(ids), everywhere.shape[1]))
                of_all[rows] = everywhere
        return LargeScaleState(ids, gains_db, distances_m, others, key, of_all, positions_m)

    def of_survey(self, survey: Survey, ids: Sequence[int], cells: np.ndarray) -> LargeScaleState:
        chosen, own = np.asarray(ids, dtype=np.intp), (np.arange(len(ids)), cells)
        # device by device in memory: a sum's rounding depends on it
        of_cells = survey.power_db[chosen].astype(float, order="C")
        gains_db, others, unknown_m = of_cells[own], np.zeros(len(ids)), np.full(len(ids), np.nan)
        if not self._interference:
            return LargeScaleState(ids, gains_db, unknown_m, others, everywhere_m=survey.positions_m)
        everywhere = db_to_linear(of_cells)
        everywhere[own] = 0.0
        others = everywhere.sum(axis=1)
        return LargeScaleState(
            ids, gains_db, unknown_m, others, of_cells=everywhere, everywhere_m=survey.positions_m
        )

    def power_db(self, positions_m: np.ndarray) -> np.ndarray:
        """Return [devices, cells] the gain in dB: what a measurement compares, as all cells send alike.

        -inf for a device that is absent, or beyond the world's border.
        """
        return self.power_db_of(positions_m, np.arange(len(positions_m)))

    def power_db_of(self, positions_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Return `power_db` of some devices, [n, cells] at positions [n, 2]."""
        here = within(positions_m, self.large_scale.area_radius_m * (1 + 1e-10))
        large_scale, sectors = self._kinds[0]
        if here.all() and len(self._kinds) == 1:
            return self._of_cells(large_scale.gain_db(positions_m), sectors, positions_m)
        cells = len(large_scale.sites_m) * (1 if sectors is None else len(sectors.panels))
        power_db = np.full((cells, len(positions_m)), -np.inf, np.float32).T
        for (large_scale, sectors), rows in by_kind(self._kinds, self._of[ids]):
            mine = np.arange(len(ids))[rows]
            mine = mine[here[mine]]
            here_m = positions_m[mine]
            power_db[mine] = self._of_cells(large_scale.gain_db(here_m), sectors, here_m)
        return power_db

    def _of_cells(self, gain_db: np.ndarray, sectors: Sectors | None, positions_m: np.ndarray) -> np.ndarray:
        """Return [n, cells] the gain in dB from gain_db [n, S], that to the sites, at places [n, 2]."""
        if sectors is None:
            return gain_db + self._antenna_gain_dbi if self._antenna_gain_dbi else gain_db
        panels_dbi = sectors.gain_dbi(positions_m, single=True)
        return np.repeat(gain_db, len(sectors.panels), axis=1) + panels_dbi


Kind = TypeVar("Kind")


def by_kind(kinds: Sequence[Kind], of: np.ndarray) -> Iterator[tuple[Kind, np.ndarray | slice]]:
    """Yield each kind that occurs, and the rows that are of it: all, where there is one.

    Args:
        of: [n] the kind of each row, a place in `kinds`.
    """
    if len(kinds) == 1:
        yield kinds[0], slice(None)
        return
    for number, kind in enumerate(kinds):
        rows = np.flatnonzero(of == number)
        if len(rows):
            yield kind, rows
