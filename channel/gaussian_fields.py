"""Gaussian random fields over the plane, which can be read at any place and in any order."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray

Float32Array = npt.NDArray[np.float32]
# Correlation at distance d: exp(-d / d_corr), or exp(-(d / d_corr)^2)
CorrelationLaw = Literal["exponential", "gaussian"]

# Grid nodes per correlation distance. NODES, ROUGHENING and MARGIN are part of the fields' definition: other values
# change the fields of a key.
NODES = 8
# Distance around the torus from one edge of the area to the opposite one, in correlation distances
MARGIN = 10
# Exponent with which the interpolation's filter is divided out of the nodes' spectrum; see the class
ROUGHENING = 1.5
# Memory in bytes above which a set of fields is made to repeat in space, and memory of a set that repeats
MAX_BYTES = 2**29
REPEATING_BYTES = 2**27
# Number of fields, and of rows of nodes, written to the table together; large fields are written fewer at a time
_FIELDS_AT_ONCE, _ROWS_AT_ONCE = 8, 4
_BYTES_AT_ONCE = 2**26
# Peak memory in bytes per node of a torus while the filter is computed, and while values are drawn
_LAW_BYTES, _GRID_BYTES = 25, 10


@dataclass(frozen=True)
class Common:
    """The common component of several fields, with its random key and its share of their variance.

    Each field becomes sqrt(share) common + sqrt(1 - share) own. Each field stays standard normal, with the same
    correlation over distance; any two fields have the correlation `share` at the same place.
    """

    key: int
    share: float

    def __post_init__(self) -> None:
        _check_key(self.key)
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must be between 0 and 1, got {self.share}")


class GaussianFields:
    """Standard normal fields, one per key, with correlation exp(-d/d_corr) or exp(-(d/d_corr)^2).

    The fields are independent, or have a common component.

    The value at a place depends on key, stream, place and the radius of the area, not on other reads. A field
    is a torus of independent normals on a square grid, NODES per d_corr, filtered to the correlation (circulant
    embedding, one FFT). Between nodes, a field is interpolated bilinearly and divided by the resulting standard
    deviation, which is known (at least 0.90), so it is exactly standard normal everywhere, and continuous.

    Interpolation also smooths, by |sinc|^2 per axis of the spectrum, which raises the correlation of nearby places.
    Dividing the nodes' spectrum by the filter, to the power of ROUGHENING, undoes most of this smoothing. The
    remaining error: averaged over places and directions, the correlation exceeds exp(-d/d_corr) by less than 0.012 at
    distances of at least 0.15 d_corr, and by less than 0.025 at shorter distances; for single pairs of places, the
    error is 0.035 rms and at most 0.1. A `gaussian` field is smooth, and its correlation is exact to 0.003 for all
    pairs of places.

    The two kinds of field differ most over short distances: an exponential field is rough, and near a threshold it
    crosses the threshold as often as the grid permits; a gaussian field crosses a threshold u at a rate of sqrt(2) /
    (pi d_corr) exp(-u^2 / 2) per metre (Rice).

    Memory: 4 bytes x fields x (2 NODES radius / d_corr + 3)^2, allocated at the first read. 19 fields over a
    disc of 600 m with d_corr 10 m take 70 MB and about 1 s. Fields that would need more than MAX_BYTES repeat: places
    that are whole periods apart along an axis of the grid have equal values. 100 fields repeat after 72 d_corr, 500
    after 32 d_corr. `FieldStack` rotates the grid of repeating fields, so that no street follows an axis of it.
    """

    def __init__(
        self,
        *,
        keys: Sequence[int],
        correlation_m: float,
        area_radius_m: float,
        stream: int,
        common: Common | None = None,
        law: CorrelationLaw = "exponential",
    ) -> None:
        """Define the fields; their values are drawn at the first read.

        Args:
            keys: [F] 128-bit key of each field's random numbers.
            correlation_m: correlation distance d_corr, > 0.
            area_radius_m: places lie within this distance of the origin, > 0.
            stream: number that distinguishes fields of the same key, 0 to 2^64 - 1.
            common: component that all fields have in common, or None if they are independent.
            law: shape of the correlation over distance, `exponential` or `gaussian`.

        Raises:
            ValueError: an argument is out of range.
        """
        for key in keys:
            _check_key(key)
        if not (0 < correlation_m < math.inf and 0 < area_radius_m < math.inf):
            raise ValueError(
                "correlation_m and area_radius_m must be > 0 and finite, "
                f"got {correlation_m} m and {area_radius_m} m"
            )
        if not 0 <= stream < 2**64:
            raise ValueError(f"stream must be >= 0 and below 2^64, got {stream}")
        self.keys = tuple(keys)
        self.correlation_m = correlation_m
        self.area_radius_m = area_radius_m
        self._stream = stream
        self._common = common
        self._correlation_law: CorrelationLaw = law
        self.spacing_m = correlation_m / NODES
        # nodes lie at multiples of the spacing, from -half to half
        self.half = math.ceil(area_radius_m / self.spacing_m) + 1
        self.width = 2 * self.half + 1
        self.period = 0  # nodes after which the fields repeat; 0 if they do not
        if self.memory_bytes > MAX_BYTES:
            from scipy import fft

            most = math.isqrt(REPEATING_BYTES // (4 * len(self.keys))) - 1
            self.period = int(fft.prev_fast_len(max(most, 2 * MARGIN * NODES), real=True))
            # nodes lie from 0 to the period; the last nodes equal the first ones
            self.half, self.width = 0, self.period + 1
        self._identity = self.keys, correlation_m, area_radius_m, stream, common, law, self.period

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GaussianFields) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def memory_bytes(self) -> int:
        """Memory in bytes that the fields take after their first read."""
        return 4 * len(self.keys) * self.width**2

    @property
    def making_bytes(self) -> tuple[int, int]:
        """Temporary memory in bytes in addition to the table: for the nodes' correlation, and then for the values."""
        size = self._torus
        together = self._at_once - 1 + (self._common is not None)
        return _LAW_BYTES * size**2, (_GRID_BYTES + 4 * together) * size**2

    @property
    def law(self) -> "_NodeLaw":
        """Filter for the nodes' correlation."""
        return _node_law(self._torus, self._correlation_law)

    @property
    def _torus(self) -> int:
        """Number of nodes along an axis of a field's torus."""
        return self.period or _torus(self.width)

    def fill(self, table: Float32Array) -> None:
        """Write the values [width, width, F] at the nodes row by row; all fields of a node are adjacent."""
        for first, some in self._in_turn():
            # rows of several fields stay in the cache, which is ten times as fast as writing field by field
            for row in range(0, self.width, _ROWS_AT_ONCE):
                rows = slice(row, row + _ROWS_AT_ONCE)
                for number in range(len(some)):
                    table[rows, :, first + number] = some[number][rows]

    def fill_some(self, nodes: npt.NDArray[np.intp], table: Float32Array) -> None:
        """Write the values [n, F] at nodes [n], which are numbered row by row."""
        for first, some in self._in_turn():
            for number in range(len(some)):
                table[:, first + number] = some[number][np.divmod(nodes, self.width)]

    def _in_turn(self) -> Iterator[tuple[int, list[Float32Array]]]:
        """Yield a few fields at a time, as the first field's index and the values [width, width] of each at nodes."""
        common = self._common
        shared: Float32Array | None = None
        if common:
            own = np.float32(math.sqrt(1.0 - common.share))
            shared = self._grid(common.key)
            shared *= np.float32(math.sqrt(common.share))
        for first in range(0, len(self.keys), self._at_once):
            some = [self._grid(key) for key in self.keys[first : first + self._at_once]]
            # interpolation is linear, so fields can be mixed at the nodes, at no cost when read
            if shared is not None:
                for number in range(len(some)):
                    some[number] *= own
                    some[number] += shared
            yield first, some
            some.clear()  # free the memory before the next fields are drawn

    @property
    def _at_once(self) -> int:
        """Number of fields to draw before their values are written together."""
        most = min(_FIELDS_AT_ONCE, len(self.keys))
        return max(1, min(most, _BYTES_AT_ONCE // (4 * self._torus**2)))

    def _grid(self, key: int) -> Float32Array:
        """Return the values [width, width], at nodes, of the independent field that a key determines."""
        from scipy import fft

        amplitude, width = self.law.amplitude, self.width
        size = len(amplitude)
        rng = np.random.Generator(np.random.Philox(key=key, counter=self._stream << 192))
        noise = rng.standard_normal((size, size), dtype=np.float32)
        spectrum = fft.rfft2(noise)
        del noise  # free the noise, which is as large as the spectrum
        spectrum *= amplitude
        values: Float32Array = fft.irfft2(spectrum, s=(size, size), overwrite_x=True)
        if self.period:
            return np.pad(values, (0, 1), mode="wrap")
        return values[:width, :width]


def _check_key(key: int) -> None:
    if not 0 <= key < 2**128:
        raise ValueError(f"keys must be 128-bit numbers >= 0, got {key}")


def check_area(positions_m: FloatArray, area_radius_m: float) -> None:
    """Raise a ValueError if any position [n, 2] is farther than `area_radius_m` from the origin."""
    square = positions_m[:, 0] ** 2 + positions_m[:, 1] ** 2
    # rounding may move a position on the edge slightly beyond it
    inside = square <= area_radius_m**2 * (1.0 + 1e-9)
    if not inside.all():
        worst = positions_m[np.argmin(inside)]
        raise ValueError(
            f"position ({worst[0]:g}, {worst[1]:g}) m is beyond area_radius_m {area_radius_m:g}: "
            "raise area_radius_m, or keep devices inside"
        )


@dataclass(frozen=True)
class _NodeLaw:
    """Filter that turns white noise on a torus into the values of a field at its nodes."""

    amplitude: Float32Array  # [size, size // 2 + 1] over the frequencies of rfft2
    side: float  # correlation of neighbouring nodes
    diagonal: float  # correlation of nodes across a grid cell


def _torus(width: int) -> int:
    """Return the number of nodes along an axis of a field's torus."""
    from scipy import fft

    return int(fft.next_fast_len(width + MARGIN * NODES, real=True))


@lru_cache(maxsize=8)
def _node_law(size: int, law: CorrelationLaw) -> _NodeLaw:
    from scipy import fft

    # the nearest copies on the torus; all others are more than MARGIN correlation distances away
    lag = np.arange(size + 1) / NODES
    power_of_lag = 1.0 if law == "exponential" else 2.0
    # compute in place, since each of these arrays is as large as several fields
    of_lags = np.hypot(lag[:, None], lag)
    of_lags **= power_of_lag
    np.exp(np.negative(of_lags, out=of_lags), out=of_lags)
    # the lag to a copy is the lag from the other end of the torus, so the slow exponentials are computed only once
    here, copy = slice(size), slice(size, 0, -1)
    correlation = of_lags[here, here] + of_lags[here, copy]
    for y in (here, copy):
        correlation += of_lags[copy, y]
    del of_lags
    # rounding may push a Gaussian's highest frequencies, which are near zero, below zero
    power = np.maximum(fft.rfft2(correlation).real, 0.0)
    del correlation
    smoothing = np.sinc(fft.fftfreq(size))[:, None] ** 2 * np.sinc(fft.rfftfreq(size)) ** 2
    smoothing **= ROUGHENING
    power /= smoothing
    del smoothing
    roughened = fft.irfft2(power, s=(size, size))
    power /= roughened[0, 0]
    roughened /= roughened[0, 0]
    return _NodeLaw(np.sqrt(power).astype(np.float32), float(roughened[0, 1]), float(roughened[1, 1]))
