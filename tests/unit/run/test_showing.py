"""Test how Python shows runs: progress in a terminal or notebook but not in a log, and results."""

import io
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import edgefl
from edgefl.analysis.page import inline
from edgefl.run import showing
from tests.refusals import refused_at
from tests.tables import sections

pytestmark = pytest.mark.usefixtures("unrendered")

SMALL: dict[str, Any] = sections("""
    name=small; devices={count: 3}; radio={preset: journal}; sessions={name: schedule, count: 1, rounds: 2}
    workload={payload_bits: 1000000, flops_per_sample: 1000}
""")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make stderr a terminal; call this in the test, as pytest replaces stderr after the fixtures."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    return stream


def test_a_terminal_shows_bar_notes_and_a_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    notes: list[str] = []
    results = edgefl.simulate(SMALL, tmp_path / "run", on_note=notes.append)
    shown = terminal.getvalue()
    assert shown.index(showing.PREPARING) < shown.index("session 1/1")
    last = shown.rstrip().splitlines()[-1]
    assert last.startswith(str(tmp_path / "run"))
    assert f"2 rounds, {1000 * float(results.rounds.end_s.max()):#.3g} ms simulated" in last
    assert all(note in shown for note in (*notes, *results.notes))


def test_nothing_is_shown_in_a_log_or_on_request(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal(monkeypatch)
    edgefl.simulate(SMALL, tmp_path / "quiet", progress=False)
    edgefl.study(SMALL, {"a": None}, out=tmp_path / "study", jobs=1, progress=False)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    edgefl.simulate(SMALL, tmp_path / "log")
    assert log.getvalue() == ""
    assert capfd.readouterr() == ("", "")


def test_an_error_leaves_no_waiting_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with pytest.raises(edgefl.EdgeflError):
        edgefl.simulate({**SMALL, "rounds": {"every": 1}}, tmp_path / "run")
    assert "\x1b[?25h" in terminal.getvalue().rpartition("\x1b[?25l")[2], "the cursor must be visible again"


@pytest.mark.parametrize(("width_inch", "scrolls"), [(3.5, False), (8.0, True)])
def test_a_wide_figure_scrolls_instead_of_shrinking(width_inch: float, scrolls: bool) -> None:
    assert inline.image(b"", "a figure", width_inch).startswith('<div class="scroll">') is scrolls


def test_results_and_studies_describe_themselves(tmp_path: Path) -> None:
    variants = {"a": None, "b": {"radio.bandwidth_hz": 1e7}}
    study = edgefl.study(SMALL, variants, seeds=[1], out=tmp_path / "s", jobs=1)
    run = edgefl.Results(tmp_path / "s" / "a" / "seed-1")
    with refused_at("", "s holds 2 runs: read them with edgefl.StudyResults, or name one, such as"):
        edgefl.Results(tmp_path / "s")  # its methods are about one variant
    assert repr(study) == f"StudyResults('{tmp_path / 's'}': 2 runs, 2 variants, 1 seed)"
    assert repr(run).startswith(f"Results('{tmp_path / 's' / 'a' / 'seed-1'}': 2 rounds, ")
    for shown in (study, run, edgefl.compare(study)):
        text = shown._repr_html_()
        assert "<table>" in text
        assert "data:image/png;base64," in text
        assert len(repr(shown)) < 200
        assert isinstance(shown.plot(), Figure)
    assert "b needs" in study._repr_html_()
    assert not list(tmp_path.glob("s/*/*/comparison*"))
    by_hand = run.ledger[["total_j"]].sum().item()
    assert run.energy().total_j.sum() == pytest.approx(by_hand, rel=1e-12)
    assert study.energy().loc[("a", "all devices"), "total_j"] == pytest.approx(by_hand, rel=1e-12)
    assert list(study.energy().index.get_level_values("variant").unique()) == ["a", "b"]


def test_time_to_counts_from_a_sessions_start(tmp_path: Path) -> None:
    run = edgefl.simulate(SMALL, tmp_path / "run")
    rounds = pd.read_csv(run / "rounds.csv").assign(accuracy=[0.5, 0.75])
    rounds.to_csv(run / "rounds.csv", index=False)
    again = edgefl.Results(run)
    start_s = float(again.sessions.start_s.iloc[0])
    for target, row in ((0.5, 0), (0.6, 1), (0.75, 1)):
        assert again.time_to(target) == pytest.approx(rounds.end_s[row] - start_s, rel=1e-9)
    assert again.time_to(0.8) == float("inf")
    with pytest.raises(edgefl.EdgeflError, match="target"):
        again.time_to(8)
    with pytest.raises(edgefl.EdgeflError, match="target"):
        again.time_to(None)  # type: ignore[arg-type]
    with refused_at("", "no variant 'nobody'"):
        again.time_to("95% of nobody")
    with refused_at("", "target is True"):
        again.time_to(True)


def test_a_directory_without_results_is_described_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    assert repr(edgefl.Results(tmp_path)) == f"Results('{tmp_path}')"
    assert str(tmp_path) in edgefl.StudyResults(tmp_path)._repr_html_()
    public = [name for name in dir(edgefl.Results(tmp_path)) if not name.startswith("_")]
    assert "rounds" in public
    assert "rmdir" not in public


@pytest.mark.parametrize("kind", [edgefl.Results, edgefl.StudyResults])
def test_a_wrong_path_is_refused_at_once_as_commands_do(tmp_path: Path, kind: type[edgefl.Results]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "file").touch()
    for name, said in (("nope", "no folder"), ("empty", "no run directory"), ("empty/file", "is a file")):
        with pytest.raises(edgefl.EdgeflError, match=said):
            kind(tmp_path / name)
    run = edgefl.simulate(SMALL, tmp_path / "runs" / "one")
    for found in (kind(tmp_path / "runs"), kind(tmp_path, "runs"), pickle.loads(pickle.dumps(kind(run)))):
        assert len(found.rounds) == 2
    assert run.parent == tmp_path / "runs"
    assert run.with_name("other").name == "other"


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: edgefl.study(SMALL, {"a": {}}, seeds=1), "seeds: "),
        (lambda: edgefl.study(SMALL, {"a": {}}, seeds=[]), "seeds: "),
        (lambda: edgefl.study(SMALL, {"a": {}}, seeds=[1.5]), "seeds: "),
        (lambda: edgefl.study(SMALL, ["a"], seeds=[1]), "variants: "),
        (lambda: edgefl.load_scenario(SMALL).with_(7), "with_"),
        (lambda: edgefl.describe(4), "what: "),
    ],
    ids=["no list of seeds", "no seed", "half a seed", "variants in a list", "no change", "no name"],
)
def test_an_argument_of_a_wrong_type_is_named(call: Callable[[], object], named: str) -> None:
    with pytest.raises(edgefl.EdgeflError, match=named):
        call()


def test_a_replay_is_the_report_with_its_map_alone(tmp_path: Path) -> None:
    page = edgefl.simulate(SMALL, tmp_path / "run").replay()
    assert page == tmp_path / "run" / "report.html"
    assert "srcdoc=" in page._repr_html_()
    assert "main &gt; :not(#replay)" in page._repr_html_()
    assert "main &gt; :not(#replay)" not in edgefl.report(tmp_path / "run")._repr_html_()


def test_a_scenario_is_short_in_a_terminal_and_whole_in_a_notebook() -> None:
    scenario = edgefl.load_scenario(SMALL)
    assert repr(scenario) == str(scenario)
    assert repr(scenario) == (
        "Scenario('small': seed 100, devices 3 (static), cells 1, radio journal, 100 MHz, sessions schedule 1, "
        "selector all)"
    )
    assert "payload_bits: 1000000" in scenario._repr_html_()
    assert "max_wait_s" in scenario._repr_html_()


def test_commands_have_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = edgefl.simulate(SMALL)
    assert repr(edgefl.describe("radio.bandwidth_hz")).startswith("radio.bandwidth_hz")
    checked = edgefl.validate(SMALL, run / "scenario.yaml")
    assert checked.startswith("small: ok\n  3 devices")
    assert checked.count(": ok") == 2
    with pytest.raises(edgefl.EdgeflError, match="nowhere"):
        edgefl.validate("nowhere.yaml")
    assert {"receive_j", "total_j"} <= set(edgefl.costs(run).numbers["costs.csv"])
    seen = edgefl.preview(SMALL)
    assert seen == Path("runs/small-preview.png")
    assert seen.text.startswith("devices")
    assert "data:image/png;base64," in seen._repr_html_()


def test_a_sweep_shows_itself(tmp_path: Path) -> None:
    variants = {f"{mhz} MHz": {"radio.bandwidth_hz": mhz * 1e6} for mhz in (10, 20)}
    swept = edgefl.sweep(edgefl.study(SMALL, variants, out=tmp_path / "s", jobs=1), keys=["bandwidth_hz"])
    assert list(swept.table["radio.bandwidth_hz"]) == [1e7, 2e7]
    assert "<table>" in swept._repr_html_()


def test_seeds_may_be_numpys(tmp_path: Path) -> None:
    study = edgefl.study(SMALL, {"a": {}}, seeds=np.arange(2), out=tmp_path / "study", progress=False)
    assert {path.name for path in (study / "a").iterdir()} == {"seed-0", "seed-1"}
