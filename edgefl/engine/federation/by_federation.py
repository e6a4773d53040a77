"""Write the rows of federations that share cells to each federation's own tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgefl.engine.records import Recorder


class ByFederation:
    """Pass each row to the recorder of its device's federation.

    Args:
        own: federation -> the recorder that the federation's servers use.
        of: [devices] each device's federation, an index into `own`.
    """

    def __init__(self, own: Mapping[str, Recorder], of: np.ndarray) -> None:
        self.own = own
        self._recorders, self._of = list(own.values()), of

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        for row in rows:
            self._recorders[self._of[row.device]].write(row, further=further)

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        whose = self._of[np.asarray(columns["device"], dtype=np.intp)]
        for place, recorder in enumerate(self._recorders):
            mine = np.flatnonzero(whose == place).tolist()
            if mine:
                some = {name: _at(mine, of) for name, of in columns.items()}
                beside = further and {name: _at(mine, of) for name, of in further.items()}
                recorder.write_columns(row_type, further=beside, **some)

    def flush(self) -> None:
        for recorder in self._recorders:
            recorder.flush()


def _at(rows: list[int], column: Any) -> Any:
    """Return the selected rows of a column; a value that applies to all rows is returned unchanged."""
    if isinstance(column, np.ndarray) and column.ndim:
        return column[rows]
    return [column[row] for row in rows] if isinstance(column, list | tuple) else column
