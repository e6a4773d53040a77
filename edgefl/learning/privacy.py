"""Differential privacy of updates: clipped, with Gaussian noise, and an account of it for each device.

Two data sets are neighbours if one device's update is nothing in one of them. Over n updates of a device, each with
noise of z times what it can change, the whole is as one Gaussian mechanism with noise z / sqrt(n), so that epsilon is
exact and no bound (Balle and Wang, ICML 2018, theorem 8). What a random draw of participants would add is left out:
epsilon holds for whoever knows who took part. Where devices add the noise, the server is the observer, and each
upload that begins counts, whatever becomes of it; where the server adds it, what it publishes. The account is of the
data that a device holds; where a partition deals anew, it begins anew, as it does in another run.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from edgefl.config.scenario_fields import Section
from edgefl.learning.chance import Chance
from edgefl.learning.tensors import Tensor

# further column of devices.csv: of all updates of the device so far, this one too, that an observer has seen
EPSILON = "epsilon"
HALVINGS = 200  # of the range in which epsilon is looked for


class PrivacySettings(Section):
    """Clipping of updates, and noise."""

    clip: float = Field(
        gt=0,
        le=1e9,
        description="C: longest change of a model that a device sends; longer ones are scaled down",
    )
    noise: float = Field(
        1.0,
        ge=0,
        le=1e6,
        description="z: standard deviation of the noise over the most that an update can change; 0: clip only",
    )
    where: Literal["device", "server"] = Field(
        "server",
        description="server: the server, which sees updates without, adds noise to their mean; device: each adds it"
        " to what it sends",
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="probability for which epsilon makes no promise")

    def unaccounted(self, selector: str | None, sessions: str | None) -> Iterator[str]:
        """Yield what the account leaves out: names of what goes by reports of devices, which have no noise."""
        if selector and self.noise:
            yield (
                f"learning.privacy: {selector} chooses by what devices report of their data, and these reports have"
                " no noise: epsilon covers neither them nor who takes part"
            )
        if sessions and self.noise:
            yield (
                f"learning.privacy: {sessions} sessions end by losses that devices report without noise: epsilon does"
                " not cover them"
            )


@dataclass(frozen=True)
class Privacy:
    """What these settings do to updates."""

    settings: PrivacySettings

    @property
    def on_devices(self) -> bool:
        """Return whether devices add the noise: each upload that begins then counts, as the server may observe it."""
        return self.settings.where == "device"

    def limited(self, rows: Tensor, start: Tensor, rng: Chance) -> Tensor:
        """Return what k devices send [k, M] with changes no longer than C, and with their noise if they add it."""
        import torch

        change, settings = rows - start, self.settings
        scale = settings.clip / change.norm(dim=1, keepdim=True).clamp_min(settings.clip)
        limited = torch.where(scale == 1, rows, start + change * scale)
        if self.on_devices and settings.noise:
            limited = limited + settings.noise * settings.clip * rng.normal(rows.shape[1])
        return limited

    def mean_noised(self, rows: Tensor, shares: Tensor, rng: Chance) -> Tensor:
        """Return updates [k, M] whose mean by shares has the server's noise: the same on each.

        One update changes the mean by its share times C at most.
        """
        if self.on_devices or not self.settings.noise:
            return rows
        deviation = self.settings.noise * self.settings.clip * shares.max()
        return rows + deviation * rng.normal(rows.shape[1])

    def epsilon(self, updates: np.ndarray) -> np.ndarray:
        """Return [k] epsilon of so many updates of each device."""
        return np.array([epsilon_of(self.settings.noise, int(many), self.settings.delta) for many in updates])


def epsilon_of(noise: float, updates: int, delta: float) -> float:
    """Return epsilon of n Gaussian mechanisms with noise z, for a delta: exact; inf without noise.

    delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu), mu = sqrt(n) / z.
    """
    if not updates:
        return 0.0
    if not noise:
        return math.inf
    mu = math.sqrt(updates) / noise
    low, high = 0.0, mu * mu / 2.0 + mu * math.sqrt(2.0 * math.log(1.0 / delta))  # the tail bound of the loss
    if _delta(low, mu) <= delta:
        return 0.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if _delta(middle, mu) > delta else (low, middle)
    return high


def _delta(epsilon: float, mu: float) -> float:
    """Return delta of a Gaussian mechanism whose means are mu deviations apart."""
    from scipy.special import log_ndtr

    first, second = float(log_ndtr(mu / 2 - epsilon / mu)), epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(first) - math.exp(second)
