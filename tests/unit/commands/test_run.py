"""Test that the command that continues a run works as printed: quoted, and with consent to the run's own code."""

import json
import shlex
from pathlib import Path

import pytest
import typer

from edgefl.commands.run import _interruptible, _learner_left_out
from edgefl.run_directory.interruption import Interrupted

OWN = {"identity": {"hash": "1", "data": {}, "results_version": 1, "code": {"mine": "2"}}}


@pytest.mark.parametrize(("about", "option"), [({}, ""), (OWN, " --allow-code")], ids=["ours", "own code"])
def test_an_interrupted_run_says_how_to_continue_it(
    about: dict, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my run"
    path.mkdir()
    (path / "run.json").write_text(json.dumps({"status": "interrupted", **about}))
    with pytest.raises(typer.Exit), _interruptible():
        raise Interrupted(path=path)
    assert f"continue with: edgefl resume {shlex.quote(str(path))}{option}\n" in capsys.readouterr().err


def test_the_scenario_of_a_run_with_a_learner_is_told_to_lack_it(tmp_path: Path) -> None:
    scenario, about = tmp_path / "scenario.yaml", tmp_path / "run.json"
    assert _learner_left_out(scenario) == ""
    for learner, said in ((None, ""), ({"name": "mine:make"}, "was trained by the learner mine:make")):
        about.write_text(json.dumps({"status": "completed", "learner": learner}))
        assert said in _learner_left_out(scenario)
        assert bool(said) == bool(_learner_left_out(scenario))
    about.write_text("{")
    assert _learner_left_out(scenario) == ""
