"""Notes on daily plans that lead no one home, or to places without streets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from edgefl.places.street_map import StreetMap


def without_a_return(followed: np.ndarray, goals: Sequence[str], home: str) -> Iterator[str]:
    """Note people that leave home and never come back.

    Args:
        followed: [entries, people] whether a person follows an entry of the plan. goals: [entries] its destination.
        home: name of the home.
    """
    homewards = np.array([goal == home for goal in goals])
    lost = followed[~homewards].any(axis=0) & ~followed[homewards].any(axis=0)
    if not lost.any():
        return
    remedy = 'add a trip to the plan, such as {leave: "18:00", to: home}'
    if homewards.any():
        remedy = "the trips home have a smaller share than others: leave it out there"
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
    """Note places without a way along streets to the others, for most people with a spot there.

    Args:
        spots_m: [places, 2, people]. pairs: two places -> the people who travel between them. names: of the places.
    """
    if streets.lost is None:
        return
    for place, name in enumerate(names):
        travelling = [ids for pair, ids in pairs.items() if place in pair]
        if not travelling:
            continue
        spots = np.unique(spots_m[place][:, np.unique(np.concatenate(travelling))], axis=1)
        lost, apart_m = streets.cut_off(spots)
        if 2 * lost.sum() > lost.size:
            yield (
                f"mobility itinerary: no way leads along streets from {name} to other places: {lost.sum():,} of its"
                f" {lost.size:,} spots lie at streets that do not meet the rest of the map, and people walk up to"
                f" {apart_m[lost].max():,.0f} m straight to streets that do; join the streets where they share a"
                " point, or take a larger map"
            )
