"""Times in which sites have sent while rounds overlap, so that no moment is charged twice."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

Interval = tuple[float, float]


class SentTime:
    """The times in which sites have sent so far, as disjoint intervals in order."""

    def __init__(self) -> None:
        self._sent: dict[int, list[Interval]] = defaultdict(list)

    def take(self, site: int, intervals: Iterable[Interval]) -> list[Interval]:
        """Add intervals in which a site sends; return the parts not covered before, disjoint and in order."""
        new: list[Interval] = []
        for start_s, end_s in united(intervals):
            for before_s, after_s in self._sent[site]:
                if before_s < end_s and after_s > start_s:
                    if before_s > start_s:
                        new.append((start_s, before_s))
                    start_s = max(start_s, after_s)
            if start_s < end_s:
                new.append((start_s, end_s))
        self._sent[site] = united([*self._sent[site], *new])
        return new

    def forget(self, until_s: float) -> None:
        """Forget intervals that ended by `until_s`; intervals added later must not begin before that time."""
        for site, sent in self._sent.items():
            self._sent[site] = [one for one in sent if one[1] > until_s]


def united(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of intervals, disjoint and in order."""
    union: list[Interval] = []
    until_s = -math.inf
    for start_s, end_s in sorted(intervals):
        if end_s <= start_s:
            continue
        if start_s <= until_s:
            until_s = max(until_s, end_s)
            union[-1] = (union[-1][0], until_s)
        else:
            union.append((start_s, end_s))
            until_s = end_s
    return union


def in_turn(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """Yield the part of each interval that earlier intervals do not cover."""
    until_s = -math.inf
    for start_s, end_s in sorted(intervals):
        start_s = max(start_s, until_s)
        if end_s > start_s:
            yield start_s, end_s
            until_s = end_s
