"""Large-scale gains between devices and one site, drawn for each round (J)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edgefl.channel.shadowing import draw_shadowing_db
from edgefl.engine.air.extent import Extent
from edgefl.engine.air.gains import LargeScaleGains, LargeScaleState, RoundKey, by_kind
from edgefl.engine.derived import Derived
from edgefl.rng import Streams


class _Loss(NamedTuple):
    """Path loss minus antenna gain at places [n], and the number of places clamped at either end of the range."""

    distances_m: np.ndarray
    loss_db: np.ndarray
    clamped: int
    beyond: int


class PerRoundGains(LargeScaleGains):
    """Gains to one site at the origin: path loss at the place, and shadowing drawn for each round (J 21).

    Args:
        extents: the world's distances and antenna heights, one object per device height.
        of: [devices] index of each device's height in `extents`.
    """

    def __init__(self, extents: Sequence[Extent], of: np.ndarray, streams: Streams) -> None:
        self._std_db = extents[0].shadowing_std_db
        self._extents = extents
        self._of = of
        self._streams = streams
        self._loss = Derived(self._loss_of)  # computed once while devices stand still

    def of_round(
        self, positions_m: np.ndarray, ids: Sequence[int], cell: int | np.ndarray, key: RoundKey
    ) -> LargeScaleState:
        chosen = np.asarray(ids)
        of = self._loss(positions_m[chosen], self._of[chosen])
        self.clamped += of.clamped
        self.beyond += of.beyond
        # draw for all devices at once, so that a device's shadowing does not depend on the other participants
        shadowing_db = draw_shadowing_db(
            self._streams("shadowing", *key), len(positions_m), std_db=self._std_db
        )[chosen]
        gains_db, none = -(of.loss_db + shadowing_db), np.zeros(len(ids))
        in_sight = np.full(len(ids), float(self._extents[0].in_sight))
        return LargeScaleState(
            ids, gains_db, of.distances_m, none, key, everywhere_m=positions_m, in_sight=in_sight
        )

    def of_places(self, places_m: np.ndarray, rng: np.random.Generator) -> LargeScaleState:
        """Return the state of links from places [n, 2] at the first extent's height; leave `clamped` unchanged."""
        first, none = np.zeros(len(places_m), dtype=np.intp), np.zeros(len(places_m))
        of = self._loss_of(places_m, first)
        shadowing_db = draw_shadowing_db(rng, len(places_m), std_db=self._std_db)
        gains_db, in_sight = (
            -(of.loss_db + shadowing_db),
            np.full(len(first), float(self._extents[0].in_sight)),
        )
        return LargeScaleState(first.tolist(), gains_db, of.distances_m, none, in_sight=in_sight)

    def _loss_of(self, places_m: np.ndarray, kinds: np.ndarray) -> _Loss:
        """Return the path loss of devices with height indices `kinds` [n] at places [n, 2]."""
        distances_m, loss_db = np.linalg.norm(places_m, axis=1), np.empty(len(places_m))
        clamped = beyond = 0
        for extent, rows in by_kind(self._extents, kinds):
            nearest_m, farthest_m = extent.min_distance_m, extent.model_ends_m
            clamped += int((distances_m[rows] < nearest_m).sum())
            beyond += int((distances_m[rows] > farthest_m).sum())
            # models begin at the minimum distance, so a closer device has the path loss of that distance
            loss_db[rows] = extent.path_loss_db(np.clip(distances_m[rows], nearest_m, farthest_m))
        return _Loss(distances_m, loss_db - self._extents[0].layout.antenna_gain_dbi, clamped, beyond)
