"""Test the analysis of runs from several folders, and of incomplete runs."""

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from edgefl.analysis import compare, load_runs, report_costs
from edgefl.analysis.commands.line import main
from edgefl.analysis.html.page import _about
from edgefl.analysis.reports.network import handover_figures
from edgefl.analysis.runs import reading

Write = Callable[..., Path]
SESSIONS = [{"session": 1, "accuracy_start": 0.1}]


def rounds(accuracy: float, session: int = 1) -> list[dict]:
    return [{"session": session, "round": t, "accuracy": accuracy} for t in (1, 2)]


def test_two_runs_of_one_scenario_are_told_apart_by_their_folders(write_run: Write) -> None:
    a = write_run("one/quick", rounds(0.5), SESSIONS)
    b = write_run("two/quick", rounds(0.7), SESSIONS)
    assert list(load_runs([a, b]).info["variant"]) == ["one/quick", "two/quick"]
    named = compare(load_runs([a, b], names=("old", "new")), reference="old")
    assert named.table.set_index("variant").loc["new", "accuracy_first_mean"] == 0.7
    with pytest.raises(ValueError, match="1 names for 2 folders"):
        load_runs([a, b], names=("old",))
    with pytest.raises(ValueError, match="given twice"):
        load_runs([a, a])
    with pytest.raises(
        ValueError, match=f"the run {a} is given twice, by {a.parent} and by {a}: give different"
    ):
        load_runs([a.parent, a])


def test_the_folder_above_loose_runs_names_them_as_a_pattern_does(write_run: Write) -> None:
    """Runs of the same name and seed have the names of their folders, also if only the folder above is given."""
    for name in ("old", "new"):
        root = write_run(f"{name}/quick", rounds(0.5), SESSIONS).parents[1]
    assert list(load_runs(root).info["variant"]) == ["new/quick", "old/quick"]
    assert load_runs(root).folder() == root


def test_a_pattern_may_name_the_folder_of_earlier_reports(write_run: Write) -> None:
    """`edgefl compare runs/*` writes runs/comparison, which the same command names when it is given again."""
    for name in ("a", "b"):
        root = write_run(name, rounds(0.5), SESSIONS).parent
    for _ in range(2):
        given = sorted(root.iterdir())
        assert compare(given, target=0.6).out == root / "comparison" / "target-0.6"
    assert [path.name for path in given] == ["a", "b", "comparison"]
    with pytest.raises(ValueError, match="no run directory"):
        compare(root / "comparison")
    write_run("comparison/c", rounds(0.5), SESSIONS)
    assert list(load_runs(given).info["variant"]) == ["a", "b", "c"]


def test_two_runs_of_other_settings_are_no_seeds_of_one_variant(write_run: Write) -> None:
    """Runs with equal names and different seeds are not averaged if their scenarios differ in more than the seed."""
    paths = []
    for seed, lr in ((1, 0.1), (2, 0.1)):
        scenario = {"seed": seed, "learning": {"lr": lr}}
        paths.append(write_run(f"{seed}/quick", rounds(0.5), SESSIONS, seed=seed, scenario=scenario))
    assert list(load_runs(paths).info["variant"]) == ["quick", "quick"]
    (paths[1] / "scenario.yaml").write_text("seed: 2\nlearning: {lr: 0.2}\n")
    assert list(load_runs(paths).info["variant"]) == ["1/quick", "2/quick"]


def test_the_seeds_of_two_machines_are_one_study(write_run: Write) -> None:
    for seed in (1, 2):
        write_run(f"m{seed}/a", rounds(0.5), SESSIONS, variant="a", seed=seed, reference="a")
        root = write_run(f"m{seed}/b", rounds(0.6), SESSIONS, variant="b", seed=seed, reference="a").parents[
            1
        ]
    comparison = compare([root / "m1", root / "m2"])
    assert (comparison.reference, comparison.seeds) == ("a", (1, 2))


def test_variants_of_two_studies_keep_their_names(write_run: Write) -> None:
    for study in ("s", "t"):
        write_run(f"{study}/a", rounds(0.5), SESSIONS, variant="a", reference="a")
        root = write_run(f"{study}/b", rounds(0.6), SESSIONS, variant="b", reference="a").parents[1]
    runs = load_runs([root / "s", root / "t"])
    assert sorted(runs.info["variant"]) == ["s a", "s b", "t a", "t b"]
    assert compare(runs).reference is None


def test_a_report_on_several_folders_goes_beside_them(
    write_run: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The report is written neither to the current folder, nor to a run's folder, nor among a study's runs."""
    a, b = (write_run(f"here/{name}", rounds(0.5), SESSIONS) for name in ("a", "b"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert compare([a, b], target=0.6).out == a.parent / "comparison" / "target-0.6"
    assert list(Path.cwd().iterdir()) == []
    assert load_runs([a, a.parent / "b"]).folder() == a.parent / "comparison"
    monkeypatch.chdir(a.parent)
    assert load_runs(["a", "b"]).folder() == Path("comparison")
    assert load_runs(["a", "../here/b"]).folder("out") == Path("out")
    monkeypatch.chdir(a)
    assert load_runs([".", "../b"]).folder() == Path("../comparison")
    monkeypatch.setattr("edgefl.analysis.runs.load.os.path.commonpath", lambda paths: "/")
    with pytest.raises(ValueError, match="no common folder to write to: choose one with out="):
        compare([a, b], target=0.6)


def test_a_study_called_comparison_is_not_written_into(write_run: Write) -> None:
    a, b, _ = (write_run(name, rounds(0.5), SESSIONS) for name in ("a", "b", "comparison/a"))
    with pytest.raises(ValueError, match="comparison holds runs: choose another folder with --out"):
        load_runs([a, b]).folder()


def test_runs_of_different_seeds_are_compared_and_it_is_said(write_run: Write) -> None:
    a = write_run("a", rounds(0.5), SESSIONS, seed=1)
    b = write_run("b", rounds(0.7), SESSIONS, seed=2)
    comparison = compare([a, b], target=0.6, out=a.parent)
    assert list(comparison.table["accuracy_first_mean"]) == [0.5, 0.7]
    assert any("different seeds (a 1; b 2)" in note for note in comparison.notes)
    assert set(load_runs([a, b]).info["seed"]) == {1}  # the lowest seed replaces the seeds of all runs


def test_titles_and_tables_of_runs_of_different_seeds_name_these_seeds(write_run: Write) -> None:
    scenario = {"learning": {"local": {"lr": 0.1}}}
    a = write_run("a", rounds(0.5), SESSIONS, seed=1, scenario=scenario)
    b = write_run("b", rounds(0.7), SESSIONS, seed=3, scenario=scenario)
    assert compare([a, b], target=0.6, out=a.parent).report(drawn=False).caption.endswith("(seeds 1, 3)")
    assert list(report_costs([a, b], out=a.parent).rows["seed"]) == [1, 3]
    assert _about(load_runs([a, b])).startswith("seeds 1, 3 · ")


def test_a_partial_run_counts_with_the_sessions_that_have_ended(
    write_run: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that was cut off in its second session, in the middle of a line, is analysed up to its first session."""
    path = write_run(
        "cut",
        [*rounds(0.5), *rounds(0.9, session=2)],
        [*SESSIONS, {"session": 2}],
        events=[{"time_s": 20.0, "event": "session_end", "session": 1}],
        status="interrupted",
        simulated_s=None,
    )
    table = (path / "rounds.csv").read_text()
    (path / "rounds.csv").write_text(table[:-30])
    with pytest.raises(ValueError, match="partial=True"):
        load_runs(path)
    for command in (["report", str(path)], ["export", str(path), "--to", "mlflow"]):
        assert main(command) == 2
        remedy = capsys.readouterr().err
        assert "let one run finish" in remedy
        assert "--partial" not in remedy, "only other commands have this option"
    runs = load_runs(path, partial=True)
    assert set(runs.rounds["session"]) == set(runs.sessions["session"]) == {1}
    assert runs.info.loc[0, "simulated_s"] == 20.0
    comparison = compare(runs)
    assert comparison.table.loc[0, "accuracy_first_mean"] == 0.5
    assert any("1 of 1 runs are not completed" in note for note in comparison.notes)


def test_no_table_of_a_partial_run_goes_beyond_its_last_finished_session(write_run: Write) -> None:
    """A run is cut off 30 s after its only finished session, which ends at 20 s; it hands over at 10 and 40 s."""
    path = write_run(
        "cut",
        [*rounds(0.5), *rounds(0.9, session=2)],
        [*SESSIONS, {"session": 2}],
        status="running",
        simulated_s=None,
    )
    rows = [(10.0, "handover", 1, None), (20.0, "session_end", None, 1), (40.0, "handover", 2, None)]
    events = pd.DataFrame(rows, columns=["time_s", "event", "device", "session"])
    more = {"stay_s": 5.0, "interruption_s": 0.5, "detail": ""}
    events.assign(**more).to_csv(path / "events.csv", index=False)
    places = {"time_s": [0.0, 20.0, 40.0], "device": 1, "x_m": 0.0, "y_m": 0.0, "cell": 0, "gain_db": None}
    pd.DataFrame(places).to_csv(path / "positions.csv", index=False)
    (path / "ledger.csv").write_text("")  # the file is empty until the run ends
    runs = load_runs(path, partial=True)
    assert runs.events["time_s"].tolist() == [10.0, 20.0]
    assert set(runs.devices["session"]) == {1}
    assert runs.positions["time_s"].tolist() == [0.0, 20.0]
    figures = handover_figures(runs).iloc[0]
    assert (figures["handovers"], figures["interruption_s"]) == (1, 0.5)
    assert figures["handovers_per_device_hour"] == pytest.approx(3600 / 20 / 3), (
        "devices 1, 2 and 3 are in service"
    )


def test_a_session_is_whole_when_its_last_round_has_its_row(write_run: Write) -> None:
    """A session's end may be reported before its last rows, which are written some seconds after their rounds."""
    path = write_run("goes on", rounds(0.5), SESSIONS, status="running", simulated_s=None)
    events = pd.read_csv(path / "events.csv")
    whole = (path / "rounds.csv").read_text()
    end_s = pd.read_csv(path / "rounds.csv").end_s.max()
    end = events.iloc[[0]].assign(event="session_end", time_s=end_s)
    pd.concat([events, end]).to_csv(path / "events.csv", index=False)
    assert len(load_runs(path, partial=True).rounds) == len(rounds(0.5))
    (path / "rounds.csv").write_text(whole[: whole.rstrip("\n").rindex("\n") + 1])
    with pytest.raises(ValueError, match="no session has ended"):
        load_runs(path, partial=True)


def test_files_read_together_are_as_if_read_one_by_one(
    write_study: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_study(sessions=2, rounds=2, seeds=(1, 2))
    lines = (root / "average" / "seed-1" / "rounds.csv").read_text().splitlines()
    (root / "average" / "seed-1" / "rounds.csv").write_text(lines[0] + "\n")  # a table without rows
    together = load_runs(root)
    parsed, own = [], reading._parsed
    monkeypatch.setattr(reading, "_parsed", lambda *given: parsed.append(1) or own(*given))
    _ = together.devices
    assert len(parsed) == 1
    alike = reading._read_alike

    def alone(files: list, *table: str) -> list:
        return [frame for file in files for frame in alike([file], *table)]

    monkeypatch.setattr(reading, "_read_alike", alone)
    one_by_one = load_runs(root)
    for name in ("rounds", "sessions", "events", "devices"):
        pd.testing.assert_frame_equal(getattr(together, name), getattr(one_by_one, name), check_dtype=False)


def test_names_are_given_one_after_another(
    write_run: Write, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A list of names ends with another option or with `--`, so it may also precede the runs."""
    a, b = (str(write_run(name, rounds(0.5), SESSIONS)) for name in ("a", "b"))
    out = ["--out", str(tmp_path / "out"), "--target", "0.5"]
    for arguments in ([a, b, "--names", "old", "new", *out], [*out, "--names", "old", "new", "--", a, b]):
        assert main(["compare", *arguments]) == 0
        assert re.search(r"^ old .*\n new ", capsys.readouterr().out, re.MULTILINE)
    assert main(["compare", a, b, "--names", "old", *out]) == 2
    assert capsys.readouterr().err == f"error: {a}, {b}: 1 names for 2 folders: give one name per folder\n"
