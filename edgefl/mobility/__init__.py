"""Mobility models, which compute positions from time, device and seed, with NumPy only and without a clock."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, ClassVar, Protocol, Self

import numpy as np
from pydantic import Field, PrivateAttr

from edgefl.config.answers import must_be_shaped, wrong
from edgefl.config.component import Component
from edgefl.mobility._legs import Leg, Legs, Trips
from edgefl.mobility._traces._samples import Recorded
from edgefl.places.areas import Places
from edgefl.rng import Streams

__all__ = ["Coordinate", "Leg", "Legs", "Mobility", "Movement", "Trips", "still_until_s", "trips"]

Coordinate = Annotated[float, Field(ge=-1e9, le=1e9)]  # m


class Movement(Protocol):
    """The paths of all devices of one run."""

    moves: bool  # if False, the engine does not check for devices that cross cell edges

    def positions_m(self, time_s: float) -> np.ndarray:
        """Return positions [devices, 2] relative to the base station at a time >= 0; calls may be in any order.

        The position is nan for a device that is absent at that time, because it has not arrived yet or has left.
        """

    def doppler_speeds_m_s(self) -> np.ndarray:
        """Return the speed [devices] that determines each link's Doppler shift, or the mean if the speed varies."""


def positions_of(movement: Movement, time_s: float, devices: int | None) -> np.ndarray:
    """Return a movement's positions at a time, [devices, 2]; `devices` is None if the number of devices is unknown.

    Raises:
        EdgeflError: the movement does not return an array of this shape.
    """
    positions_m = movement.positions_m(time_s)
    right = isinstance(positions_m, np.ndarray) and positions_m.ndim == 2 and positions_m.shape[1] == 2
    if not right or devices not in (None, len(positions_m)):
        wanted = f"a NumPy array of shape ({'devices' if devices is None else devices}, 2), positions in m"
        raise wrong(movement.positions_m, positions_m, wanted, "devices", "mobility")
    return positions_m


def checked(mobility: "Mobility", movement: Movement, devices: int) -> Movement:
    """Check that a mobility model's `start` returned a movement of all devices, and return this movement.

    Raises:
        EdgeflError: the result is not a movement of all devices, or does not have one speed for each device.
    """
    place = "devices", "mobility"
    needed = ("moves", "positions_m", "doppler_speeds_m_s")
    if lacking := [name for name in needed if not hasattr(movement, name)]:
        raise wrong(mobility.start, movement, f"a movement with {', '.join(lacking)}", *place)
    speeds_m_s = movement.doppler_speeds_m_s()
    must_be_shaped(
        movement.doppler_speeds_m_s, speeds_m_s, ((devices,),), "a speed for each device, an array", *place
    )
    if not (isinstance(speeds_m_s, np.ndarray) and np.all(speeds_m_s >= 0)):
        raise wrong(movement.doppler_speeds_m_s, speeds_m_s, "a NumPy array of speeds of at least 0", *place)
    positions_of(movement, 0.0, devices)
    return movement


class RecordedMovement(Movement, Protocol):
    """The paths of the devices of a trace."""

    recorded: Sequence[Recorded]  # entry of each device in the file


def trips(movement: Movement, time_s: float) -> Trips:
    """Return the devices' trips at the given time; a movement without a method `trips` counts as one endless trip.

    The base class `Legs` has the method.
    """
    told = getattr(movement, "trips", None)
    if told is not None:
        found: Trips = told(time_s)
        return found
    speeds_m_s = movement.doppler_speeds_m_s()
    none = np.zeros(len(speeds_m_s), dtype=np.int64)
    return Trips(none, speeds_m_s if movement.moves else np.zeros(len(speeds_m_s)))


def still_until_s(movement: Movement, time_s: float) -> float:
    """Return the time until which no device moves; `time_s` if a device may be moving or this is unknown.

    A movement that can determine the time has a method `still_until_s`, as `Legs` does.
    """
    told = getattr(movement, "still_until_s", None)
    if told is not None:
        until_s: float = told(time_s)
        return until_s
    return time_s if movement.moves else math.inf


def notes(movement: Movement, ids: np.ndarray) -> Iterator[str]:
    """Yield what readers must know about the movement of the given devices; a movement may have a method `notes`.

    Args:
        ids: [n] numbers of the devices in this movement.
    """
    told = getattr(movement, "notes", None)
    if told is not None:
        yield from told(ids)


def ends_s(movement: Movement) -> float:
    """Return the time after which no device is ever in the world; inf if there is no such time, or it is unknown.

    A movement whose devices have left for good has an attribute `ends_s`, as recorded movement does.
    """
    time_s: float = getattr(movement, "ends_s", math.inf)
    return time_s


def closest_m(movement: Movement, until_s: float) -> float:
    """Return a lower bound on the distance of all devices from [0, 0] in the time 0 to until_s, m; 0 if unknown.

    A movement that knows its devices' paths has a method `closest_m`, as recorded movement does; it returns the
    smallest distance, or inf if no device is in the world during this time.
    """
    told = getattr(movement, "closest_m", None)
    distance_m: float = 0.0 if told is None else told(until_s)
    return distance_m


class Mobility(Component):
    """Base class of all mobility models.

    The path of a device depends only on its number and the seed, so adding devices does not change other paths.
    """

    # whether a file or a road numbers the devices; a class of n devices then uses numbers 0 to n - 1
    own_numbers: ClassVar[bool] = False
    # whether a file determines the devices' number and types; such a model implements `start_all`
    recorded: ClassVar[bool] = False
    # names of the model's places that are not areas, listed in the error about an unknown area
    own_places: ClassVar[tuple[str, ...]] = ()

    @property
    def period_s(self) -> float | None:
        """Period with which the movement repeats, s, or None."""
        return None

    _places: Places = PrivateAttr(Places())

    @property
    def places(self) -> Places:
        """The scenario's map: its areas by name, and its geographic location."""
        return self._places

    def area_names(self) -> Iterable[tuple[tuple[str, ...], str]]:
        """Yield the parameter's key and the area's name for each area that the model's parameters name."""
        return ()

    @property
    def goes_anywhere(self) -> bool:
        """Whether devices may leave the disc of their initial positions, for example for an area of the scenario."""
        return any(True for _ in self.area_names())

    def within(self, places: Places) -> Self:
        """Return a copy of the model that uses the given map, which must contain all areas that the model names."""
        placed = self.model_copy()
        placed._places = places
        return placed

    def slower(self, place: str = "devices.mobility") -> tuple[str, str]:
        """Return the parameter that sets the devices' highest speed, or '', and a remedy if speeds are too high.

        Args:
            place: the model's key in the scenario.
        """
        speeds = {
            name: value
            for name in type(self).model_fields
            if "speed" in name and isinstance(value := getattr(self, name), int | float)
        }
        key = max(speeds, key=speeds.__getitem__, default="")
        return key, f"lower {place}.{key} (now {speeds[key]:g})" if key else "make the devices slower"

    @abstractmethod
    def area_radius_m(self, cell_radius_m: float) -> float:
        """Return the radius of the disc in which devices are placed at the start, m."""

    def reach_m(self, cell_radius_m: float) -> float:
        """Return the largest distance of devices from the origin, m; with several cells, farther devices are absent.

        The distance is the area's radius if the area is a disc, and larger otherwise.
        """
        return self.area_radius_m(cell_radius_m)

    @abstractmethod
    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        """Start the movement of devices with the initial positions positions_m.

        Args:
            positions_m: [devices, 2] initial positions. A model bound to streets, a road or a file
                places its devices itself, as its documentation says, and uses only the number of positions.
            cell_radius_m: radius of the cell, or of the whole layout if there are several cells.
            min_distance_m: smallest initial distance of devices from the base station; moving devices may be closer.
            streams: the run's random streams; mobility uses those below "mobility".

        Raises:
            EdgeflError: the model's parameters do not fit the cell or the number of devices.
        """

    def start_all(self) -> RecordedMovement:
        """Start the movement of all devices of the model's file.

        Raises:
            EdgeflError: the model's parameters do not fit its file.
        """
        raise NotImplementedError(f"{type(self).__name__} moves any number of devices")
