"""Several sets of Gaussian fields over one area, read at the same places in one go."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from channel.gaussian_fields import Float32Array, GaussianFields
from channel.units import FloatArray

# As many places as are remembered, for who asks for them again
_REMEMBERED = 64
# Fields of a node that are read as one number of 4, 8, 16 or 32 bytes: half the time of, say, 28
_READ_AS_ONE = (1, 2, 4, 8)


class FieldPlaces(NamedTuple):
    """Where to read: the four nodes around each of n places, in each layer.

    Lower left, lower right, upper left and upper right: [4, layers, n] rows of the table, and their weights.
    """

    nodes: npt.NDArray[np.intp]
    weights: Float32Array


class FieldStack:
    """Layers of fields, such as the shadowing in either state and the line of sight, each on a grid of its own.

    All are in one table, so that one look-up reads them all: at a few hundred places it is the number of array
    operations that takes the time. Up to eight fields take as much memory in it as the next power of two.

    Args:
        layers: of as many fields each, over the same area.
        fields: how many those are; None: those of the first layer.
    """

    def __init__(self, layers: Sequence[GaussianFields], fields: int | None = None) -> None:
        self.layers = tuple(layers)
        self._fields = len(layers[0].keys) if fields is None else fields
        self._row = next((wide for wide in _READ_AS_ONE if wide >= self._fields), self._fields)
        self._last: tuple[bytes, FieldPlaces] | None = None  # of the places asked for last, if they were few

    def __deepcopy__(self, memo: object) -> "FieldStack":
        """Return itself: it never changes, and a copy would make its table anew."""
        return self

    def equals(self, other: "FieldStack") -> bool:
        """Tell whether another stack has equal values everywhere."""
        return len(self.layers) == len(other.layers) and all(
            map(GaussianFields.equals, self.layers, other.layers)
        )

    @property
    def memory_bytes(self) -> int:
        """Memory of the fields, once they have been read."""
        return 4 * self._row * sum(one.width**2 for one in self.layers)

    def at(self, positions_m: FloatArray) -> Float32Array:
        """[layers, n, F] values of all fields at positions [n, 2], which are within the area."""
        places = self.places(positions_m)
        parts = self._table.take(places.nodes, axis=0)
        parts *= places.weights[..., None]
        return _sum(parts)[..., : self._fields]

    def one_at(self, positions_m: FloatArray, fields: npt.NDArray[np.intp]) -> Float32Array:
        """[layers, n] value of one field at each position, equal to what `at` gives."""
        places = self.places(positions_m)
        parts = self._table[places.nodes, fields]
        parts *= places.weights
        return _sum(parts)

    def places(self, positions_m: FloatArray) -> FieldPlaces:
        """Find the nodes around positions [n, 2], which are within the area."""
        asked = positions_m.tobytes() if len(positions_m) <= _REMEMBERED else b""
        if asked and self._last is not None and self._last[0] == asked:
            # a few devices are read in double precision, and then in single
            return self._last[1]
        grids = self._grids
        up = np.multiply(positions_m.T, grids.per_m)  # [layers, 2, n], across and up
        up += grids.half
        lower = up.astype(np.intp)
        up -= lower
        down = 1.0 - up
        # Var of the weighted nodes: weights w_i along an axis have sum w_i^2 = 1 - b, 2 w_0 w_1 = b
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
        places = FieldPlaces(corner + grids.nodes, weights)
        if asked:
            self._last = asked, places
        return places

    @cached_property
    def _table(self) -> Float32Array:
        """[nodes of all layers, F or more] values at the nodes, row by row; all fields of a node lie side by side."""
        table = np.zeros((sum(one.width**2 for one in self.layers), self._row), np.float32)
        begin = 0
        for one in self.layers:
            nodes = table[begin : begin + one.width**2].reshape(one.width, one.width, self._row)
            one.fill(nodes[..., : self._fields])
            begin += one.width**2
        return table

    @cached_property
    def _grids(self) -> "_Grids":
        return _Grids.of(self.layers)


@dataclass(frozen=True)
class _Grids:
    """What is known of the layers' grids, in arrays that go with [layers, n] or [layers, 2, n]."""

    per_m: FloatArray  # nodes
    half: FloatArray  # nodes from the origin to the edge
    width: npt.NDArray[np.intp]
    nodes: npt.NDArray[np.intp]  # [4, layers, 1] from the node below to the left to a row of the table
    one_side: FloatArray  # 1 - the correlation of neighbouring nodes
    both: FloatArray  # 1 - twice that + the correlation across a cell

    @classmethod
    def of(cls, layers: Sequence[GaussianFields]) -> "_Grids":
        def column(values: list[float]) -> FloatArray:
            return np.array(values, dtype=float)[:, None]

        width = column([one.width for one in layers]).astype(np.intp)
        begin = np.cumsum(width**2, axis=0) - width**2
        return cls(
            column([1.0 / one.spacing_m for one in layers])[:, None],
            column([one.half for one in layers])[:, None],
            width,
            begin + np.stack([np.zeros_like(width), np.ones_like(width), width, width + 1]),
            column([1.0 - one.law.side for one in layers]),
            column([1.0 - 2.0 * one.law.side + one.law.diagonal for one in layers]),
        )


def _sum(parts: Float32Array) -> Float32Array:
    """Add up the nodes' parts, in their order, into the first."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
