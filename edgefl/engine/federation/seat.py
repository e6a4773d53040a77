"""Which server of a run: that of a cell, and where several federations share the cells, of a federation in it."""

from typing import Any, NamedTuple

# further column of tables where several federations share the cells
FEDERATION = "federation"


class Seat(NamedTuple):
    """The cell of a server, and the federation that it serves; without a name, the only one."""

    cell: int
    federation: str = ""

    @property
    def columns(self) -> dict[str, Any]:
        """The further column of a row about this server; none where there is one federation."""
        return {FEDERATION: self.federation} if self.federation else {}

    @property
    def label(self) -> int | str:
        """What tells the server from others: its cell, and the federation where there are several."""
        return f"{self.cell} of federation {self.federation}" if self.federation else self.cell

    @classmethod
    def of(cls, key: "int | Seat") -> "Seat":
        """Return the seat of a cell's only server, or the seat itself."""
        return key if isinstance(key, Seat) else cls(key)
