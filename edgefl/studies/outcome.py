"""Runs of a study that failed, and the error that names them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgefl.errors import EdgeflError


@dataclass(frozen=True)
class Failed:
    """A run of a study that failed; trace: where in the code, if it was no error of the user's."""

    label: str
    path: Path
    error: str
    trace: str = ""

    def __str__(self) -> str:
        return f"{self.label}: {self.error}"


class IncompleteStudy(EdgeflError):
    """Some runs of a study have failed.

    Args:
        message: how many, and which.
        path: the study directory.
        failures: in the order in which they came.
    """

    def __init__(self, message: str, path: Path, failures: Sequence[Failed]) -> None:
        super().__init__(message)
        self.path = path
        self.failures = tuple(failures)
