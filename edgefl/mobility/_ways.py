"""Routes of people between their places, along streets or straight, and notes on missing routes and trips home."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from edgefl.places.street_map import StreetMap

# distance from every street beyond which a note tells that no street reaches a place; our choice, as few places in a
# town are so far from a street that a map shows
FAR_M = 500.0


class Ways:
    """The routes of all people between pairs of their places, with all corners in one table.

    Attributes:
        corners_m: [2, corners] the corners of all routes, m.

    Args:
        spots_m: [places, 2, people] positions of each person's places.
        pairs: two places, the lower number first -> the people who walk between them.
        streets: the streets, or None if routes are straight.
    """

    def __init__(
        self, spots_m: np.ndarray, pairs: Mapping[tuple[int, int], np.ndarray], streets: "StreetMap | None"
    ) -> None:
        self._places, _, people = spots_m.shape
        # first and last corner by pair of places and person; initially corner 0 alone, for people who stay
        self._first, self._last = np.zeros((2, self._places**2, people), dtype=np.int64)
        parts, along_m, corners = [np.zeros((2, 1))], [np.zeros(1)], 1
        for (low, high), ids in pairs.items():
            begin_m, end_m = spots_m[high][:, ids], spots_m[low][:, ids]
            # search both directions from the higher-numbered place, since homes (place 0) are the most scattered
            ways = streets.ways(begin_m, end_m) if streets else np.stack([begin_m, end_m], axis=1).T
            for person, way in zip(ids.tolist(), ways, strict=True):
                for pair, corners_m in ((high, low), way), ((low, high), way[::-1]):
                    self._first[pair[0] * self._places + pair[1], person] = corners
                    corners += len(corners_m)
                    self._last[pair[0] * self._places + pair[1], person] = corners - 1
                    parts.append(corners_m.T)
                    along_m.append(np.append(0.0, np.cumsum(np.hypot(*np.diff(corners_m.T)))))
        self.corners_m = np.concatenate(parts, axis=1)
        # measured from each route's own first corner, so that other routes do not affect rounding
        self._along_m = np.concatenate(along_m)

    def of(self, ids: np.ndarray, place: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the last corner [ids] of each person's route from a place to a goal."""
        pair = place * self._places + goal
        return self._first[pair, ids], self._last[pair, ids]

    def lengths_m(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return the distance [n] along a route from each first corner to a later corner of the same route, m."""
        return self._along_m[last] - self._along_m[first]

    def after(
        self, first: np.ndarray, last: np.ndarray, walked_m: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the last corner [n] each person has passed, and positions [2, n], `walked_m` along the routes."""
        corner = first.copy()
        while np.any(
            passed := (corner + 1 < last) & (self._along_m[np.minimum(corner + 1, last)] <= walked_m)
        ):
            corner += passed
        on = np.minimum(corner + 1, last)
        step_m = self.lengths_m(corner, on)
        share = np.divide(
            walked_m - self._along_m[corner], step_m, out=np.zeros_like(step_m), where=step_m > 0
        )
        begin_m = self.corners_m[:, corner]
        return corner, begin_m + np.clip(share, 0.0, 1.0) * (self.corners_m[:, on] - begin_m)


def without_a_return(followed: np.ndarray, goals: Sequence[str], home: str) -> Iterator[str]:
    """Yield a note on people that leave home and never return.

    Args:
        followed: [entries, people] whether a person follows an entry. goals: [entries] each entry's destination.
        home: name of the place that is people's home.
    """
    homewards = np.array([goal == home for goal in goals])
    lost = followed[~homewards].any(axis=0) & ~followed[homewards].any(axis=0)
    if not lost.any():
        return
    remedy = 'add a trip to the plan, such as {leave: "18:00", to: home}'
    if homewards.any():
        remedy = "in trips home, leave share out if it is smaller than in other trips"
    there = dict.fromkeys(goals[entry] for entry in np.flatnonzero(followed[:, lost].any(axis=1)).tolist())
    yield (
        f"mobility itinerary: {lost.sum():,} of {lost.size:,} people leave home and never come back: they remain at"
        f" {' or '.join(there)}; {remedy}"
    )


def cut_off(
    spots_m: np.ndarray,
    pairs: Mapping[tuple[int, int], np.ndarray],
    streets: "StreetMap",
    names: Sequence[str],
) -> Iterator[str]:
    """Yield a note on each place from which most people have no way along streets, or far from all streets.

    Args:
        spots_m: [places, 2, people] positions of each person's places. pairs: two places -> the people who travel
            between them. names: names of the places.
    """
    for place, name in enumerate(names):
        travelling = [ids for pair, ids in pairs.items() if place in pair and len(ids)]
        if not travelling:
            continue
        spots = np.unique(spots_m[place][:, np.unique(np.concatenate(travelling))], axis=1)
        lost, apart_m = streets.cut_off(spots)
        far = apart_m > FAR_M
        if 2 * lost.sum() > lost.size:
            yield (
                f"mobility itinerary: no route along streets leads from {name} to other places: "
                f"{lost.sum():,} of its {lost.size:,} spots are nearest to streets that are cut off from "
                f"the rest of the map, so people walk up to {apart_m[lost].max():,.0f} m in a straight "
                "line to the connected part; join the streets where they share a point, or use a larger map"
            )
        elif 2 * far.sum() > far.size:
            yield (
                f"mobility itinerary: no street reaches {name}: {far.sum():,} of its {far.size:,} spots are farther"
                f" than {FAR_M:g} m from every street, so people walk up to {apart_m.max():,.0f} m in a straight"
                " line; use a larger map, or move the address"
            )
