"""Test reading run directories, and the command line."""

import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis import compare, handover_figures, load_runs, load_settings
from edgefl.analysis.commands.line import main

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
    # a run directory can be given directly, and its name is the variant
    alone = write_run("alone", ROUNDS, SESSIONS)
    assert load_runs(alone).info.loc[0, "variant"] == "alone"


def test_numbers_are_read_as_they_were_written(write_run: Write) -> None:
    """Numbers are read back exactly, although pandas before 3.1 errs in the last digit by default."""
    instants_s = np.random.default_rng(1).exponential(10.0, 500).cumsum().tolist()
    rounds = [{"session": 1, "round": n, "end_s": at_s} for n, at_s in enumerate(instants_s, 1)]
    assert load_runs(write_run("a", rounds, SESSIONS)).rounds.end_s.tolist() == instants_s


def test_runs_are_in_order_of_their_seeds_and_numbered_from_0(write_run: Write) -> None:
    for seed, name in ((3, "a"), (1, "b"), (2, "c")):
        write_run(name, ROUNDS, SESSIONS, variant="v", seed=seed)
    info = load_runs(write_run("d", ROUNDS, SESSIONS, variant="v", seed=0).parent).info
    assert info["seed"].to_dict() == {0: 0, 1: 1, 2: 2, 3: 3}


WAIT = "wait until it finishes or, if it was killed, continue it with `edgefl resume {path}`"
SEEN = {"pid": 17, "host": "lab", "heartbeat": "2025-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"status": "failed"}, "'failed', not 'completed': continue it with `edgefl resume {path}`"),
        (
            {"status": "interrupted"},
            "'interrupted', not 'completed': continue it with `edgefl resume {path}`",
        ),
        (
            {"status": "running", "process": SEEN},
            f"'running', not 'completed' (process 17 on lab last seen 2025-01-02T03:04:05Z): {WAIT}",
        ),
        ({"status": "running"}, f"'running', not 'completed': {WAIT}"),
        ({"status": "odd"}, "'odd', not 'completed'"),
    ],
    ids=lambda value: value["status"] if isinstance(value, dict) else "",
)
def test_what_is_not_completed_is_left_out_and_named(write_run: Write, about: dict, message: str) -> None:
    root = write_run("good", ROUNDS, SESSIONS).parent
    path = write_run("bad run", ROUNDS, SESSIONS, **about)
    with pytest.warns(UserWarning, match="bad run: its status is") as caught:
        runs = load_runs(root)
    assert message.format(path=f"'{path}'") in str(caught[0].message)
    assert list(runs.info.variant) == ["good"]


def test_a_run_whose_process_is_gone_is_not_waited_for(write_run: Write) -> None:
    """A process of another machine, or one that run.json does not describe, may still be running."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here = {"host": platform.node(), "pid": ended.pid}
    path = write_run("killed", ROUNDS, SESSIONS, status="running", process=here)
    with pytest.raises(ValueError, match=rf"process is gone: continue it with `edgefl resume {path}`"):
        load_runs(path)
    for number, odd in enumerate(({"host": "lab"}, {"pid": "x"}, {"pid": os.getpid()}, {"pid": 10**30})):
        path = write_run(f"running-{number}", ROUNDS, SESSIONS, status="running", process=here | odd)
        with pytest.raises(ValueError, match="wait until it finishes"):
            load_runs(path)


def test_a_run_with_own_code_is_continued_with_consent(write_run: Write) -> None:
    path = write_run("mine", ROUNDS, SESSIONS, status="interrupted", identity={"code": {"mine": "0123"}})
    with pytest.raises(ValueError, match=rf"continue it with `edgefl resume {path} --allow-code`"):
        load_runs(path)


def test_a_run_with_an_external_learner_is_continued_in_python(write_run: Write) -> None:
    """No command can make the learner's object."""
    about = {"identity": {"code": {"mine": "0123"}}, "learner": {"name": "mine:Ridge", "resumable": True}}
    path = write_run("mine", ROUNDS, SESSIONS, status="interrupted", **about)
    call = re.escape(f"`edgefl.resume({str(path)!r}, learner=...)` in Python, with mine:Ridge")
    with pytest.raises(ValueError, match=f"continue it with {call}"):
        load_runs(path)


def test_a_failed_run_may_need_another_scenario(write_run: Write) -> None:
    """If the scenario made a run fail, the run would fail again however often it is resumed."""
    path = write_run("mine", ROUNDS, SESSIONS, status="failed", error="no device")
    with pytest.raises(
        ValueError, match=rf"changed scenario in a new directory, or, .* with `edgefl resume {path}`"
    ):
        load_runs(path)


def test_a_reason_that_several_runs_share_is_said_once(write_run: Write) -> None:
    root = write_run("a/1", ROUNDS, SESSIONS).parents[1]
    for seed in (2, 3, 4):
        write_run(f"b/{seed}", ROUNDS, SESSIONS, seed=seed, status="failed", study="s", error="no device")
    write_run("c/1", ROUNDS, SESSIONS, status="failed", study="s", error="no file")
    with pytest.warns(UserWarning, match="it failed"):
        several, single = load_runs(root).left_out
    assert several.startswith(f"left out {root / 'b' / '2'} and 2 more: it failed (no device)")
    assert single.startswith(f"left out {root / 'c' / '1'}: it failed (no file)")


def test_a_run_killed_before_its_first_round_is_left_out_whatever_its_tables_are(write_run: Write) -> None:
    path = write_run("killed", ROUNDS, SESSIONS, status="interrupted")
    for table in ("rounds", "devices", "events", "sessions"):
        (path / f"{table}.csv").write_text("")
    with pytest.raises(ValueError, match=r"no completed run.*edgefl resume"):
        load_runs(path)


@pytest.mark.parametrize("table", ["rounds", "devices", "events", "sessions"])
def test_a_table_without_header_is_named(write_run: Write, table: str) -> None:
    path = write_run("a", ROUNDS, SESSIONS)
    (path / f"{table}.csv").write_text("")
    with pytest.raises(ValueError, match=rf"{table}\.csv is empty, without even a header"):
        _ = load_runs(path).devices


def test_tables_without_a_row_are_empty_tables_of_numbers(write_run: Write) -> None:
    path = write_run("a", [], [])
    runs = load_runs(path)
    for table in (runs.rounds, runs.devices, runs.events, runs.sessions):
        assert table.empty
    assert runs.rounds["energy_j"].sum() == 0
    figures = handover_figures(runs).iloc[0]
    assert (figures.handovers, figures.broken, figures.wasted_j) == (0, 0, 0.0)
    assert math.isnan(figures.handovers_per_device_hour)
    with pytest.raises(ValueError, match="have no rounds: simulate at least one session"):
        compare(runs)
    begun = write_run("none", [], SESSIONS, status="interrupted")
    with pytest.raises(ValueError, match=r"no session has ended.* continue it with `edgefl resume"):
        load_runs(begun, partial=True)
    begun = write_run("b", ROUNDS, SESSIONS, status="interrupted")
    (begun / "events.csv").write_text("time_s,event,device,session,stay_s,detail\n")
    with pytest.raises(ValueError, match=r"no session has ended.* continue it with `edgefl resume"):
        load_runs(begun, partial=True)


@pytest.mark.parametrize(
    "rounds", [[], [{"session": 1, "round": 1, "phase": "probe"}]], ids=["none", "probe"]
)
def test_a_run_without_rounds_beside_others_is_left_out_and_noted(
    write_run: Write, rounds: list[dict]
) -> None:
    empty = write_run("empty", rounds, [])
    with pytest.raises(ValueError, match="have no rounds"):
        compare(empty)
    root = write_run("good", ROUNDS, SESSIONS).parent
    comparison = compare(root)
    assert list(comparison.table.variant) == ["good"]
    assert f"left out {empty}: it has no rounds" in comparison.notes


def test_further_columns_are_kept(write_run: Write) -> None:
    """Further columns of devices.csv, a learner's named scalars, are kept; runs without them have NaN."""
    path = write_run("a", [*ROUNDS, {"session": 1, "round": 2}], SESSIONS)
    write_run("b", ROUNDS, SESSIONS)
    devices = pd.read_csv(path / "devices.csv").assign(weights=[0.25, None], drift=[1, 2])
    devices.to_csv(path / "devices.csv", index=False)
    table = load_runs(path.parent).devices.set_index("variant")
    assert table.loc["a", "drift"].tolist() == [1, 2]
    # a list of labels, here of one number
    assert table.loc["a", "weights"].iloc[0] == 0.25
    assert table.loc["a", "weights"].isna().tolist() == [False, True]
    assert math.isnan(table.loc["b", "drift"])


def test_the_ledger_is_read_when_asked_for(write_run: Write) -> None:
    path = write_run("a", ROUNDS, SESSIONS, seed=7)
    (path / "ledger.csv").write_text(
        "device,receive_j,transmit_j,compute_j,tail_j,energy_j,idle_j,total_j,wasted_j\n"
        "0,1,2,2,1,6,4,10,0.5\n1,0,0,0,0,0,4,4,0\n"
    )
    ledger = load_runs(path).ledger
    assert list(ledger.columns[:3]) == ["variant", "seed", "device"]
    assert ledger["total_j"].tolist() == [10, 4]
    (path / "ledger.csv").unlink()
    with pytest.raises(ValueError, match=r"cannot read .*ledger\.csv"):
        _ = load_runs(path).ledger


def test_two_runs_of_one_variant_and_seed_are_an_error(write_run: Write) -> None:
    write_run("a", ROUNDS, SESSIONS, study="s", variant="v")
    root = write_run("b", ROUNDS, SESSIONS, study="s", variant="v").parent
    with pytest.raises(ValueError, match="two runs of variant 'v' and seed 1"):
        load_runs(root)


def test_a_missing_column_is_named(write_run: Write) -> None:
    path = write_run("a", ROUNDS, SESSIONS)
    (path / "rounds.csv").write_text("session,round\n1,1\n")
    with pytest.raises(ValueError, match=r"rounds\.csv lacks the column phase"):
        load_runs(path)


@pytest.mark.parametrize(
    ("column", "cell", "fault"),
    [
        ("completed", "all", "holds words"),
        ("energy_j", "inf", "not a finite number"),
        ("accuracy", "inf", "not a finite number"),
    ],
)
def test_words_and_infinity_in_a_column_of_numbers_are_refused(
    write_run: Write, column: str, cell: str, fault: str
) -> None:
    """A loss may be infinite."""
    path = write_run("a", [{**row, "loss": math.inf} for row in ROUNDS], SESSIONS)
    assert np.isinf(load_runs(path).rounds["loss"]).all()
    path = write_run("b", [{**row, column: cell} for row in ROUNDS], SESSIONS)
    with pytest.raises(ValueError, match=rf"rounds\.csv is damaged: its column {column} .*{fault}"):
        load_runs(path)


def test_the_command_prints_the_table_and_the_figure(
    write_study: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_study(sessions=4, rounds=4, seeds=(1, 2))
    assert main(["compare", str(root)]) == 0
    printed = capsys.readouterr().out
    assert "to 95 % of peak in recurring session 4 (2 seeds" in " ".join(printed.split())
    assert "similarity" in printed
    assert str(root / "comparison.png") in printed.replace("\n", "")
    assert main(["network", str(root)]) == 0
    assert "Handovers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "{none}"], "no folder"),
        (["compare", "{root}", "--reference", "similarty"], "did you mean 'similarity'?"),
        (["compare", "{root}", "--target", "95"], "must be an accuracy or a share above 0 and at most 1"),
        (["compare", "{root}", "--out", "/proc/none"], "choose another folder with --out"),
        (["compare", "{empty}"], "no run directory"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, write_study: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
        for variant in ("a", "b"):
            root = write_run(
                f"{setting}/{variant}", ROUNDS, SESSIONS, variant=variant, setting={"axis": setting}
            ).parent.parent
    by_setting = load_settings(root)
    assert [(setting, len(runs.rounds)) for setting, runs in by_setting.items()] == [
        ((("axis", "s"),), 2),
        ((("axis", "t"),), 2),
    ]
    assert load_runs(root / "s").rounds.equals(by_setting[(("axis", "s"),)].rounds)
    with pytest.raises(ValueError, match="holds 2 settings of a grid: give the folder of one"):
        load_runs(root)
    for setting in ("s", "t"):
        write_run(f"grid/{setting}/a", ROUNDS, SESSIONS, variant="a", setting={"axis": setting})
    with pytest.raises(
        ValueError, match=r"give the folder of one, such as .*, compare all with `edgefl settings"
    ):
        load_runs(root / "grid")


def test_one_of_several_studies_in_a_folder_is_proposed(write_run: Write) -> None:
    for name in ("run", "other"):
        root = write_run(name, ROUNDS, SESSIONS, variant=name).parent
    first = sorted(root.iterdir())[0]
    write_run("study", ROUNDS, SESSIONS, variant="c", setting={"axis": "s"})
    with pytest.raises(ValueError, match=rf"give the folder of one run or study, such as {first}$"):
        load_runs(root)


def test_a_sweep_without_variants_is_sent_to_sweep(write_run: Write) -> None:
    """The error suggests `sweep`, as the folder of a setting has a single variant, with nothing to compare it to."""
    for setting in ("s", "t"):
        root = write_run(f"{setting}/a", ROUNDS, SESSIONS, variant="a", setting={"axis": setting}).parents[1]
    with pytest.raises(
        ValueError, match=r"with `edgefl settings [^`]*` or, .* costs with `edgefl sweep [^`]*`$"
    ):
        load_runs(root)
