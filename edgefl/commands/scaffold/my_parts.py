"""Parts of your own: a data set, a model, an algorithm and a mobility model. Change them, or write others.

Each is a class: its fields are the parameters in the scenario, checked by their bounds; it has one or two methods.
`edgefl describe algorithms/my_parts:Median` shows what a scenario may say; `edgefl validate` tries them out.
"""

from math import prod

import numpy as np
from pydantic import Field
from torch import Tensor, nn

from edgefl.learning.algorithms import Algorithm, ServerState, Updates
from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.models import Model
from edgefl.mobility import Mobility, Movement
from edgefl.rng import Streams


class Blobs(Dataset):
    """Points in the plane around a centre for each class."""

    classes: int = Field(4, ge=2, le=100, description="number of classes")
    spread: float = Field(
        0.5, gt=0, le=10, description="standard deviation around a centre; the centres lie 2 apart"
    )

    def check(self) -> None:
        """Here: refuse with an EdgeflError if files are missing. These data are drawn."""

    def load(self) -> Data:
        rng = np.random.default_rng(0)
        return Data(
            train=self._draw(rng, 1000),
            test=self._draw(rng, 200),
            num_classes=self.classes,
            mean=np.array(0, np.float32),  # a model sees (x - mean) / std
            std=np.array(1, np.float32),
            label_names=tuple(f"blob {label}" for label in range(self.classes)),
        )

    def _draw(self, rng: np.random.Generator, count: int) -> Split:
        y = rng.integers(self.classes, size=count)
        angle, radius = 2 * np.pi * y / self.classes, 1 / np.sin(np.pi / self.classes)
        centres = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return Split((centres + rng.normal(0, self.spread, (count, 2))).astype(np.float32), y)


class Small(Model):
    """One hidden layer."""

    hidden: int = Field(16, ge=1, le=4096, description="width of the hidden layer")

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        inputs = prod(input_shape)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(inputs, self.hidden), nn.ReLU(), nn.Linear(self.hidden, classes)
        )


class Median(Algorithm):
    """Aggregate by the median of each weight: a few bad updates cannot pull the model away. Yin et al., ICML 2018."""

    step: float = Field(1.0, gt=0, le=10, description="how far the server goes towards the median")

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        median = updates.rows.median(dim=0).values  # of [devices, weights]
        return model + self.step * (median - model), state


class Walk(Mobility):
    """Everybody walks on a circle around the base station, through the place where they were dropped."""

    speed_m_s: float = Field(1.5, gt=0, le=60, description="speed, m/s")

    def area_radius_m(self, cell_radius_m: float) -> float:
        return cell_radius_m  # devices are dropped, and stay, within it

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        return _Circles(positions_m, self.speed_m_s)


class _Circles:
    moves = True

    def __init__(self, begin_m: np.ndarray, speed_m_s: float) -> None:
        self._radius_m, self._speed_m_s = np.hypot(*begin_m.T), speed_m_s
        self._begin = np.arctan2(begin_m[:, 1], begin_m[:, 0])

    def positions_m(self, time_s: float) -> np.ndarray:
        """[devices, 2]."""
        angle = self._begin + self._speed_m_s * time_s / self._radius_m
        return self._radius_m[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.full(len(self._radius_m), self._speed_m_s)
