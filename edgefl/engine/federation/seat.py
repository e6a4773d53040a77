"""Identify a server of a run by its cell, and by its federation if several federations share the cells."""

from typing import NamedTuple


class Seat(NamedTuple):
    """A server's cell and federation; if a run has only one federation, its name is empty."""

    cell: int
    federation: str = ""

    @property
    def label(self) -> int | str:
        """The number of the server's cell, with the federation's name if there are several federations."""
        return f"{self.cell} of federation {self.federation}" if self.federation else self.cell

    @property
    def scope(self) -> tuple[int | str, ...]:
        """Suffix of the server's random stream names; cell 0 adds no number, so one cell draws as with no layout."""
        return (*((self.cell,) if self.cell else ()), *((self.federation,) if self.federation else ()))

    def named(self, phase: str) -> str:
        """Return the name of a phase in keys of random draws, which differ between cells and federations."""
        phase = f"{phase} in cell {self.cell}" if self.cell else phase
        return f"{phase} of {self.federation}" if self.federation else phase

    @classmethod
    def of(cls, key: "int | Seat") -> "Seat":
        """Convert a cell number to the seat of the cell's only server; return a Seat unchanged."""
        return key if isinstance(key, Seat) else cls(key)
