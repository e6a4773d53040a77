"""Several sets of Gaussian fields over one area, which are read together at the same places."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgefl.channel.gaussian_fields import Float32Array, GaussianFields
from edgefl.channel.units import FloatArray

# Maximum number of places whose nodes are cached for the next read of the same places
_REMEMBERED = 64
# Numbers of fields with which a node is one item of 4, 8, 16 or 32 bytes; reading, say, 28 bytes takes twice as long
_READ_AS_ONE = (1, 2, 4, 8)
# Angle between the grid of repeating fields and the axes, in radians. Streets mostly follow the axes; with a slope of
# the golden ratio minus 1, values along a straight line repeat as late as possible
_TURN = math.atan((math.sqrt(5.0) - 1.0) / 2.0)


# The newest values, by a key of everything that determines them; devices of all heights share the values, and so does
# a study's next run in the same process if the run has the same seed and area
_made: dict[Hashable, Float32Array] = {}


def _values(
    layers: tuple[GaussianFields, ...], row: int, nodes: npt.NDArray[np.intp] | None = None
) -> Float32Array:
    """Return read-only values [n, row] at all nodes or at given nodes, which must be in the order of table rows."""
    key = layers, row, None if nodes is None else nodes.tobytes()
    if key not in _made:
        _made.clear()  # freeing the old values first halves the peak memory
        count = sum(one.width**2 for one in layers) if nodes is None else len(nodes)
        values, begin = np.zeros((count, row), np.float32), 0
        for one in layers:
            fields, end = len(one.keys), begin + one.width**2
            if nodes is None:
                one.fill(values[begin:end].reshape(one.width, one.width, row)[..., :fields])
            else:
                some = slice(*np.searchsorted(nodes, (begin, end)))
                one.fill_some(nodes[some] - begin, values[some, :fields])
            begin = end
        values.flags.writeable = False
        _made[key] = values
    return _made[key]


class _FieldPlaces(NamedTuple):
    """The four nodes around each of n places, in each layer.

    nodes: [4, layers, n] rows of the table: lower left and right, upper left and right. weights: [4, layers, n].
    """

    nodes: npt.NDArray[np.intp]
    weights: Float32Array


class FieldStack:
    """Layers of fields, such as shadowing in both states and line of sight, each layer on its own grid.

    All layers are in one table, so that one look-up reads them all; at a few hundred places, the number of array
    operations determines the time. Up to eight fields are padded to the next power of two.

    Args:
        layers: sets of fields over the same area, all with the same number of fields.
        fields: number of fields of each layer; by default, as many as the first layer has.
        few: whether the same places are read again and again; then only the nodes around the first places are stored,
            unless these are half of all nodes. Reading another place draws all nodes, with the same values.
    """

    def __init__(
        self, layers: Sequence[GaussianFields], fields: int | None = None, *, few: bool = False
    ) -> None:
        self.layers = tuple(layers)
        self._few = few
        self._some: tuple[npt.NDArray[np.intp], Float32Array] | None = None  # sorted nodes, and their values
        self._fields = len(layers[0].keys) if fields is None else fields
        self._repeats = any(one.period for one in layers)
        self._row = next((wide for wide in _READ_AS_ONE if wide >= self._fields), self._fields)
        self._last: tuple[bytes, _FieldPlaces] | None = None  # nodes around the last places, if these are few

    @property
    def memory_bytes(self) -> int:
        """Return the memory of the fields once they have been read everywhere."""
        return self._bytes(self._nodes())

    def needed_bytes(self, places: int) -> int:
        """Return the peak memory of reading the fields at `places` places, which occurs while fields are drawn."""
        nodes = self._nodes(places if self._few and self._is_few(places) else None)
        making = [one.making_bytes for one in self.layers]
        law, values = (max(of, default=0) for of in zip(*making, strict=True)) if making else (0, 0)
        return max(law, self._bytes(nodes) + values)

    def _nodes(self, places: int | None = None) -> int:
        """Return the number of nodes in all layers, or the maximum number around `places` places."""
        return sum(one.width**2 if places is None else min(4 * places, one.width**2) for one in self.layers)

    def _is_few(self, places: int) -> bool:
        """Return whether the nodes around `places` places are fewer than half of all nodes."""
        return 2 * self._nodes(places) < self._nodes()

    def _bytes(self, nodes: int) -> int:
        return 4 * self._row * nodes

    def at(self, positions_m: FloatArray) -> Float32Array:
        """Return [layers, n, F] the values of all fields at positions [n, 2] within the area."""
        places = self.places(positions_m)
        table, rows = self._held(places.nodes)
        parts = table.take(rows, axis=0)
        parts *= places.weights[..., None]
        return _sum(parts)[..., : self._fields]

    def one_at(self, positions_m: FloatArray, fields: npt.NDArray[np.intp]) -> Float32Array:
        """Return [layers, n] the value of one field at each position; `at` returns the same values for all fields."""
        places = self.places(positions_m)
        table, rows = self._held(places.nodes)
        parts = table[rows, fields]
        parts *= places.weights
        return _sum(parts)

    def places(self, positions_m: FloatArray) -> _FieldPlaces:
        """Find the nodes around positions [n, 2] within the area."""
        asked = positions_m.tobytes() if len(positions_m) <= _REMEMBERED else b""
        if asked and self._last is not None and self._last[0] == asked:
            # the places of a few devices are read twice, in double and in single precision
            return self._last[1]
        grids = self._grids
        up = np.multiply(self._turned(positions_m).T, grids.per_m)  # [layers, 2, n], across and up
        up += grids.half
        if self._repeats:
            np.remainder(up, grids.period, out=up, where=grids.period > 0)
            # the remainder of a tiny negative number rounds up to the period itself
            np.minimum(up, grids.period * (1.0 - 1e-12), out=up, where=grids.period > 0)
        lower = up.astype(np.intp)
        up -= lower
        down = 1.0 - up
        # variance of the weighted nodes: weights w_i along an axis have sum w_i^2 = 1 - b, 2 w_0 w_1 = b
        b = 2.0 * down
        b *= up
        both = grids.both * b[:, 0]
        both *= b[:, 1]
        one_side = b[:, 0] + b[:, 1]
        one_side *= grids.one_side
        variance = 1.0 - one_side
        variance += both
        scale = 1.0 / np.sqrt(variance)
        sides = np.empty((2, *scale.shape))
        np.multiply(down[:, 0], scale, out=sides[0])
        np.multiply(up[:, 0], scale, out=sides[1])
        weights = np.empty((4, *scale.shape), np.float32)
        np.multiply(sides, down[:, 1], out=weights[:2])
        np.multiply(sides, up[:, 1], out=weights[2:])
        corner = lower[:, 1] * grids.width
        corner += lower[:, 0]
        places = _FieldPlaces(corner + grids.nodes, weights)
        if asked:
            self._last = asked, places
        return places

    def _turned(self, positions_m: FloatArray) -> FloatArray:
        """Rotate positions [n, 2] to the axes of the grids."""
        if not self._repeats:
            return positions_m
        cos, sin, (x, y) = math.cos(_TURN), math.sin(_TURN), positions_m.T
        return np.stack([cos * x - sin * y, sin * x + cos * y], axis=1)

    def read_first(self, positions_m: FloatArray) -> None:
        """Store the nodes around positions, if few places will be read and no place has been read yet."""
        if self._few and self._some is None:
            self._few = self._is_few(len(positions_m))
            if self._few:
                self._held(self.places(positions_m).nodes)

    def _held(self, nodes: npt.NDArray[np.intp]) -> tuple[Float32Array, npt.NDArray[np.intp]]:
        """Return a table with the given nodes, which are rows of the full table, and their rows in the new table."""
        if not self._few:
            return self._table, nodes
        if self._some is None:
            some = np.unique(nodes)
            self._some = some, _values(self.layers, self._row, some)
        held, values = self._some
        rows = np.minimum(np.searchsorted(held, nodes), len(held) - 1)
        if np.array_equal(held[rows], nodes):
            return values, rows
        self._few, self._some = False, None
        return self._table, nodes

    @cached_property
    def _table(self) -> Float32Array:
        """Values [nodes of all layers, F or more], row by row; all fields of a node are adjacent."""
        return _values(self.layers, self._row)

    @cached_property
    def _grids(self) -> "_Grids":
        return _Grids.of(self.layers)


@dataclass(frozen=True)
class _Grids:
    """Constants of the layers' grids, as arrays that broadcast with [layers, n] or [layers, 2, n]."""

    per_m: FloatArray  # nodes
    half: FloatArray  # nodes from the origin to the edge
    period: FloatArray  # nodes; 0 if fields do not repeat
    width: npt.NDArray[np.intp]
    nodes: npt.NDArray[np.intp]  # [4, layers, 1] offset from the lower left node to a row of the table
    one_side: FloatArray  # 1 - the correlation of neighbouring nodes
    both: FloatArray  # 1 - twice the neighbours' correlation + the correlation across a cell

    @classmethod
    def of(cls, layers: Sequence[GaussianFields]) -> "_Grids":
        def column(values: list[float]) -> FloatArray:
            return np.array(values, dtype=float)[:, None]

        width = column([one.width for one in layers]).astype(np.intp)
        begin = np.cumsum(width**2, axis=0) - width**2
        return cls(
            column([1.0 / one.spacing_m for one in layers])[:, None],
            column([one.half for one in layers])[:, None],
            column([one.period for one in layers])[:, None],
            width,
            begin + np.stack([np.zeros_like(width), np.ones_like(width), width, width + 1]),
            column([1.0 - one.law.side for one in layers]),
            column([1.0 - 2.0 * one.law.side + one.law.diagonal for one in layers]),
        )


def _sum(parts: Float32Array) -> Float32Array:
    """Add the contributions of all four nodes into the array of the first, in order."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
