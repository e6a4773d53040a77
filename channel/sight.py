"""Line of sight to a site, and the loss at places with and without it, as functions of ln d3D^2."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from edgefl.channel.gaussian_fields import Float32Array
from edgefl.channel.layout import Floats
from edgefl.channel.path_loss import Line, PathLoss

# Number of cells in the table of thresholds over the logarithm of the distance
_THRESHOLDS = 16384
# Threshold where P_LoS is 1; its negative is the threshold where P_LoS is 0. Standard normal numbers stay within 9
_CERTAIN = 100.0


@dataclass(frozen=True)
class StateLoss:
    """Path loss and shadowing at places in one state, with or without line of sight."""

    lines: tuple[int, ...]  # indices of this state's lines among all lines
    std_db: float
    shadowing: int | None  # index of the layer with this state's shadowing

    @classmethod
    def of(
        cls, lines: tuple[Line, ...], std_db: float, shadowing: int | None, drawn: list[Line]
    ) -> "StateLoss":
        """Convert a model's lines as functions of log10 d3D to functions of ln d3D^2 = 2 ln(10) log10 d3D.

        Args:
            drawn: lines shared by the states, as functions of ln d3D^2; missing lines of this state are added.
        """
        natural = [Line(line.intercept_db, line.slope_db / (2.0 * math.log(10.0))) for line in lines]
        drawn += [line for line in natural if line not in drawn]
        return cls(tuple(drawn.index(line) for line in natural), std_db, shadowing)

    def loss_db(self, straight: Sequence[Floats], values: Float32Array) -> Floats:
        """Return the loss in dB at places in this state, in the shape of one layer of `values`.

        Args:
            straight: loss on each line at each place, dB.
            values: [layers, ...] values of the fields; the values of this state's shadowing are overwritten.
        """
        loss: Floats = reduce(np.maximum, [straight[line] for line in self.lines])
        if self.shadowing is None:
            return loss
        shadowing = values[self.shadowing]
        shadowing *= self.std_db
        return loss + shadowing


def soft_state(margin: Float32Array, wavelength_m: float) -> Float32Array:
    """Return the soft state of line of sight, which is 1 with sight, 0 without sight, 1/2 where the state changes.

    Args:
        margin: standard deviations by which a place exceeds the threshold of line of sight, G + F(d) in the source,
            with F the normal quantile of P_LoS.

    Source: TR 38.901, 7.6.3.3, eq. (7.6-18): 1/2 + arctan(sqrt(20 / wavelength) (G + F(d))) / pi.
    """
    return 0.5 + np.arctan(math.sqrt(20.0 / wavelength_m) * margin) / math.pi


def mixed_loss_db(state: Float32Array, los_db: Floats, nlos_db: Floats) -> Floats:
    """Return the loss in dB of a soft state s, in which power gains add up with weights s^2 and 1 - s^2.

    Source: TR 38.901, 7.6.3.3, eq. (7.6-19), H = s H_LOS + sqrt(1 - s^2) H_NLOS; both channels have independent
    phases, so their mean powers add up.
    """
    of_los = np.square(state)
    # first the ratio of the gains without and with sight, then the ratio of the mixed gain to the gain with sight
    mixed = los_db - nlos_db
    mixed *= 0.1
    np.power(10.0, mixed, out=mixed)
    mixed *= 1.0 - of_los
    mixed += of_los
    np.log10(mixed, out=mixed)
    mixed *= -10.0
    mixed += los_db
    return mixed


class Thresholds:
    """The normal quantile of P_LoS, tabulated over ln d3D^2 and interpolated."""

    def __init__(self, model: PathLoss, nearest_m: float, farthest_m: float, height_m: float) -> None:
        from scipy import special

        # add a table cell on both sides to allow for single-precision rounding
        first, last = (math.log(distance_m**2 + height_m**2) for distance_m in (nearest_m, farthest_m))
        cell = (last - first) / (_THRESHOLDS - 2)
        nodes = first + cell * np.arange(-1, _THRESHOLDS)
        distance_m = np.sqrt(np.maximum(np.exp(nodes) - height_m**2, nearest_m**2))
        # the quantile of a probability of 0 or 1 is infinite
        quantile = np.clip(special.ndtri(model.los_probability(distance_m)), -_CERTAIN, _CERTAIN)
        self._first, self._per_unit = float(nodes[0]), 1.0 / cell
        self._value = quantile[:-1].astype(np.float32)
        self._step = np.diff(quantile).astype(np.float32)

    def at(self, log_square: Float32Array) -> Float32Array:
        # take() and in-place operations are four times as fast as plain indexing here
        position = (log_square - self._first) * self._per_unit
        cell = position.astype(np.intp)
        position -= cell.astype(np.float32)
        position *= self._step.take(cell)
        position += self._value.take(cell)
        return position
