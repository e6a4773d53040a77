"""A recorder that says of devices which federation they belong to, where several share the cells."""

from collections.abc import Mapping, Sequence
from typing import Any

from edgefl.engine.federation.seat import FEDERATION
from edgefl.engine.records import Event, LedgerRow, Recorder


class Labelled:
    """Hand rows on; those about a device as such, its events and its ledger, with the device's federation.

    Args:
        of: [devices] the federation of each.
    """

    def __init__(self, recorder: Recorder, of: Sequence[str]) -> None:
        self._recorder, self._of = recorder, of
        self.flush = recorder.flush

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        for row in rows:
            if isinstance(row, Event | LedgerRow) and FEDERATION not in (further or {}):
                label = None if row.device is None else self._of[row.device]
                self._recorder.write(row, further={FEDERATION: label, **(further or {})})
            else:
                self._recorder.write(row, further=further)

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        if row_type in (Event, LedgerRow) and FEDERATION not in (further or {}):
            labels = [None if id_ is None else self._of[id_] for id_ in columns["device"]]
            further = {FEDERATION: labels, **(further or {})}
        self._recorder.write_columns(row_type, further=further, **columns)
