"""Test that no file of another program, or of the user, is replaced."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure
from PIL import Image

from edgefl.analysis import compare
from edgefl.analysis.commands.line import main
from edgefl.analysis.page.own_files import DRAWN_BY, file_to_write, signed


@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg"])
def test_only_pictures_that_edgefl_draws_are_replaced(tmp_path: Path, ending: str) -> None:
    own, foreign = tmp_path / f"own{ending}", tmp_path / f"holiday{ending}"
    Figure().savefig(own, metadata=signed(own))
    assert file_to_write(own) == own
    Figure().savefig(foreign)  # many users draw with Matplotlib, too
    with pytest.raises(
        ValueError, match="is not a picture of edgefl: choose another --out, or delete the file"
    ):
        file_to_write(foreign)


@pytest.mark.parametrize("ending", [".gif", ".webp"])
def test_only_films_that_edgefl_draws_are_replaced(tmp_path: Path, ending: str) -> None:
    foreign, own = (tmp_path / f"{name}{ending}" for name in ("holiday", "own"))
    Image.new("RGB", (4, 4)).save(foreign)
    Image.new("RGB", (4, 4)).save(own, **{"comment" if ending == ".gif" else "xmp": DRAWN_BY})
    assert file_to_write(own) == own
    with pytest.raises(ValueError, match="is not a picture of edgefl"):
        file_to_write(foreign)


def test_a_report_replaces_its_own_files_and_no_other(write_study: Callable[..., Path]) -> None:
    """Nothing is written if a single file is foreign; a table with other variants or columns is replaced."""
    root = write_study(rounds=4)
    out = root / "out"
    for chosen in (root, root / "similarity"):
        compare(chosen, out=out)
    before = {file: file.read_bytes() for file in out.iterdir()}
    for name, text in {
        "comparison.csv": "variant,seed,my score\na,1,2\n",
        "comparison.md": "# My notes\n",
        "comparison.tex": "\\section{Mine}\n",
        "comparison_curves.pdf": "%PDF-1.7 of another program",
    }.items():
        (out / name).write_text(text)
        with pytest.raises(
            ValueError, match=f"{name} exists and is not a .*: choose another out=, or delete"
        ):
            compare(root, out=out)
        assert (out / name).read_text() == text
        (out / name).write_bytes(before[out / name])
    assert before == {file: file.read_bytes() for file in out.iterdir()}


@pytest.mark.parametrize("command", ["costs", "network", "settings", "sweep"])
def test_no_command_replaces_a_table_of_the_user(
    write_study: Callable[..., Path], command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_study(rounds=2)
    for number, run in enumerate(sorted(root.glob("*/*/run.json"))):
        about = json.loads(run.read_text())
        label = f"{20 * (1 + number)} MHz"
        run.write_text(json.dumps(about | {"setting": {"bandwidth": label}, "variant": "a"}))
        scenario = {"radio": {"bandwidth_hz": 20e6 * (1 + number)}}
        (run.parent / "scenario.yaml").write_text(yaml.safe_dump(scenario))
        rounds = pd.read_csv(run.parent / "rounds.csv").drop(columns="accuracy").assign(accuracy="")
        rounds.to_csv(run.parent / "rounds.csv", index=False)
    mine = tmp_path / "out" / f"{command}.csv"
    mine.parent.mkdir()
    mine.write_text("my column\n1\n")
    assert main([command, str(root), "--out", str(mine.parent)]) == 2
    assert "exists and is not a table of edgefl" in " ".join(capsys.readouterr().err.split())
    assert [file.name for file in mine.parent.iterdir()] == [mine.name]
