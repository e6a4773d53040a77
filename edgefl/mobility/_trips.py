"""Trips of devices: the current trip and speed of each."""

from typing import NamedTuple

import numpy as np


class Trips(NamedTuple):
    """The trips of devices, [devices] each.

    number: of the current trip, or of the last one while a device stays; 0 before the first one, and always in models
    without destinations. speed_m_s: current speed, 0 at rest.
    """

    number: np.ndarray
    speed_m_s: np.ndarray
