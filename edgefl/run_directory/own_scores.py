"""A recorder that names scores as federations' tasks do, where a run's federations have different ones."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from edgefl.engine.federation.seat import FEDERATION
from edgefl.engine.records import Recorder
from edgefl.run_directory.score import ACCURACY, column_name


class OwnScores:
    """Hand rows on; what is accuracy in those of a federation with another score goes into columns of that name.

    Args:
        scores: federation -> its score; those that are not named have accuracy.
    """

    def __init__(self, recorder: Recorder, scores: Mapping[str, str]) -> None:
        self._recorder, self._scores = recorder, scores
        self.flush = recorder.flush

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        score = self._scores.get((further or {}).get(FEDERATION) or "", ACCURACY)
        if score == ACCURACY:
            self._recorder.write(*rows, further=further)
            return
        named = {column_name(name, score): value for name, value in (further or {}).items()}
        for row in rows:
            own = {field.name: getattr(row, field.name) for field in fields(row) if _is_score(field.name)}
            renamed = {column_name(name, score): value for name, value in own.items()}
            self._recorder.write(replace(row, **dict.fromkeys(own)), further={**named, **renamed})

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        whose = (further or {}).get(FEDERATION) or [""]
        score = self._scores.get(whose[0] or "", ACCURACY)
        if score == ACCURACY:
            self._recorder.write_columns(row_type, further=further, **columns)
            return
        own = {name: values for name, values in columns.items() if _is_score(name)}
        named = {column_name(name, score): values for name, values in {**(further or {}), **own}.items()}
        self._recorder.write_columns(row_type, further=named, **{**columns, **dict.fromkeys(own)})


def _is_score(name: str) -> bool:
    return name.startswith(ACCURACY)
