"""Test that `edgefl new` creates a folder with custom components that runs."""

import json
import sys
from pathlib import Path

import pytest

import edgefl
from edgefl.commands.scaffold import write
from edgefl.config import outside, registry
from tests.refusals import refused_at
from tests.tools.called import code_of


@pytest.fixture(params=[True, False], ids=["own parts", "built-in parts"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path / "first", name="first", devices=5, own_parts=request.param)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path / "first"


def test_what_is_written_is_valid(folder: Path) -> None:
    own = (folder / "my_model.py").exists()
    scenario = edgefl.load_scenario(folder / "scenario.yaml")
    assert (scenario.name, scenario.devices.count) == ("first", 5)
    assert scenario.learning is not None
    named = registry.name_of("models", scenario.learning.model)
    assert named == ("my_model:GeluMlp" if own else "mlp2")
    for file in folder.glob("*.yaml"):
        assert "{name}" not in file.read_text()
        assert "#own" not in file.read_text()
        assert "#built-in" not in file.read_text()
        first = file.read_text().splitlines()[0]
        assert (folder / first.partition("$schema=")[2]).is_file()


def test_its_study_is_checked(folder: Path) -> None:
    from edgefl.studies.validation import check

    assert len(list(check(folder / "study.yaml", "cpu"))) == 3


@pytest.mark.usefixtures("unrendered")
def test_its_notebook_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv(outside.ALLOW)
    monkeypatch.syspath_prepend(str(folder))  # as Jupyter does
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = json.loads((folder / "first_look.ipynb").read_text())
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert isinstance(names["results"], edgefl.Results)
    assert len(names["results"].rounds) == 30
    assert (Path("runs") / "first" / "comparison.png").is_file()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with refused_at("", tmp_path):
        write(tmp_path, name="a", devices=1, own_parts=True)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
    with refused_at("", "mine.txt"):
        write(tmp_path / "mine.txt", name="a", devices=1, own_parts=True)


@pytest.mark.parametrize("name", ["2026", "1e3", "null"])
def test_a_name_that_yaml_reads_as_another_value_is_text(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, name=name, devices=1, own_parts=False)
    assert edgefl.load_scenario(tmp_path / name / "scenario.yaml").name == name
    assert code_of("validate", tmp_path / name / "study.yaml") == 0


def test_the_command_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert code_of("new", "my Fürst", "--devices", "3") == 0
    printed = capsys.readouterr().out
    assert "edgefl run scenario.yaml\n" in printed, "the default folder has no custom code"
    assert "cd 'my Fürst'\n" in printed
    assert not Path("my Fürst/my_model.py").exists()
    assert edgefl.load_scenario("my Fürst/scenario.yaml").name == "my-Furst"
    code_of("new", "b", "--name", "no way")
    assert "--name 'no way': use a-z" in capsys.readouterr().err
