"""Trips of devices: which one each is on, and how fast it goes."""

from typing import NamedTuple

import numpy as np


class Trips(NamedTuple):
    """Where devices are in what they do: [devices] each.

    number: of the trip that a device is on, or after which it stays where it is; 0 before the first one, and always
    where a model knows no places to go to. speed_m_s: now, 0 at rest.
    """

    number: np.ndarray
    speed_m_s: np.ndarray
