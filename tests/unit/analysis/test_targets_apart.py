"""Files of another target stand apart from those that a study has written."""

from pathlib import Path

import pytest

from edgefl.analysis.measures.targets import apart
from edgefl.analysis.runs.load import Runs


@pytest.mark.parametrize(
    ("target", "folder"),
    [
        ("95%", ""),
        (["95%"], ""),
        (0.8, "target-0.8"),
        (["0.8", "95%"], "target-0.8-95"),
        ("90% of best", "target-90-of-best"),
    ],
)
def test_the_folder_is_named_after_the_targets(target: object, folder: str) -> None:
    assert apart(target) == folder  # type: ignore[arg-type]
    runs = Runs.__new__(Runs)
    object.__setattr__(runs, "home", Path("runs"))
    object.__setattr__(runs, "path", Path("runs"))
    assert runs.folder(None, apart(target)) == Path("runs", folder)  # type: ignore[arg-type]
    assert runs.folder("here", apart(target)) == Path("here")  # type: ignore[arg-type]
