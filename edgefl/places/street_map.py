"""Represent the streets of a map as a graph, and find entry points and shortest routes in it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

JOIN_M = 0.1  # points closer than this are merged into one corner
MOST_PIECES = 5_000  # maximum number of pieces to cut at crossings, as all pairs of pieces are compared


class _Entries(NamedTuple):
    """The point on the streets nearest to each of n places."""

    street: np.ndarray  # [n] index of the piece of street
    at_m: np.ndarray  # [2, n] the point
    to_end_m: np.ndarray  # [2, n] metres along the piece to each of its ends


@dataclass(frozen=True, eq=False)
class StreetMap:
    """The connected graph of a map's streets: straight pieces between corners.

    Attributes:
        corners_m: [2, corners] position of each corner, m.
        ends: [2, pieces] the two corners of each straight piece.
        lost: pieces of streets that are not connected to this map's pieces, or None if all pieces are connected.
    """

    corners_m: np.ndarray
    ends: np.ndarray
    lost: Self | None = None

    @classmethod
    def of(cls, lines: Sequence[np.ndarray]) -> Self:
        """Join lines, each [points, 2] in m, at common points; keep the longest connected part.

        Raises:
            ValueError: no line has a length.
        """
        points = np.concatenate(lines)
        last = np.cumsum([len(line) for line in lines]) - 1
        begin = np.setdiff1d(np.arange(len(points)), last)
        corners, corner_of = np.unique(points, axis=0, return_inverse=True)
        merged = _joined(corners)
        one, other = np.sort(merged[corner_of.ravel()[[begin, begin + 1]]], axis=0)
        ends = np.unique(np.stack([one, other])[:, one != other], axis=1)
        if not ends.size:
            raise ValueError("the streets have no length: a line needs at least two distinct points")
        _, first = np.unique(merged, return_index=True)
        return cls(corners[first].T, ends)._longest_part()

    def _longest_part(self) -> Self:
        parts, part_of = connected_components(self._graph, directed=False)
        if parts == 1:
            return self
        of_piece = part_of[self.ends[0]]
        kept = of_piece == np.bincount(of_piece, weights=self.lengths_m).argmax()
        return replace(self._of_pieces(kept), lost=self._of_pieces(~kept))

    def _of_pieces(self, chosen: np.ndarray) -> Self:
        corners, ends = np.unique(self.ends[:, chosen], return_inverse=True)
        return type(self)(self.corners_m[:, corners], ends.reshape(2, -1))

    def cut_off(self, places_m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which places [2, n] are nearest to a lost (unconnected) street.

        Returns:
            [n] whether each place is cut off, and [n] its distance in m to the nearest street of the connected part.
        """
        apart_m = np.hypot(*(self._enter(places_m).at_m - places_m))
        if self.lost is None:
            return np.zeros(len(apart_m), dtype=bool), apart_m
        return np.hypot(*(self.lost._enter(places_m).at_m - places_m)) < apart_m, apart_m

    @cached_property
    def lengths_m(self) -> np.ndarray:
        """Length of each piece of street [pieces], m."""
        return np.asarray(np.hypot(*(self.corners_m[:, self.ends[1]] - self.corners_m[:, self.ends[0]])))

    @cached_property
    def _graph(self) -> csr_array:
        both = np.concatenate([self.ends, self.ends[::-1]], axis=1).astype(np.int32)  # index type of csgraph
        size = self.corners_m.shape[1]
        return coo_array((np.tile(self.lengths_m, 2), tuple(both)), shape=(size, size)).tocsr()

    def ways(self, from_m: np.ndarray, to_m: np.ndarray) -> list[np.ndarray]:
        """Return the shortest routes between places [2, n] and [2, n], each [points, 2] with its corners, in m.

        A route goes straight to the nearest point of any street, along streets, and straight to the other place from
        the street point nearest to that place. One search (Dijkstra, 1959) runs from each corner where routes begin;
        one search is in memory at a time. The choice between equally short routes depends only on the two places.
        """
        start, end = self._enter(from_m), self._enter(to_m)
        along_m = np.abs(start.to_end_m[0] - end.to_end_m[0])
        best_m = np.where(start.street == end.street, along_m, np.inf)
        between: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(best_m)
        begins = self.ends[:, start.street]
        for corner in np.unique(begins):
            far_m, before = dijkstra(self._graph, indices=corner, return_predecessors=True)
            for side, way in zip(*np.nonzero(begins == corner), strict=True):
                goals = self.ends[:, end.street[way]]
                whole_m = start.to_end_m[side, way] + far_m[goals] + end.to_end_m[:, way]
                goal = int(whole_m.argmin())
                if whole_m[goal] < best_m[way]:
                    best_m[way] = whole_m[goal]
                    between[way] = _path(before, goals[goal])
        points = [
            np.column_stack(
                [from_m[:, n], start.at_m[:, n], self.corners_m[:, path], end.at_m[:, n], to_m[:, n]]
            )
            for n, path in enumerate(between)
        ]
        return [_without_repeats(each.T) for each in points]

    def _enter(self, places_m: np.ndarray) -> _Entries:
        tree, piece_of, reach_m = self._index
        near_m, _ = tree.query(places_m.T)
        street = np.empty(places_m.shape[1], dtype=np.int64)
        at_m, to_end_m = np.empty_like(places_m), np.empty_like(places_m)
        for n, around in enumerate(tree.query_ball_point(places_m.T, near_m + 1.001 * reach_m)):
            pieces = np.unique(piece_of[around])
            begin_m, end_m = self.corners_m[:, self.ends[0, pieces]], self.corners_m[:, self.ends[1, pieces]]
            way_m = end_m - begin_m
            share = ((places_m[:, [n]] - begin_m) * way_m).sum(axis=0) / self.lengths_m[pieces] ** 2
            share = np.clip(share, 0.0, 1.0)
            foot_m = begin_m + share * way_m
            nearest = np.hypot(*(foot_m - places_m[:, [n]])).argmin()
            street[n], at_m[:, n] = pieces[nearest], foot_m[:, nearest]
            to_end_m[:, n] = self.lengths_m[pieces[nearest]] * np.array([share[nearest], 1 - share[nearest]])
        return _Entries(street, at_m, to_end_m)

    @cached_property
    def _index(self) -> tuple[cKDTree, np.ndarray, float]:
        """A search tree of the midpoints of short parts of all pieces, each part's piece, and half the longest part.

        If the nearest midpoint is at distance d from a place, the nearest point of any street is at most d away, and
        the midpoint of the part that contains this point is at most half a part's length farther.
        """
        longest_m = self.lengths_m.mean()  # yields at most twice as many parts as pieces
        counts = np.ceil(self.lengths_m / longest_m).astype(np.int64)
        piece_of = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(piece_of)) - np.repeat(np.cumsum(counts) - counts, counts)
        share = (within + 0.5) / counts[piece_of]
        begin_m, end_m = (self.corners_m[:, self.ends[end, piece_of]] for end in (0, 1))
        return cKDTree((begin_m + share * (end_m - begin_m)).T), piece_of, longest_m / 2


def cut_at_crossings(lines: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return lines, each [points, 2] in m, with a shared vertex inserted wherever two lines cross or touch.

    Raises:
        ValueError: there are too many pieces to compare in pairs.
    """
    begin = np.concatenate([line[:-1] for line in lines])
    end = np.concatenate([line[1:] for line in lines])
    if len(begin) > MOST_PIECES:
        raise ValueError(
            f"{len(begin):,} street segments are given; at most {MOST_PIECES:,} are allowed: use a file"
        )
    way = end - begin
    length = np.hypot(*way.T)
    cut = []
    for n in np.flatnonzero(length > 0):
        apart = begin - begin[n]
        with np.errstate(divide="ignore", invalid="ignore"):
            across = way[n, 0] * way[:, 1] - way[n, 1] * way[:, 0]
            mine = (apart[:, 0] * way[:, 1] - apart[:, 1] * way[:, 0]) / across
            theirs = (apart[:, 0] * way[n, 1] - apart[:, 1] * way[n, 0]) / across
        crossing = mine[(mine >= 0) & (mine <= 1) & (theirs >= 0) & (theirs <= 1)]
        # ends of other lines that lie on this line
        ends = np.concatenate([begin, end])
        share = np.clip((ends - begin[n]) @ way[n] / length[n] ** 2, 0.0, 1.0)
        on_it = np.hypot(*(ends - begin[n] - share[:, None] * way[n]).T) < JOIN_M
        places = np.unique(np.concatenate([[0.0, 1.0], crossing, share[on_it]]))
        cut.append(begin[n] + places[:, None] * way[n])
    return cut or [np.concatenate([begin, end])]


def _joined(points: np.ndarray) -> np.ndarray:
    """Return the index [points] of the corner to which each point [points, 2] belongs."""
    pairs = cKDTree(points).query_pairs(JOIN_M, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(points), len(points)))
    return np.asarray(connected_components(graph, directed=False)[1])


def _path(before: np.ndarray, goal: int) -> np.ndarray:
    """Return the corners from the start of a search to its goal."""
    path = [goal]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return np.array(path[::-1])


def _without_repeats(points_m: np.ndarray) -> np.ndarray:
    """Drop each point that equals the point before it; at least two points remain."""
    kept = np.append(True, np.any(np.diff(points_m, axis=0) != 0, axis=1))
    return points_m[kept] if kept.sum() > 1 else points_m[[0, -1]]
