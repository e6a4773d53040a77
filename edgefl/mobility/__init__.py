"""Mobility models: positions as functions of time, device and seed. Pure NumPy, no clock."""

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import Annotated, ClassVar, Protocol, Self

import numpy as np
from pydantic import Field, PrivateAttr

from edgefl.config.component import Component
from edgefl.mobility._legs import Leg, Legs
from edgefl.mobility._trips import Trips
from edgefl.places.areas import Places
from edgefl.rng import Streams

__all__ = ["Coordinate", "Leg", "Legs", "Mobility", "Movement", "Trips", "still_until_s", "trips"]

Coordinate = Annotated[float, Field(ge=-1e9, le=1e9)]  # m


class Movement(Protocol):
    """The paths of all devices of one run."""

    moves: bool  # False lets the engine skip watching the cell edge

    def positions_m(self, time_s: float) -> np.ndarray:
        """Return [devices, 2] the positions relative to the base station at any time >= 0, asked in any order.

        nan for a device that is absent at that time: not yet, or no longer, in the area.
        """

    def doppler_speeds_m_s(self) -> np.ndarray:
        """Return [devices] the speed that sets each link's Doppler: the device's, or its mean where it varies."""


def trips(movement: Movement, time_s: float) -> Trips:
    """Return the trips of devices at a time; of a movement that does not tell, one that lasts for ever.

    A movement that does tell has a method `trips` of the time, as `Legs` has.
    """
    told = getattr(movement, "trips", None)
    if told is not None:
        found: Trips = told(time_s)
        return found
    speeds_m_s = movement.doppler_speeds_m_s()
    none = np.zeros(len(speeds_m_s), dtype=np.int64)
    return Trips(none, speeds_m_s if movement.moves else np.zeros(len(speeds_m_s)))


def still_until_s(movement: Movement, time_s: float) -> float:
    """Return until when nobody changes its place; time_s: somebody may be on the way, or the movement does not tell.

    A movement that does tell has a method of this name, as `Legs` has.
    """
    told = getattr(movement, "still_until_s", None)
    if told is not None:
        until_s: float = told(time_s)
        return until_s
    return time_s if movement.moves else math.inf


class Mobility(Component):
    """Base of all mobility models.

    The path of a device depends on its number and the seed alone: more devices leave those before them
    where they were.
    """

    # whether the model numbers its devices itself, by a file or a road: those of a class then are its first ones
    own_numbers: ClassVar[bool] = False

    @property
    def period_s(self) -> float | None:
        """The time after which the same happens again, s; None: there is none."""
        return None

    _places: Places = PrivateAttr(Places())

    @property
    def places(self) -> Places:
        """What the world knows of the map: the areas by name, and where on Earth it lies."""
        return self._places

    def area_names(self) -> Iterable[tuple[tuple[str, ...], str]]:
        """Yield the areas that the model names, each with the place of its name below the model's parameters."""
        return ()

    @property
    def goes_anywhere(self) -> bool:
        """Whether devices may be beyond the disc in which they are dropped: in an area of the scenario, say."""
        return any(True for _ in self.area_names())

    def within(self, places: Places) -> Self:
        """Return the model in a world with these areas, `self.places`; a scenario has all that it names."""
        placed = self.model_copy()
        placed._places = places
        return placed

    @abstractmethod
    def area_radius_m(self, cell_radius_m: float) -> float:
        """Return the radius of the disc in which devices are dropped, m."""

    def reach_m(self, cell_radius_m: float) -> float:
        """Return how far from the origin devices can be; with several cells, one beyond is absent, m.

        At least the area's radius, which it is unless the area is not a disc.
        """
        return self.area_radius_m(cell_radius_m)

    @abstractmethod
    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        """Start the movement of devices that were dropped at positions_m.

        Args:
            positions_m: [devices, 2] positions of the drop. A model bound to streets, a road or a file
                places its devices itself, and says so; then only the number counts.
            cell_radius_m: radius of the cell, or of the whole layout if there are several.
            min_distance_m: smallest distance of the drop. Devices may walk closer.
            streams: of the run; mobility reads below "mobility".

        Raises:
            EdgeflError: the parameters do not fit the cell or the number of devices.
        """
