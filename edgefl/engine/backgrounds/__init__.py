"""Background traffic: the load of other users on a cell's band, and the properties of these users."""

from abc import abstractmethod
from collections.abc import Collection
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from edgefl.channel.tdd import Direction
from edgefl.config.component import Component

__all__ = ["Background"]

Metres = Annotated[float, Field(ge=0, le=5000)]


class Background(Component):
    """Base class of background traffic: files of other users that arrive at random and share the band.

    Users are not devices: they have their own power and penetration loss, and no table includes their energy.
    """

    file_bits: int = Field(4_000_000, ge=1, le=10**12, description="bits of each file")
    users: int = Field(20, ge=1, le=10_000, description="number of users per cell, placed at random")
    distance_m: tuple[Metres, Metres] | None = Field(
        None,
        description="[from, to]: range of the users' 2D distances from their site, drawn uniformly; null: anywhere",
    )
    speed_m_s: ClassVar[float] = 1.0  # speed of users, for the Doppler shift of their links
    transmit_power_dbm: ClassVar[float] = 23.0  # power of a phone (38.101-1)

    @field_validator("distance_m")
    @classmethod
    def _rising(cls, distance_m: tuple[float, float] | None) -> tuple[float, float] | None:
        if distance_m is not None and distance_m[0] > distance_m[1]:
            raise ValueError(
                f"from {distance_m[0]:g} to {distance_m[1]:g} m is not a range: write the smaller distance first"
            )
        return distance_m

    def bps(self, direction: Direction) -> float | None:
        """Return the traffic in bit/s, or None if it is given as a load."""
        return None

    @abstractmethod
    def load(self, direction: Direction, cell: int, time_s: float) -> tuple[float, float]:
        """Return the load of a cell at a time, 0 to 1, and the time in s until which it stays the same, or inf.

        The load is the share of time in which the users would use the band if they had it to themselves. If the load
        stays 0 to the end, the time must be inf; otherwise the cell would wait for files that never come.
        """

    def check(self, cells: Collection[int]) -> None:
        """Raise an error if the settings do not fit the cells with background traffic, given as cell numbers.

        Raises:
            EdgeflError: the settings do not fit; the message names the remedy.
        """

    @property
    def ends_s(self) -> float | None:
        """Return the time after which the last known load continues, or None if the load is known at all times."""
        return None
