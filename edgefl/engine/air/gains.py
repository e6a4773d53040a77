"""Define the interface of large-scale gains between devices and sites, and gains that depend on the place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from edgefl.channel.antenna import Sectors
from edgefl.channel.geometry import within
from edgefl.channel.large_scale import LargeScale
from edgefl.channel.units import db_to_linear
from edgefl.engine.air.measurements import Survey
from edgefl.engine.derived import Derived

RoundKey = tuple[int, str, int]  # session, phase, round
_BY_ROUND = "these gains do not depend on the place alone"


@dataclass(frozen=True)
class LargeScaleState:
    """Large-scale state of a round's links to a cell's site, as arrays [devices]."""

    ids: Sequence[int]
    gains_db: np.ndarray  # path loss and shadowing, negative
    distances_m: np.ndarray  # 2D, nan if not measured
    others: np.ndarray  # sum of the linear gains to all other sites; 0 if not needed
    key: RoundKey | None = None  # session, phase and number of the round
    of_cells: np.ndarray | None = None  # [devices, cells] linear gains to the other cells, if needed
    everywhere_m: np.ndarray | None = None  # [all devices, 2] positions, nan if absent
    # fraction of each link's power that arrives in line of sight, if it matters; None: all of the power
    in_sight: np.ndarray | None = None

    def of(self, ids: Sequence[int]) -> "LargeScaleState":
        """Return the large-scale state of the round's devices with these sorted ids."""
        rows = np.searchsorted(self.ids, ids)
        of_cells = None if self.of_cells is None else self.of_cells[rows]
        in_sight = None if self.in_sight is None else self.in_sight[rows]
        gains_db, distances_m, others = self.gains_db[rows], self.distances_m[rows], self.others[rows]
        everywhere_m = self.everywhere_m
        return LargeScaleState(ids, gains_db, distances_m, others, self.key, of_cells, everywhere_m, in_sight)

    def behind(self, loss_db: np.ndarray, hidden: np.ndarray) -> "LargeScaleState":
        """Return the state with an additional loss [devices] to all sites; `hidden` devices have no line of sight."""
        through = db_to_linear(-loss_db)
        of_cells = None if self.of_cells is None else self.of_cells * through[:, None]
        in_sight = None if self.in_sight is None else np.where(hidden, 0.0, self.in_sight)
        gains_db, others = self.gains_db - loss_db, self.others * through
        return replace(self, gains_db=gains_db, others=others, of_cells=of_cells, in_sight=in_sight)


class LargeScaleGains:
    """Path loss and shadowing as a negative gain in dB; gains drawn for each round implement only `of_round`.

    Attributes:
        clamped: number of links shorter than the minimum distance, which have the path loss of that distance.
        beyond: number of links with the gain at the world's border, or at the end of the path loss's range. Such a
            link's device left less than a tick ago and still counts as present, or left with work under way.
    """

    clamped = 0
    beyond = 0

    def of_round(
        self, positions_m: np.ndarray, ids: Sequence[int], cell: int | np.ndarray, key: RoundKey
    ) -> LargeScaleState:
        """Return the state of links to a cell's site, or to one site per device, in the round `key`."""
        raise NotImplementedError

    def of_survey(self, survey: Survey, ids: Sequence[int], cells: np.ndarray) -> LargeScaleState:
        """Return the state of links to the sites of cells [ids] from a survey, to within 1e-3 dB."""
        raise NotImplementedError(_BY_ROUND)

    def of_links(self, places_m: np.ndarray, ids: np.ndarray, cells: np.ndarray) -> LargeScaleState:
        """Return the state of links from places [n, 2] to cells [n], to within 1e-3 dB; leave `clamped` unchanged."""
        raise NotImplementedError(_BY_ROUND)

    def power_db(self, positions_m: np.ndarray) -> np.ndarray:
        """Return the gain [devices, cells] in dB; -inf for an absent device."""
        raise NotImplementedError(_BY_ROUND)


class SpatialGains(LargeScaleGains):
    """Gains to the cells of any number of sites, with line of sight and shadowing as functions of the place.

    Args:
        large_scales: the sites' gains as functions of the place, one object per device height.
        of: [devices] index of each device's height in `large_scales`.
        interference: whether gains to other cells are needed.
        sectors: panels of the sites, each panel a cell, one object per device height; None if every site is a single,
            omnidirectional cell.
        antenna_gain_dbi: antenna gain of sites without sectors.
        sight: whether to compute the line-of-sight share of each link's power.
    """

    def __init__(
        self,
        large_scales: Sequence[LargeScale],
        of: np.ndarray,
        interference: bool = False,
        sectors: Sequence[Sectors | None] = (None,),
        antenna_gain_dbi: float = 0.0,
        sight: bool = False,
    ) -> None:
        self._sight = sight
        self._antenna_gain_dbi = antenna_gain_dbi
        self.large_scales = large_scales
        self.large_scale = large_scales[0]
        self._kinds = list(zip(large_scales, sectors, strict=True))
        self._of = of
        self._interference = interference
        self._links = Derived(self._links_of)  # computed once while devices stand still

    def of_round(
        self, positions_m: np.ndarray, ids: Sequence[int], cell: int | np.ndarray, key: RoundKey
    ) -> LargeScaleState:
        chosen = np.asarray(ids)
        state, held, outside = self._links(chosen, cell, positions_m[chosen])
        self.clamped += held
        self.beyond += outside
        return replace(state, ids=ids, key=key, everywhere_m=positions_m)

    def _links_of(
        self, ids: np.ndarray, cell: int | np.ndarray, places_m: np.ndarray
    ) -> tuple[LargeScaleState, int, int]:
        """Return the links of devices [n], and how many are below the minimum distance and beyond the border."""
        places_m, outside = self._within_border(places_m)
        _, sectors = self._kinds[0]
        cells = cell if isinstance(cell, np.ndarray) else np.full(len(ids), cell)
        sites = cells if sectors is None else sectors.site_of(cells)
        gains_db, distances_m, others = np.zeros((3, len(ids)))
        of_all, held = None, 0
        for (large_scale, sectors), rows in by_kind(self._kinds, self._of[ids]):
            here_m, to, of_sites = places_m[rows], sites[rows], None
            own = np.arange(len(to)), cells[rows]
            if self._interference:
                gains_db[rows], distances_m[rows], of_sites = large_scale.links_among(here_m, to)
            else:
                gains_db[rows], distances_m[rows] = large_scale.links_to(here_m, to)
            held += int(large_scale.is_held(distances_m[rows]).sum())
            outside += int(large_scale.is_beyond(distances_m[rows]).sum())
            gains_db[rows] += self._antenna_gain_dbi if sectors is None else sectors.gain_dbi(here_m)[own]
            if of_sites is not None:
                of_cells = self._of_cells(of_sites, sectors, here_m)
                # C order, since the rounding of sums depends on the memory order
                everywhere = db_to_linear(of_cells.astype(float, order="C"))
                others[rows] = everywhere.sum(axis=1) - everywhere[own]
                everywhere[own] = 0.0
                if of_all is None:
                    of_all = np.empty((len(ids), everywhere.shape[1]))
                of_all[rows] = everywhere
        in_sight = self._in_sight(places_m, ids, cells)
        state = LargeScaleState(
            ids.tolist(), gains_db, distances_m, others, of_cells=of_all, in_sight=in_sight
        )
        return state, held, outside

    def _in_sight(self, places_m: np.ndarray, ids: np.ndarray, cells: np.ndarray) -> np.ndarray | None:
        """Return [n] the share of each link's power arriving in line of sight, if needed; 1 for absent devices."""
        if not self._sight:
            return None
        in_sight, here = np.ones(len(ids)), np.isfinite(places_m[:, 0])
        for (large_scale, sectors), rows in by_kind(self._kinds, self._of[ids]):
            mine = np.arange(len(ids))[rows]
            mine = mine[here[mine]]
            sites = cells[mine] if sectors is None else sectors.site_of(cells[mine])
            in_sight[mine] = large_scale.in_sight(places_m[mine], sites)
        return in_sight

    def of_survey(self, survey: Survey, ids: Sequence[int], cells: np.ndarray) -> LargeScaleState:
        chosen, own = np.asarray(ids, dtype=np.intp), (np.arange(len(ids)), cells)
        # C order, since the rounding of sums depends on the memory order
        of_cells = survey.power_db[chosen].astype(float, order="C")
        everywhere_m, unknown_m = survey.positions_m, np.full(len(ids), np.nan)
        far = np.flatnonzero(np.isneginf(of_cells[own]) & np.isfinite(everywhere_m[chosen, 0]))
        if len(far):
            held_m, outside = self._within_border(everywhere_m[chosen[far]])
            self.beyond += outside
            of_cells[far] = self.power_db_of(held_m, chosen[far])
        gains_db, others = self._held(of_cells[own], chosen, cells, everywhere_m[chosen]), np.zeros(len(ids))
        in_sight, everywhere = None, None
        if self._sight:
            in_sight = self._in_sight(self._within_border(everywhere_m[chosen])[0], chosen, cells)
        if self._interference:
            everywhere = db_to_linear(of_cells)
            everywhere[own] = 0.0
            others = everywhere.sum(axis=1)
        return LargeScaleState(ids, gains_db, unknown_m, others, None, everywhere, everywhere_m, in_sight)

    def of_links(self, places_m: np.ndarray, ids: np.ndarray, cells: np.ndarray) -> LargeScaleState:
        places_m = self._within_border(places_m)[0]
        of_cells = self.power_db_of(places_m, ids).astype(float)
        received_db, unknown_m = of_cells[np.arange(len(ids)), cells], np.full(len(ids), np.nan)
        others = np.maximum(db_to_linear(of_cells).sum(axis=1) - db_to_linear(received_db), 0.0)
        gains_db = self._held(received_db, ids, cells, places_m)
        in_sight = self._in_sight(places_m, ids, cells)
        return LargeScaleState(ids.tolist(), gains_db, unknown_m, others, in_sight=in_sight)

    def _held(
        self, gains_db: np.ndarray, ids: np.ndarray, cells: np.ndarray, places_m: np.ndarray
    ) -> np.ndarray:
        """Return gains [n] to cells; for a site out of range, the gain at the end of the range."""
        far = np.flatnonzero(np.isneginf(gains_db) & np.isfinite(places_m[:, 0]))
        if len(far):
            gains_db[far] = self._links_of(ids[far], cells[far], places_m[far])[0].gains_db
        return gains_db

    @property
    def range_m(self) -> float:
        """Distance within which devices of any height receive sites; inf without a limit."""
        return min(one.range_m for one in self.large_scales)

    def reached(self, positions_m: np.ndarray) -> np.ndarray:
        """Return [n] whether places [n, 2] are in range of a site for devices of any height."""
        return np.logical_and.reduce([one.reached(positions_m) for one in self.large_scales])

    def _within_border(self, places_m: np.ndarray) -> tuple[np.ndarray, int]:
        """Move any of the places [n, 2] outside the world to its border; return all places and the number moved."""
        radius_m, distances_m = self.large_scale.area_radius_m, np.hypot(places_m[:, 0], places_m[:, 1])
        outside = distances_m > radius_m
        if not outside.any():
            return places_m, 0
        held_m = places_m.copy()
        held_m[outside] *= (radius_m / distances_m[outside])[:, None]
        return held_m, int(outside.sum())

    def power_db(self, positions_m: np.ndarray) -> np.ndarray:
        """Return the gain [devices, cells] in dB; handovers compare gains, since all cells send at equal power.

        The gain is -inf for a device that is absent or beyond the world's border. If such a device still has a link,
        use `of_round`, `of_survey` or `of_links` for it.
        """
        return self.power_db_of(positions_m, np.arange(len(positions_m)))

    def power_db_of(self, positions_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Return the gain [n, cells] in dB of devices [n] at positions [n, 2], as `power_db` does for all devices."""
        here = within(positions_m, self.large_scale.area_radius_m * (1 + 1e-10))
        large_scale, sectors = self._kinds[0]
        if here.all() and len(self._kinds) == 1:
            return self._of_cells(large_scale.gain_db(positions_m), sectors, positions_m)
        cells = len(large_scale.sites_m if sectors is None else sectors.sites)
        power_db = np.full((cells, len(positions_m)), -np.inf, np.float32).T
        for (large_scale, sectors), rows in by_kind(self._kinds, self._of[ids]):
            mine = np.arange(len(ids))[rows]
            mine = mine[here[mine]]
            here_m = positions_m[mine]
            power_db[mine] = self._of_cells(large_scale.gain_db(here_m), sectors, here_m)
        return power_db

    def _of_cells(self, gain_db: np.ndarray, sectors: Sectors | None, positions_m: np.ndarray) -> np.ndarray:
        """Convert gains to sites, gain_db [n, sites], at places [n, 2] to gains to cells [n, cells] in dB."""
        if sectors is None:
            return gain_db + self._antenna_gain_dbi if self._antenna_gain_dbi else gain_db
        panels_dbi = sectors.gain_dbi(positions_m, single=True)
        return np.take(gain_db, sectors.sites, axis=1) + panels_dbi


Kind = TypeVar("Kind")


def by_kind(kinds: Sequence[Kind], of: np.ndarray) -> Iterator[tuple[Kind, np.ndarray | slice]]:
    """Yield each kind that occurs in `of` with its rows; a slice stands for all rows if there is only one kind.

    Args:
        of: [n] index of each row's kind in `kinds`.
    """
    if len(kinds) == 1:
        yield kinds[0], slice(None)
        return
    for number, kind in enumerate(kinds):
        rows = np.flatnonzero(of == number)
        if len(rows):
            yield kind, rows
