"""Draw pages of fading for many links together, and cache the newest; older ones can be redrawn identically."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray

# Number of pages of a grid that a link caches; the two ends of a finer page can be on two of these pages
KEPT = 2

# Regions of the random generator's counter; draws from different regions never overlap
_FADING_REGION = 0
_STREAM_REGION = 1
_EMPTY_BUFFER = np.zeros(4, dtype=np.uint64)
# a single generator that is reset for each page, since creating a new one takes seven times as long
_REUSED = np.random.Generator(np.random.Philox())


class _LinkDraws:
    """The random numbers of one link, by slot and purpose.

    Args:
        key: 128-bit key of the link's random numbers.

    Raises:
        ValueError: the key is out of range.
    """

    def __init__(self, key: int) -> None:
        if not 0 <= key < 2**128:
            raise ValueError(f"key must be a 128-bit number >= 0, got {key}")
        self.key = key
        # Philox accepts arrays of 64-bit words in half the time of big integers
        self._words = np.array((key & 2**64 - 1, key >> 64), dtype=np.uint64)

    def generator(
        self, first_slot: int, stream: int, reused: np.random.Generator | None = None
    ) -> np.random.Generator:
        """Return a random generator of this link for a slot and purpose, independent of the fading.

        Args:
            first_slot: number of the slot, 0 to 2^64 - 1.
            stream: number that identifies the purpose, 0 to 2^64 - 1.
            reused: a Philox generator to reset and return, which takes a seventh of the time of creating a new one.

        Raises:
            ValueError: a number is out of range.
        """
        if not (0 <= first_slot < 2**64 and 0 <= stream < 2**64):
            raise ValueError(f"first_slot and stream must be >= 0 and below 2^64, got {first_slot}, {stream}")
        return self._draws(first_slot, stream, _STREAM_REGION, reused)

    def _draws(
        self, index: int, level: int, region: int, reused: np.random.Generator | None = None
    ) -> np.random.Generator:
        # The lowest 64 bits of the counter advance with each draw; the rest identifies the page.
        counter = np.array((0, index, level, region), dtype=np.uint64)
        if reused is None:
            return np.random.Generator(np.random.Philox(key=self._words, counter=counter))
        # resetting is seven times as fast as creating a new generator
        fresh = {"buffer": _EMPTY_BUFFER, "buffer_pos": 4, "has_uint32": 0, "uinteger": 0}
        state = {"counter": counter, "key": self._words}
        reused.bit_generator.state = {"bit_generator": "Philox", "state": state, **fresh}
        return reused


class PagedFading(_LinkDraws):
    """Fading that is drawn in pages of slots (level 0) and in pages of points on coarser grids.

    A page depends only on its link's key, its level and its index. A link caches its newest pages. Most of the time
    of drawing a single page is overhead, so `hold` draws the pages of many links together.

    Args:
        correlation: correlation of the fading in consecutive slots; with 1, fading never changes.
        slots: number of slots in a page. points: number of points in a coarser grid's page. levels: number of grids.
    """

    renews = True
    parts: ClassVar[tuple[int, ...]]  # shape of a slot's random numbers, from which `powers` computes a power

    def __init__(self, key: int, correlation: float, slots: int, points: int, levels: int) -> None:
        super().__init__(key)
        self.correlation = correlation
        self.static = correlation == 1.0
        self.slots, self._points = slots, points
        self._pages: list[dict[int, npt.NDArray[Any]]] = [{} for _ in range(levels)]

    def _alike(self, level: int) -> tuple[Hashable, int]:
        """Return a key, equal for pages that can be drawn together, and the number of pages to draw at once."""
        raise NotImplementedError

    @staticmethod
    def _drawn(level: int, places: Sequence[tuple[Any, int]]) -> npt.NDArray[Any]:
        """Draw pages [n, ...] of links and indices; all these links have the same `_alike` at this level."""
        raise NotImplementedError

    @staticmethod
    def powers(numbers: FloatArray) -> FloatArray:
        """Return the power [links, slots] from the random numbers [links, *parts, slots] of pages."""
        raise NotImplementedError

    @property
    def mean_power(self) -> float:
        """Mean power over time: the power of a static link; for other links the expectation, 1."""
        return float(self.power(0, 1)[0]) if self.static else 1.0

    def power(self, first_slot: int, count: int) -> FloatArray:
        """Return [count] the power of the slots first_slot, first_slot + 1, ...; its mean is 1.

        Raises:
            ValueError: the slot or the count is negative.
        """
        return np.array(self.powers(self._read(first_slot, count)[None])[0])

    def _next_pages(self, first_slot: int, end: int) -> range:
        """Return the pages from a slot up to the slot `end`, but at most as many pages as the link caches."""
        first = first_slot // self.slots
        return range(first, min((end - 1) // self.slots + 1, first + self._kept(0)))

    def forget(self) -> None:
        """Drop the cached pages of fading; reading them draws the same numbers again."""
        for pages in self._pages:
            pages.clear()

    def _read(self, first_slot: int, count: int) -> FloatArray:
        """Return the random numbers [*parts, count] of slots; a view if all slots are on one page."""
        if first_slot < 0 or count < 0:
            raise ValueError(f"first_slot and count must be >= 0, got {first_slot} and {count}")
        page, start = divmod(first_slot, self.slots)
        if self.static:
            return np.repeat(self._page(0, 0)[..., :1], count, axis=-1)
        if start + count <= self.slots:  # the usual case
            return np.asarray(self._page(0, page)[..., start : start + count])
        return read_pages([self], np.array([first_slot]), count)[0]

    def _page(self, level: int, index: int) -> npt.NDArray[Any]:
        if index not in self._pages[level]:
            hold(level, [(self, index)])
        return self._pages[level][index]

    def _keep(self, level: int, index: int, page: npt.NDArray[Any]) -> None:
        pages = self._pages[level]
        if len(pages) == self._kept(level):
            del pages[next(iter(pages))]
        pages[index] = page.copy()  # a view would keep all pages that were drawn together in memory

    def _kept(self, level: int) -> int:
        return KEPT

    def _point(self, level: int, index: int) -> npt.NDArray[Any]:
        """Return a point [parts] on a coarser grid of the link's fading."""
        page, offset = divmod(index, self._points)
        point: npt.NDArray[Any] = self._page(level, page)[..., offset]
        return point


def hold(level: int, places: Sequence[tuple[PagedFading, int]]) -> None:
    """Draw missing pages, identified by link and index; pages of links of the same kind are drawn together."""
    missing = {(id(link), index): (link, index) for link, index in places if index not in link._pages[level]}
    together: dict[Hashable, list[tuple[PagedFading, int]]] = {}
    for place in missing.values():
        together.setdefault((type(place[0]), place[0]._alike(level)), []).append(place)
    for some in together.values():
        one = some[0][0]
        _, at_once = one._alike(level)
        for first in range(0, len(some), at_once):
            batch = some[first : first + at_once]
            for (link, index), page in zip(batch, one._drawn(level, batch), strict=True):
                link._keep(level, index, page)


def read_pages(links: Sequence[PagedFading], first_slots: npt.NDArray[np.int64], count: int) -> FloatArray:
    """Return the random numbers [links, *parts, count] of links of one kind, beginning at each link's first slot."""
    numbers = np.empty((len(links), *links[0].parts, count))
    at, ends = first_slots.tolist(), (first_slots + count).tolist()
    left = list(range(len(links)))
    while left:  # read as many pages of each link as the link caches; missing pages are drawn together
        pages = [(i, page) for i in left for page in links[i]._next_pages(at[i], ends[i])]
        hold(0, [(links[i], page) for i, page in pages])
        for i, page in pages:
            link, begin = links[i], page * links[i].slots
            until = min(begin + link.slots, ends[i])
            done = numbers[i, ..., at[i] - ends[i] + count : until - ends[i] + count]
            done[:] = link._page(0, page)[..., at[i] - begin : until - begin]
            at[i] = until
        left = [i for i in left if at[i] < ends[i]]
    return numbers


def generators(level: int, places: Sequence[tuple[PagedFading, int]]) -> Iterator[np.random.Generator]:
    """Yield a generator for each page; it is the same object, reset for the next page."""
    for link, index in places:
        yield link._draws(index, level, _FADING_REGION, _REUSED)
