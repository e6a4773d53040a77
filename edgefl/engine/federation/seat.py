"""Which server of a run: that of a cell, and where several federations share the cells, of a federation in it."""

from typing import NamedTuple


class Seat(NamedTuple):
    """The cell of a server, and the federation that it serves; without a name, the only one."""

    cell: int
    federation: str = ""

    @property
    def label(self) -> int | str:
        """What tells the server from others: its cell, and the federation where there are several."""
        return f"{self.cell} of federation {self.federation}" if self.federation else self.cell

    @property
    def scope(self) -> tuple[int | str, ...]:
        """What names of random streams end in; those of one cell alone do not depend on the layout's options."""
        return (*((self.cell,) if self.cell else ()), *((self.federation,) if self.federation else ()))

    def named(self, phase: str) -> str:
        """Return the name of a phase for random draws, which differs between cells and federations."""
        phase = f"{phase} in cell {self.cell}" if self.cell else phase
        return f"{phase} of {self.federation}" if self.federation else phase

    @classmethod
    def of(cls, key: "int | Seat") -> "Seat":
        """Return the seat of a cell's only server, or the seat itself."""
        return key if isinstance(key, Seat) else cls(key)
