"""Churn: when a device is switched on and off."""

from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import ClassVar

from edgefl.config.component import Component
from edgefl.rng import Streams

__all__ = ["Churn"]


class Churn(Component):
    """Base class of all churn models."""

    # whether the model numbers devices itself, as a file numbers clients; a class then uses numbers from 0
    own_numbers: ClassVar[bool] = False

    @abstractmethod
    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        """Yield the ascending times at which the device is switched: on at the first, off at the second, and so on.

        A device that is on from the start yields 0.0 first. The iterator may be infinite.
        """

    @property
    def period_s(self) -> float | None:
        """Period in seconds with which the times repeat, or None."""
        return None

    def members(self, session: int) -> Collection[int] | None:
        """Return the devices that may take part in a session, or None if all present devices may."""
        return None
