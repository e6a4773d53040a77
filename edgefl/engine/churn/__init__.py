"""Churn: when a device is switched on, beside where it moves."""

from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import ClassVar

from edgefl.config.component import Component
from edgefl.rng import Streams

__all__ = ["Churn"]


class Churn(Component):
    """Base of all churn models."""

    # whether the model numbers its devices itself, as a file does: those of a class then are its first ones
    own_numbers: ClassVar[bool] = False

    @abstractmethod
    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        """Yield the ascending times at which the device switches: on at the first, off at the second, and so on.

        A device that is on from the beginning yields 0.0 first. May be endless.
        """

    @property
    def period_s(self) -> float | None:
        """The time after which the same happens again, s; None: there is none."""
        return None

    def members(self, session: int) -> Collection[int] | None:
        """Return the only devices that may take part in a session; None: all that are present."""
        return None
