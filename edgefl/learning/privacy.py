"""Make updates differentially private by clipping and Gaussian noise, and keep a privacy account for each device.

Data sets are neighbours if they differ in one device's update, which is zero in one of the two data sets. n updates
of a device, each with noise of z times its sensitivity, amount to one Gaussian mechanism with noise z / sqrt(n), so
epsilon is exact, not a bound (Balle and Wang, ICML 2018, theorem 8). Left out: privacy amplification by sampling
participants; epsilon holds against an observer that knows the participants. If devices add the noise, the server is
the observer, and each upload that begins counts, even if it is lost; if the server adds it, each published model
counts. An account covers all data of a device during a run, since a sample may stay on it if data are dealt again.
"""

import math
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from edgefl.config.scenario_fields import Section

# column of devices.csv: epsilon of all the device's updates that an observer has seen, including the row's update
EPSILON = "epsilon"
HALVINGS = 200  # maximum number of bisection steps in the search for epsilon


class PrivacySettings(Section):
    """Settings of differential privacy: clipping of updates, and noise."""

    clip_norm: float = Field(
        gt=0,
        le=1e9,
        description="C: maximum norm of a device's model change; larger changes are scaled down",
    )
    noise: float = Field(
        1.0,
        ge=0,
        le=1e6,
        description="z: noise multiplier, which is the noise's standard deviation divided by an update's"
        " largest effect; 0: no noise",
    )
    where: Literal["device", "server"] = Field(
        "server",
        description="server: the server sees updates without noise and adds noise to their mean; device: "
        "each device adds noise to its update",
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="delta of the (epsilon, delta) guarantee")

    def unaccounted(self, selector: str | None, sessions: str | None) -> Iterator[str]:
        """Yield notes on what epsilon leaves out: reports without noise to the selector or the session policy."""
        if selector and self.noise:
            yield (
                f"learning.privacy: {selector} chooses by devices' reports about their data, which have no noise:"
                " epsilon covers neither these reports nor the choice"
            )
        if sessions and self.noise:
            yield (
                f"learning.privacy: {sessions} sessions end by losses that devices report without noise: epsilon does"
                " not cover them"
            )


def epsilon_of(noise: float, updates: int, delta: float) -> float:
    """Return the exact epsilon of n Gaussian mechanisms with noise z, for a delta; inf without noise.

    delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu), mu = sqrt(n) / z.
    """
    if not updates:
        return 0.0
    if not noise:
        return math.inf
    mu = math.sqrt(updates) / noise
    low, high = 0.0, mu * mu / 2.0 + mu * math.sqrt(2.0 * math.log(1.0 / delta))  # a tail bound
    if _delta(low, mu) <= delta:
        return 0.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if _delta(middle, mu) > delta else (low, middle)
    return high


def _delta(epsilon: float, mu: float) -> float:
    """Return delta at epsilon of a Gaussian mechanism with means that are mu standard deviations apart."""
    from scipy.special import log_ndtr

    first, second = float(log_ndtr(mu / 2 - epsilon / mu)), epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(first) - math.exp(second)
