"""Identify a server of a run: by its cell, and by its federation if several share the cells."""

from typing import NamedTuple


class Seat(NamedTuple):
    """A server's cell, and the federation that it serves, which has no name if it is the only one."""

    cell: int
    federation: str = ""

    @property
    def label(self) -> int | str:
        """The server's cell, with its federation if there are several."""
        return f"{self.cell} of federation {self.federation}" if self.federation else self.cell

    @property
    def scope(self) -> tuple[int | str, ...]:
        """Suffix of the names of random streams; in a single cell, these do not depend on the layout's options."""
        return (*((self.cell,) if self.cell else ()), *((self.federation,) if self.federation else ()))

    def named(self, phase: str) -> str:
        """Return the name of a phase for random draws, distinct between cells and federations."""
        phase = f"{phase} in cell {self.cell}" if self.cell else phase
        return f"{phase} of {self.federation}" if self.federation else phase

    @classmethod
    def of(cls, key: "int | Seat") -> "Seat":
        """Return the seat of the only server of a cell, given by the cell's number; return a seat unchanged."""
        return key if isinstance(key, Seat) else cls(key)
