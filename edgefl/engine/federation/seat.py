"""Identify a server of a run by its cell, and by its federation if several federations share the cells."""

from typing import NamedTuple


class Seat(NamedTuple):
    """A server's cell and federation; the federation's name is empty if the run has only one federation."""

    cell: int
    federation: str = ""

    @property
    def label(self) -> int | str:
        """The number of the server's cell, with the federation's name if there are several federations."""
        return f"{self.cell} of federation {self.federation}" if self.federation else self.cell

    @property
    def scope(self) -> tuple[int | str, ...]:
        """Suffix of the names of the server's random streams; without a number for cell 0, as without a layout."""
        return (*((self.cell,) if self.cell else ()), *((self.federation,) if self.federation else ()))

    def named(self, phase: str) -> str:
        """Return a phase's name for the keys of random draws; it differs between cells and federations."""
        phase = f"{phase} in cell {self.cell}" if self.cell else phase
        return f"{phase} of {self.federation}" if self.federation else phase

    @classmethod
    def of(cls, key: "int | Seat") -> "Seat":
        """Convert a cell number to the seat of the cell's only server; return a Seat unchanged."""
        return key if isinstance(key, Seat) else cls(key)
