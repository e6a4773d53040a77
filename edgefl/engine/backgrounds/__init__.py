"""Background traffic: how much of a cell's band other users would take, and what they are like."""

from abc import abstractmethod
from collections.abc import Collection
from typing import ClassVar

from pydantic import Field

from edgefl.channel.tdd import Direction
from edgefl.config.component import Component

__all__ = ["Background"]


class Background(Component):
    """Base of all background traffic: users of a cell whose files come at random and share the band with learning.

    Users are no devices: they have a power, and walls, of their own. Whatever they spend is in no table.
    """

    file_bits: int = Field(4_000_000, ge=1, le=10**12, description="bits of each file")
    users: int = Field(20, ge=1, le=10_000, description="users of a cell, at places drawn in it")
    speed_m_s: ClassVar[float] = 1.0  # sets the Doppler of their links
    transmit_power_dbm: ClassVar[float] = 23.0  # 38.101-1: of a phone

    @abstractmethod
    def load(self, direction: Direction, cell: int, time_s: float) -> tuple[float, float]:
        """Return the load of a cell from a time on, 0 to 1, and until when it is that, s; inf: for ever.

        The load is the share of time in which the users would use the band alone. Where there never is any again, say
        so by inf: who waits for the next file would wait for ever.
        """

    def check(self, cells: Collection[int]) -> None:
        """Refuse what does not fit these cells, those that have background traffic.

        Raises:
            EdgeflError: names the remedy.
        """

    @property
    def ends_s(self) -> float | None:
        """When what is known of the load ends, and the last one holds on; None: never."""
        return None
