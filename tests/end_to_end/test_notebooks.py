"""Test that the notebooks in examples/notebooks run from top to bottom, and are stored without outputs."""

import json
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
LARGEST_BYTES = 10_000


def test_there_are_notebooks() -> None:
    assert [file.stem for file in NOTEBOOKS] == [
        "lesson_1_radio",
        "lesson_2_federated_learning",
        "lesson_3_people_who_come_back",
        "own_movement",
    ]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebook_is_small_and_without_outputs(file: Path) -> None:
    assert file.stat().st_size < LARGEST_BYTES
    for cell in json.loads(file.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebook_runs(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the cells as a kernel does, but in this process, because a kernel would load PyTorch again."""
    pytest.importorskip("ipykernel", reason="notebooks need the extra docs: pip install '.[docs]'")
    import nbformat
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    monkeypatch.delenv("EDGEFL_ALLOW_CODE", raising=False)  # a notebook's own classes need no permission
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    # undo the shell's changes to this process after the test
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    for prompt in ("ps1", "ps2", "ps3"):
        monkeypatch.setattr(sys, prompt, "", raising=False)
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            shell.run_cell(cell.source).raise_error()
