"""Gauss-Markov mobility on a disc with a reflecting border."""

import math
from typing import ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.mobility import Leg, Legs, Movement
from edgefl.mobility._draws import UniformDraws, normal
from edgefl.mobility._legs import border_s, mirrored, onto_border
from edgefl.mobility._walkers import LargerArea
from edgefl.rng import Streams

# The mean speed exceeds the standard deviation by this factor: backward steps are then rarer than 1 in 700
_MEAN_OVER_STD = 3.0


class GaussMarkov(LargerArea):
    """Each device changes its speed and heading gradually, with memory.

    Every step_s, with an independent standard normal number w for each quantity,

        speed   = mean + x,  x' = alpha x + sqrt(1 - alpha^2) std w
        heading = mean + y,  y' = alpha y + sqrt(1 - alpha^2) std w

    and the device moves straight during a step. Speed and heading start in their stationary distribution: normal
    around the mean with the given standard deviation, with correlation alpha^n over n steps. Each device has its own
    mean heading, drawn uniformly. A negative speed (in less than 1 of 700 steps) moves the device backwards.

    At the border, even in the middle of a step, path, heading and mean heading are reflected as by a mirror; speed
    and |y| do not change. Reflection preserves the distributions above. Positions also stay uniform over the area at
    all times, as they are at the start. (Camp, Boleng and Davies instead turn the mean heading away
    when a border is near.)

    Source: Liang and Haas, INFOCOM 1999; Camp, Boleng and Davies, WCMC 2002, section 2.5. alpha 0: a random walk;
    alpha 1: straight motion at constant speed. The Doppler shift follows from the mean speed.
    """

    speed_mean_m_s: float = Field(8.0, ge=1e-3, le=60, description="mean speed")
    speed_std_m_s: float = Field(
        1.5, ge=0, le=20, description="standard deviation of the speed; at most a third of the mean"
    )
    alpha: float = Field(0.85, ge=0, le=1, description="memory of speed and heading, from 0 (none) to 1")
    heading_std_deg: ClassVar[float] = 45.0  # standard deviation of the heading around its mean; our choice
    step_s: ClassVar[float] = 1.0  # time between changes of speed and heading

    @model_validator(mode="after")
    def _forwards(self) -> Self:
        if self.speed_std_m_s * _MEAN_OVER_STD > self.speed_mean_m_s:
            raise ValueError(
                f"speed_std_m_s {self.speed_std_m_s} would often make speeds negative: use at most a third of "
                f"speed_mean_m_s {self.speed_mean_m_s}"
            )
        return self

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        return _Steps(positions_m, self, self.area_radius_m(cell_radius_m), streams)


class _Steps(Legs):
    def __init__(
        self, positions_m: np.ndarray, model: GaussMarkov, radius_m: float, streams: Streams
    ) -> None:
        devices = len(positions_m)
        super().__init__(np.full(devices, model.speed_mean_m_s))
        self._places_m = positions_m.T.copy()
        self._model = model
        self._std = np.array([[model.speed_std_m_s], [math.radians(model.heading_std_deg)]])
        self._radius_m = radius_m
        self._draws = UniformDraws(streams, devices)
        self._step = np.zeros(devices, dtype=np.int64)
        self._at_border = np.zeros(devices, dtype=bool)
        self._mean_heading = np.zeros(devices)
        self._off = np.zeros((2, devices))  # deviations of speed and heading from their means

    def begin(self, ids: np.ndarray) -> np.ndarray:
        self._step[ids] = 0
        self._at_border[ids] = False
        (turn,) = self._draws.uniform(ids, 0, 1)
        self._mean_heading[ids] = 2.0 * math.pi * turn
        self._off[:, ids] = self._std * normal(self._draws.uniform(ids, 1, 2))
        return self._places_m[:, ids]

    def next_leg(self, ids: np.ndarray, number: np.ndarray, here_m: np.ndarray, now_s: np.ndarray) -> Leg:
        model, at_border = self._model, self._at_border[ids]
        reflected = ids[at_border]
        self._mean_heading[reflected] = mirrored(self._mean_heading[reflected], here_m[:, at_border])
        self._off[1, reflected] *= -1.0
        self._change(ids[~at_border])

        speed_m_s = model.speed_mean_m_s + self._off[0, ids]
        heading = self._mean_heading[ids] + self._off[1, ids]
        velocity_m_s = speed_m_s * np.stack([np.cos(heading), np.sin(heading)])
        # steps end on an absolute grid, which reflections do not shift
        left_s = np.maximum(self._step[ids] * model.step_s - now_s, 0.0)
        to_border_s = border_s(here_m, velocity_m_s, self._radius_m)
        walk_s = np.minimum(to_border_s, left_s)
        self._at_border[ids] = at_border = to_border_s < left_s
        to_m = here_m + velocity_m_s * walk_s
        to_m[:, at_border] = onto_border(to_m[:, at_border], self._radius_m)
        return Leg(to_m, walk_s, np.zeros(len(ids)))

    def _change(self, ids: np.ndarray) -> None:
        """Start the next step of the given devices: draw their speeds and headings."""
        step = self._step[ids]
        self._step[ids] += 1
        later = step > 0  # the first step has the deviations drawn at the start
        ids, step = ids[later], step[later]
        alpha = self._model.alpha
        fresh = self._std * normal(self._draws.uniform(ids, 2 * step + 1, 2))
        self._off[:, ids] = alpha * self._off[:, ids] + math.sqrt(1.0 - alpha**2) * fresh
