"""Test that files are complete or absent, even if other processes write them too."""

from pathlib import Path

import pytest

from edgefl.run_directory import files


def test_two_that_write_a_file_at_a_time_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, move = tmp_path / "study.yaml", Path.replace

    def replace(draft: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", move)
        files.replace(path, "theirs")  # after our draft is written, before it is renamed
        return move(draft, target)

    monkeypatch.setattr(Path, "replace", replace)
    files.replace(path, "ours")
    assert path.read_text() == "ours"
    assert list(tmp_path.iterdir()) == [path]


def test_what_could_not_be_written_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(OSError, match=r"run\.json"):
        files.replace(tmp_path / "run.json", "text")
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]
