"""Test that errors about misspelt paths and names list existing ones, and that no argument is ignored."""

import subprocess
import sys
from pathlib import Path

import pytest

from edgefl.config.shipped import EXAMPLES, FOLDER
from edgefl.version import __version__
from tests.tools.called import code_of

RUN = Path("runs", "mine-seed7")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    RUN.mkdir(parents=True)
    Path("mine.yaml").write_text("name: mine\n")
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["validate", "mine.yml"], "did you mean 'mine.yaml'?"),
        (["run", "./main.yaml"], "did you mean 'mine.yaml'?"),
        (["validate", "."], "is a folder; give a file: mine.yaml"),
        (["validate", "runs"], "is a folder; it holds no .yaml file"),
        (["report", "runs/mine"], f"did you mean {RUN}?"),
        (["compare", "runs/mine-seed8"], f"did you mean {RUN}?"),
        (["costs", "mine.yaml"], "mine.yaml is a file: give the folder of a run or of a study"),
        (["resume", "runs/mine"], f"did you mean '{RUN}'?"),
        (["scenarios", "quickstart"], "'quickstart': a folder can only be given with --copy"),
        (["examples", "my_model.py"], "'my_model.py': a folder can only be given with --copy"),
        (["examples", "my_algoritm.py"], f"did you mean the file {EXAMPLES / 'my_algorithm.py'}?"),
        (["scenarios", "--copy", "quickstart"], f"copy only this file, `cp {FOLDER / 'quickstart.yaml'} .`"),
        (["examples", "--copy", "my_model.py"], f"copy only this file, `cp {EXAMPLES / 'my_model.py'} .`"),
        (["describe", "fedprox", "mu"], "'mu': one name at a time, as in `edgefl describe fedprox`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_not_there_is_told_with_what_is(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*arguments) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert not printed.out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "command", ["run", "study", "validate", "preview", "resume", "watch", "report", "compare"]
)
def test_a_name_that_no_system_takes_is_no_traceback(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(command, "x" * 300) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_nothing_alike_is_no_guess(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wanted in ("utterly-different.yaml", "nowhere/mine.yaml"):
        assert code_of("validate", wanted) == 2
        assert "check the path" in capsys.readouterr().err, here


@pytest.mark.parametrize("what", ["scenarios", "examples"])
def test_copies_go_where_they_are_wanted(what: str, here: Path) -> None:
    assert code_of(what, "--copy") == code_of(what, "--copy", "elsewhere") == 0
    ours, theirs = (
        {file.relative_to(folder) for file in folder.rglob("*")}
        for folder in (here / what, here / "elsewhere")
    )
    assert ours == theirs != set()
    (here / "quickstart").mkdir()
    assert code_of("scenarios", "--copy", "quickstart") == 0, "a folder that exists is meant as a folder"


@pytest.mark.parametrize(
    "arguments", [["examples", "--copy"], ["scenarios", "--copy"], ["new"]], ids=lambda value: " ".join(value)
)
@pytest.mark.parametrize("below", ["", "deeper/folder"])
def test_no_files_are_put_into_a_run_directory(
    arguments: list[str], below: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("run.json", "scenario.yaml"):
        (RUN / name).touch()
    assert code_of(*arguments, str(RUN / below)) == 2
    assert f"{here / RUN} is a run directory" in capsys.readouterr().err
    assert sorted(each.name for each in RUN.iterdir()) == ["run.json", "scenario.yaml"]


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "edgefl", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"edgefl {__version__}\n")
