"""Compute the large-scale gain as a function of the place, from path loss, line of sight and shadowing."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from edgefl.channel.distances import Distances
from edgefl.channel.field_stack import FieldStack
from edgefl.channel.gaussian_fields import Common, CorrelationLaw, Float32Array, GaussianFields, check_area
from edgefl.channel.layout import Floats, Wraparound
from edgefl.channel.path_loss import Line, PathLoss, check_places
from edgefl.channel.sight import StateLoss, Thresholds, mixed_loss_db, soft_state
from edgefl.channel.units import SPEED_OF_LIGHT_M_S, FloatArray

LineOfSight = Literal["always", "never", "probabilistic", "soft"]

# Random streams of a site's key
_LOS_SHADOWING, _NLOS_SHADOWING, _LOS_STATE = 0, 1, 2
# Places x sites per chunk: a dozen arrays of this size fit into a core's second-level cache
_CHUNK = 36864


class LargeScale:
    """Gain from any place to each site, -(path loss + shadowing) in dB, whenever and in any order gains are read.

    Line of sight and shadowing towards a site do not change at a place: a device that returns to a place finds the
    same values. They are functions of the sites' keys, the place and the radius of the area.

    - Path loss: the model's loss at the 2D distance, or at min_distance_m for closer places (`is_held`). A site
      beyond the model's range is not received, and its gain is -inf in `gain_db`. If a place still has a link to such
      a site, the link has the loss at the end of the range (`is_beyond`).
    - Line of sight `probabilistic`: a site is in sight where Phi(G) < P_LoS(distance) for a standard normal field G
      with correlation exp(-dx/50 m) (UMi). Each place has line of sight to a site with exactly the model's
      probability, and nearby places mostly share the state. P_LoS is read from a table, with an error below 1e-5, or
      2e-4 where it has a kink or jumps.
    - Line of sight `soft`: the field is smooth, with correlation exp(-(dx/50 m)^2), and loss and shadowing change
      from one state to the other over a few metres, where the two gains are mixed (38.901, 7.6.3.3). The report
      specifies a correlation distance but no shape of the correlation; a rough field would switch back and forth at
      each change instead of changing gradually. QuaDRiGa's shape (`Comb300`) is also Gaussian up to that distance.
    - Shadowing: each state has a field with correlation exp(-dx/d_corr), times the state's standard deviation (UMi:
      10 m and 4 dB in line of sight, 13 m and 7.82 dB without); a change of state switches to the other field.
      `GaussianFields` states the accuracy.
    - Between sites: the shadowing at a place towards any two sites has the correlation of `common` in either state,
      since obstacles around a device shadow all sites. Without `common`, sites are independent, as links to several
      base stations are in 38.901; 0.5 is customary in system simulations (36.942, 36.814: 0.5 between sites, 1
      between sectors of a site; SEAMCAT's z = a x + b y with a^2 = b^2 = 1/2). The field G of line of sight has its
      own correlation, `los_common`: a place sees two sites at once with probability Phi2(Phi^-1(P_1), Phi^-1(P_2);
      los_common), while the probability of seeing either site remains P_1 or P_2. 38.901 has no such correlation: it
      decides line of sight independently for each site (7.6.3.3), which suits links at random places rather than
      routes between cells, on which a site that comes into sight becomes 20 to 30 dB stronger.

    With wraparound, distances are measured to the nearest copy of a site, while shadowing and line of sight are
    functions of the place in the area and do not repeat.

    Source: 3GPP TR 38.901, sections 7.4 and 7.6.3.
    """

    def __init__(
        self,
        *,
        sites_m: npt.ArrayLike,
        model: PathLoss,
        carrier_hz: float,
        bs_height_m: float,
        ut_height_m: float,
        min_distance_m: float,
        area_radius_m: float,
        keys: Sequence[int],
        line_of_sight: LineOfSight = "always",
        shadowing_std_db: float | None = 0.0,
        common: Common | None = None,
        los_common: Common | None = None,
        wraparound: Wraparound | None = None,
        few_places: bool = False,
    ) -> None:
        """Check the arguments and define the fields.

        Args:
            sites_m: [S, 2] positions of the base stations.
            model: path loss and its constants, e.g. `edgefl.channel.path_loss.umi.UMi()`.
            min_distance_m: closer places take the path loss of this distance.
            area_radius_m: places lie within this distance of the origin.
            keys: [S] one 128-bit key per site.
            line_of_sight: whether sites are in sight everywhere, nowhere, or by probability (hard or soft).
            shadowing_std_db: standard deviation in both states, 0 for no shadowing; by default the model's values.
            common: common part of the shadowing towards all sites; None if sites are shadowed independently.
            los_common: common part of the line-of-sight fields of all sites; None if these fields are independent.
            wraparound: wraparound of the layout, or None if it does not repeat.
            few_places: whether the same few places are read again and again, as for devices that stand still.

        Raises:
            ValueError: an argument is outside its range or the model's, or the model lacks the requested shadowing.
        """
        self.sites_m = _checked_sites(sites_m, len(keys))
        _check_ranges(area_radius_m, line_of_sight, shadowing_std_db)
        self.area_radius_m = area_radius_m
        self.min_distance_m = min_distance_m
        radio = {"carrier_hz": carrier_hz, "bs_height_m": bs_height_m, "ut_height_m": ut_height_m}
        self._distances = Distances(
            self.sites_m,
            nearest_m=min_distance_m,
            range_m=model.range_2d_m(bs_height_m=bs_height_m, ut_height_m=ut_height_m)[1],
            area_radius_m=area_radius_m,
            height_m=bs_height_m - ut_height_m,
            wraparound=wraparound,
        )
        farthest_m = self._distances.farthest_m
        check_places(model, min_distance_m, farthest_m, radio)
        lines = model.lines(**radio)

        layers: list[GaussianFields] = []
        self._lines: list[Line] = []

        def layer(
            correlation_m: float, stream: int, law: CorrelationLaw, common: Common | None = None
        ) -> int:
            size = {"correlation_m": correlation_m, "area_radius_m": area_radius_m}
            layers.append(GaussianFields(keys=keys, stream=stream, common=common, law=law, **size))
            return len(layers) - 1

        def state(in_sight: bool) -> StateLoss:
            std_db = model.shadowing_std_db(in_sight) if shadowing_std_db is None else shadowing_std_db
            shadow = None
            if std_db > 0:
                stream = _LOS_SHADOWING if in_sight else _NLOS_SHADOWING
                shadow = layer(_shadowing_correlation_m(model, in_sight), stream, "exponential", common)
            return StateLoss.of(lines.los if in_sight else lines.nlos, std_db, shadow, self._lines)

        # the states that occur, line of sight first
        sights = [True] * (line_of_sight != "never") + [False] * (line_of_sight != "always")
        self._states = tuple(map(state, sights))
        self._always_in_sight = line_of_sight == "always"
        self._los_layer: int | None = None
        self._soft_m = SPEED_OF_LIGHT_M_S / carrier_hz if line_of_sight == "soft" else None  # the wavelength
        if line_of_sight in ("probabilistic", "soft"):
            law: CorrelationLaw = "gaussian" if line_of_sight == "soft" else "exponential"
            self._los_layer = layer(model.los_correlation_m, _LOS_STATE, law, los_common)
            self._thresholds = Thresholds(model, min_distance_m, farthest_m, bs_height_m - ut_height_m)
        self.fields = FieldStack(layers, len(keys), few=few_places)

    @property
    def memory_bytes(self) -> int:
        """Memory in bytes that the fields take after their first read."""
        return self.fields.memory_bytes

    def gain_db(self, positions_m: npt.ArrayLike) -> Float32Array:
        """Return the gain to every site in single precision, for measurements.

        The gain is within 1e-3 dB of `links_to`: rounding moves 1 km by up to 6e-5 m. Line of sight is identical.

        Args:
            positions_m: [n, 2] positions in the area, m.

        Returns:
            [n, S] gain of each site in dB, negative; a site's gains are contiguous in memory.

        Raises:
            ValueError: a position is beyond the area.
        """
        positions = self._checked(positions_m)
        gain_db = np.empty((len(self.sites_m), len(positions)), np.float32)
        for rows, log_square, values in self._chunks(positions):
            margin = self._margin(log_square, values)
            np.negative(self._received_loss_db(log_square, margin, values), out=gain_db[:, rows])
        return gain_db.T

    def line_of_sight(self, positions_m: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return [n, S] whether each site is in line of sight from positions [n, 2].

        Raises:
            ValueError: a position is beyond the area.
        """
        positions = self._checked(positions_m)
        in_sight = np.empty((len(positions), len(self.sites_m)), bool)
        for rows, log_square, values in self._chunks(positions):
            margin = self._margin(log_square, values)
            in_sight[rows] = self._always_in_sight if margin is None else margin.T > 0
        return in_sight

    def links_to(self, positions_m: npt.ArrayLike, sites: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return gain and distance from each position to its site in double precision, for links.

        Args:
            positions_m: [n, 2] positions in the area, m.
            sites: [n] index of each position's site in sites_m.

        Returns:
            [n] gain of each link in dB, negative, and [n] actual 2D distance in m to the site's nearest copy.

        Raises:
            ValueError: a position is beyond the area, or there is no such site.
        """
        positions, chosen = self._checked_pairs(positions_m, sites)
        framed, values = self._distances.framed(positions), self.fields.one_at(positions, chosen)
        margin = None
        if self._los_layer is not None:
            # decide the state in single precision, as gain_db does, so that both functions agree
            margin = self._margin(self._distances.to_one(framed, chosen), values)
        return self._links(framed, chosen, margin, values)

    def links_among(
        self, positions_m: npt.ArrayLike, sites: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray, Float32Array]:
        """Return the results of `links_to` and `gain_db` in little more time than one of them takes."""
        positions, chosen = self._checked_pairs(positions_m, sites)
        framed, values = self._distances.framed(positions), self.fields.at(positions).swapaxes(1, 2)
        log_square = self._distances.to_all(framed.astype(np.float32))
        margin = self._margin(log_square, values)
        own = chosen, np.arange(len(chosen))
        links = self._links(framed, chosen, None if margin is None else margin[own], values[:, *own])
        return *links, -self._received_loss_db(log_square, margin, values).T

    def in_sight(self, positions_m: npt.ArrayLike, sites: npt.ArrayLike) -> FloatArray:
        """Return [n] the share of each link's power that arrives in line of sight, 0 to 1; raise as `links_to`."""
        positions, chosen = self._checked_pairs(positions_m, sites)
        framed, values = self._distances.framed(positions), self.fields.one_at(positions, chosen)
        log_square = self._distances.to_one(framed, chosen)
        margin = self._margin(log_square, values)
        if margin is None or self._soft_m is None:
            sees = np.full(len(positions), self._always_in_sight) if margin is None else margin > 0
            return sees.astype(float)
        of_los = np.square(soft_state(margin, self._soft_m).astype(float))
        los_db, nlos_db = self._losses_db(log_square, values)
        return np.asarray(of_los / (of_los + (1.0 - of_los) * 10.0 ** (0.1 * (los_db - nlos_db))))

    def _links(
        self,
        framed: FloatArray,
        chosen: npt.NDArray[np.intp],
        margin: Float32Array | None,
        values: Float32Array,
    ) -> tuple[FloatArray, FloatArray]:
        """Return gain and distance [n] of links to chosen sites, from the margin and the fields' values."""
        square = self._distances.square_to(framed, chosen)
        distance_m = np.sqrt(square)
        return -self._loss_db(self._distances.log_of(square), margin, values), distance_m

    def is_held(self, distance_m: FloatArray) -> npt.NDArray[np.bool_]:
        """Return [n] whether links are shorter than min_distance_m in 2D, and so have the loss at that distance."""
        # rounding may put a device placed at the minimum distance slightly below it
        return distance_m < self.min_distance_m * (1.0 - 5e-6)

    @property
    def range_m(self) -> float:
        """2D distance beyond which sites are not received; inf if no place is that far from a site."""
        return self._distances.range_m

    def is_beyond(self, distance_m: FloatArray) -> npt.NDArray[np.bool_]:
        """Return [n] whether links of these 2D lengths exceed the model's range and take the loss at its limit."""
        return distance_m > self.range_m

    def reached(self, positions_m: FloatArray) -> npt.NDArray[np.bool_]:
        """Return [n] whether any site is received at positions [n, 2]; False for nan."""
        if self.range_m == math.inf:
            return np.isfinite(positions_m[:, 0])
        log_square = self._distances.to_all(self._distances.framed(positions_m).astype(np.float32))
        return ~(self._distances.out_of_range(log_square).all(axis=0) | np.isnan(positions_m[:, 0]))

    def _checked(self, positions_m: npt.ArrayLike) -> FloatArray:
        positions = np.asarray(positions_m, dtype=float)
        if positions.ndim != 2 or positions.shape[1] != 2:
            raise ValueError(f"positions_m must be [n, 2], got shape {positions.shape}")
        check_area(positions, self.area_radius_m)
        return positions

    def _checked_pairs(
        self, positions_m: npt.ArrayLike, sites: npt.ArrayLike
    ) -> tuple[FloatArray, npt.NDArray[np.intp]]:
        positions, chosen = self._checked(positions_m), np.asarray(sites)
        if chosen.shape != positions.shape[:1]:
            raise ValueError(f"sites must be one per position, got {chosen.shape} for {len(positions)}")
        if not ((chosen >= 0) & (chosen < len(self.sites_m))).all():
            raise ValueError(f"sites must lie between 0 and {len(self.sites_m) - 1}, got {chosen}")
        return positions, chosen.astype(np.intp)

    def _chunks(self, positions: FloatArray) -> Iterator[tuple[slice, Float32Array, Float32Array]]:
        """Yield slices of positions, with their ln d3D^2 [S, rows] and field values [layers, S, rows]."""
        framed = self._distances.framed(positions).astype(np.float32)
        step = max(1, _CHUNK // len(self.sites_m))
        self.fields.read_first(positions)
        for first in range(0, len(positions), step):
            rows = slice(first, first + step)
            log_square = self._distances.to_all(framed[:, rows])
            yield rows, log_square, self.fields.at(positions[rows]).swapaxes(1, 2)

    def _margin(self, log_square: Float32Array, values: Float32Array) -> Float32Array | None:
        """Return the margin of line of sight in standard deviations (below 0: no sight); None for a single state."""
        if self._los_layer is None:
            return None
        margin = self._thresholds.at(log_square)
        margin -= values[self._los_layer]
        return margin

    def _loss_db(self, log_square: Floats, margin: Float32Array | None, values: Float32Array) -> Floats:
        losses = self._losses_db(log_square, values)
        if margin is None:
            return losses[0]
        if self._soft_m is None:
            return np.where(margin > 0, *losses)
        return mixed_loss_db(soft_state(margin, self._soft_m), *losses)

    def _received_loss_db(
        self, log_square: Float32Array, margin: Float32Array | None, values: Float32Array
    ) -> Float32Array:
        """Return the loss in dB to sites as `_loss_db` does, and an infinite loss beyond the model's range."""
        loss_db = self._loss_db(log_square, margin, values)
        if self.range_m < math.inf:
            loss_db[self._distances.out_of_range(log_square)] = np.inf
        return loss_db

    def _losses_db(self, log_square: Floats, values: Float32Array) -> list[Floats]:
        straight = [line.slope_db * log_square + line.intercept_db for line in self._lines]
        return [state.loss_db(straight, values) for state in self._states]


def _checked_sites(sites_m: npt.ArrayLike, keys: int) -> FloatArray:
    sites = np.array(sites_m, dtype=float)
    if sites.ndim != 2 or sites.shape[1] != 2 or not np.isfinite(sites).all():
        raise ValueError(f"sites_m must be [S, 2] and finite, got {sites}")
    if not 0 < keys == len(sites):
        raise ValueError(f"keys must be one per site, got {keys} for {len(sites)} sites")
    return sites


def _check_ranges(area_radius_m: float, line_of_sight: str, shadowing_std_db: float | None) -> None:
    if not 0 < area_radius_m < math.inf:
        raise ValueError(f"area_radius_m must be > 0 and finite, got {area_radius_m}")
    if shadowing_std_db is not None and not 0 <= shadowing_std_db < math.inf:
        raise ValueError(f"shadowing_std_db must be >= 0 and finite, got {shadowing_std_db}")
    if line_of_sight not in get_args(LineOfSight):
        raise ValueError(
            f"line_of_sight must be one of {', '.join(get_args(LineOfSight))}, got {line_of_sight!r}"
        )


def _shadowing_correlation_m(model: PathLoss, in_sight: bool) -> float:
    if model.correlation_m is None:
        raise ValueError(
            f"{type(model).__name__} has no shadowing: set shadowing_std_db to 0, or use another path loss"
        )
    return model.correlation_m.los if in_sight else model.correlation_m.nlos
