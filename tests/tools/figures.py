"""Figures that are composed and not rendered, which is half of what a comparison takes."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure


def leave_figures_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the files of figures be there, and be empty."""
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **choices: Path(path).write_bytes(b""))
