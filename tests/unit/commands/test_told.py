"""Test that commands write one JSON document, or bare lines with -q, to standard output, and nothing else."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis.page.machine import document
from edgefl.config import registry
from tests.tools.called import code_of

KEYS = ["command", "out", "answers", "notes", "table"]
SCENARIO = """\
name: radio
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 2}
workload: {payload_bits: 1000, flops_per_sample: 1}
"""
STUDY = "name: small\nscenario: radio.yaml\nseeds: [1]\nvariants: {a: {}, b: {radio.bandwidth_hz: 20.0e+6}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "radio.yaml").write_text(SCENARIO)
    (tmp_path / "study.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code_of(*arguments, "--json")
    whole = json.loads(capsys.readouterr().out)
    assert list(whole) == KEYS
    assert whole["command"] == arguments[0]
    return whole


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    code_of(*arguments, "-q")
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("kept", ["all", "2", "none", "parquet"])
def test_a_private_run_states_its_epsilon(
    kept: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the largest of all devices in all rounds, whether or not their rows are kept."""
    privacy = "privacy: {clip_norm: 0.5, noise: 0.3, delta: 1.0e-4}"
    learning = f"learning: {{dataset: digits, partition: iid, model: logistic, {privacy}}}\n"
    (folder / "private.yaml").write_text(SCENARIO.partition("workload")[0] + learning)
    lines(capsys, "run", "private.yaml", "--out", "runs/p")
    largest = pd.read_csv(folder / "runs" / "p" / "devices.csv")["epsilon"].max()
    chosen = "record.tables=parquet" if kept == "parquet" else f"record.devices={kept}"
    (row,) = said(capsys, "run", "private.yaml", "--out", "runs/q", "--set", chosen)["table"]
    assert row["epsilon"] == pytest.approx(largest, rel=1e-6)
    assert largest > 0


def test_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = said(capsys, "run", "radio.yaml", "--out", "runs/a")
    about = json.loads((folder / "runs" / "a" / "run.json").read_text())
    rounds = pd.read_csv(folder / "runs" / "a" / "rounds.csv")
    (row,) = whole["table"]
    assert whole["out"] == "runs/a"
    assert row["rounds"] == 2
    assert row["simulated_s"] == about["simulated_s"]
    assert row["energy_j"] == pytest.approx(rounds["energy_j"].sum())
    assert row["accuracy"] is None
    assert whole["notes"] == about["notes"]
    assert lines(capsys, "run", "radio.yaml", "--out", "runs/b") == ["runs/b"]
    (folder / "runs/b/run.json").write_text(json.dumps(about | {"status": "interrupted"}))
    again = said(capsys, "resume", "runs/b")
    assert [again["out"], *again["table"]] == ["runs/b", row | {"wall_s": again["table"][0]["wall_s"]}]
    report = "runs/a/report.html"
    assert said(capsys, "report", "runs/a")["table"] == [{"about": "report", "file": report}]
    assert lines(capsys, "report", "runs/a") == [report]


@pytest.mark.usefixtures("unrendered")
def test_a_study_and_its_comparison_say_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "2 planned" in said(capsys, "study", "study.yaml", "--dry-run")["answers"]
    study = said(capsys, "study", "study.yaml", "--executor", "inline", "--out", "runs/s")
    assert study["out"] == "runs/s"
    assert [row["variant"] for row in study["table"]] == ["a", "b"]
    again = said(capsys, "compare", "runs/s")
    assert again["table"] == study["table"]
    assert not [note for note in study["notes"] if note.startswith("Note")]
    assert again["answers"] == study["answers"] == lines(capsys, "compare", "runs/s")
    assert lines(capsys, "study", "study.yaml", "--executor", "inline", "--out", "runs/s") == ["runs/s"]


def test_checked_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A study has a row per case; a file with an error has a row with the error, which also is on standard error."""
    whole = said(capsys, "validate", "radio.yaml", "study.yaml")
    assert [(row["file"], row["case"], row["error"]) for row in whole["table"]] == [
        ("radio.yaml", "", None),
        ("study.yaml", "a seed 1", None),
        ("study.yaml", "b seed 1", None),
    ]
    assert {row["devices"] for row in whole["table"]} == {4}
    (row,) = said(capsys, "validate", "radio.yaml", "--plan")["table"]
    assert row["least_rounds"] == row["most_rounds"] == 2
    assert row["most_simulated_s"] > 0
    (folder / "wrong.yaml").write_text(SCENARIO.replace("count", "coutn"))
    assert code_of("validate", "wrong.yaml", "radio.yaml", "--json") == 2
    out, err = capsys.readouterr()
    wrong, right = json.loads(out)["table"]
    assert "devices.coutn: unknown key" in wrong["error"]
    assert wrong["error"] in err
    assert right["error"] is None
    assert lines(capsys, "validate", "wrong.yaml", "radio.yaml") == ["radio.yaml"]


def test_lists_and_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["name"] for row in said(capsys, "list", "codecs")["table"]] == registry.names("codecs")
    assert lines(capsys, "list") == list(registry.KINDS)
    findings = said(capsys, "doctor")
    assert findings["table"][0]["about"] == "edgefl"
    assert findings["answers"][0] in lines(capsys, "doctor")


def test_an_error_leaves_standard_output_empty(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("run", "radio.yaml", "--set", "devices.count=x", "--json") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "devices.count" in err


@pytest.mark.parametrize("command", ["run", "validate", "preview"])
def test_a_setting_in_two_words_is_told_its_sign(
    folder: Path, command: str, capsys: pytest.CaptureFixture
) -> None:
    assert code_of(command, "radio.yaml", "--set", "devices.count", "5") == 2
    assert "edgefl: error: --set devices.count: write --set KEY=VALUE, e.g." in capsys.readouterr().err


def test_numbers_that_json_lacks_are_null() -> None:
    table = pd.DataFrame({"a": [np.inf], "b": [np.nan], "c": [np.int64(3)], "d": [True]})
    whole = json.loads(document("x", table=table), parse_constant=lambda name: pytest.fail(name))
    assert whole["table"] == [{"a": None, "b": None, "c": 3, "d": True}]
