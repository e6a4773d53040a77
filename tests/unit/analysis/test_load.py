"""Reading run directories, and the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis import load_runs, load_settings
from analysis.__main__ import main

Write = Callable[..., Path]
ROUNDS = [{"session": 1, "round": 1, "accuracy": 0.5}]
SESSIONS = [{"session": 1, "accuracy_start": 0.1}]


def test_tables_lead_with_variant_and_seed(write_run: Write) -> None:
    root = write_run("a", ROUNDS, SESSIONS, variant="v", seed=7).parent
    runs = load_runs(root)
    for table in (runs.rounds, runs.sessions, runs.events, runs.devices):
        assert list(table.columns[:2]) == ["variant", "seed"]
        assert set(table.variant) == {"v"}
    assert runs.info.loc[0, "seed"] == 7
    # a run directory itself is found as well, and its name serves as variant
    alone = write_run("alone", ROUNDS, SESSIONS)
    assert load_runs(alone).info.loc[0, "variant"] == "alone"


@pytest.mark.parametrize("status", ["running", "failed"])
def test_what_is_not_completed_is_left_out_and_named(write_run: Write, status: str) -> None:
    root = write_run("good", ROUNDS, SESSIONS).parent
    write_run("bad", ROUNDS, SESSIONS, status=status)
    with pytest.warns(UserWarning, match=f"bad: its status is '{status}'"):
        runs = load_runs(root)
    assert list(runs.info.variant) == ["good"]


def test_two_runs_of_one_variant_and_seed_are_an_error(write_run: Write) -> None:
    write_run("a", ROUNDS, SESSIONS, variant="v")
    root = write_run("b", ROUNDS, SESSIONS, variant="v").parent
    with pytest.raises(ValueError, match="two runs of variant 'v' and seed 1"):
        load_runs(root)


def test_a_missing_column_is_named(write_run: Write) -> None:
    path = write_run("a", ROUNDS, SESSIONS)
    (path / "rounds.csv").write_text("session,round\n1,1\n")
    with pytest.raises(ValueError, match=r"rounds\.csv lacks the column phase"):
        load_runs(path)


def test_the_command_prints_the_table_and_the_figure(
    write_study: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_study(sessions=4, rounds=4, seeds=(1, 2))
    assert main(["compare", str(root)]) == 0
    printed = capsys.readouterr().out
    assert "Adaptation" in printed
    assert "similarity" in printed
    assert str(root / "comparison.png") in printed.replace("\n", "")
    assert main(["network", str(root)]) == 0
    assert "Handovers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "{none}"], "no folder"),
        (["compare", "{root}", "--reference", "similarty"], "did you mean 'similarity'?"),
        (["compare", "{root}", "--target", "95"], "must be a share above 0 and at most 1"),
        (["compare", "{root}", "--out", "/proc/none"], "choose another folder with --out"),
        (["compare", "{empty}"], "no run directory"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    write_study: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = write_study(sessions=4, rounds=2)
    (tmp_path / "empty").mkdir()
    places = {"{root}": str(root), "{none}": str(tmp_path / "none"), "{empty}": str(tmp_path / "empty")}
    assert main([places.get(argument, argument) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_settings_of_a_grid_are_read_one_by_one(write_run: Write) -> None:
    for setting in ("s", "t"):
        root = write_run(
            f"{setting}/a", ROUNDS, SESSIONS, variant="a", setting={"axis": setting}
        ).parent.parent
    by_setting = load_settings(root)
    assert [(setting, len(runs.rounds)) for setting, runs in by_setting.items()] == [
        ((("axis", "s"),), 1),
        ((("axis", "t"),), 1),
    ]
    assert load_runs(root / "s").rounds.equals(by_setting[(("axis", "s"),)].rounds)
    with pytest.raises(ValueError, match="holds 2 settings of a grid"):
        load_runs(root)
