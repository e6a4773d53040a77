"""Test that a page names the run that its scenario comes from, and that it replaces no file of another kind."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import edgefl
from edgefl import simulate
from edgefl.analysis import load_runs
from edgefl.analysis.commands.line import main
from edgefl.analysis.html import page, write_report

RUN: dict[str, Any] = {
    "name": "small",
    "devices": {"count": 2},
    "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "workload": {"payload_bits": 100_000, "flops_per_sample": 1000},
}


def test_with_several_runs_the_page_says_of_which_the_scenario_is(tmp_path: Path) -> None:
    runs = [
        simulate({**RUN, "name": name, "seed": 1}, tmp_path / "runs" / name, device="cpu")
        for name in ("a", "b")
    ]
    alone, both = (write_report(path).read_text() for path in (runs[0], tmp_path / "runs"))
    assert "Shown for the run" not in alone
    folded = [page.count("<details open><summary>") for page in (alone, both)]
    assert folded == [0, 1], "tables of several runs fold; the first run's are open"
    assert both.count("Shown for the run a.") == 2  # next to the scenario and next to the provenance
    assert "Shown for the run b." not in both


@pytest.mark.parametrize(("hours", "shown"), [((8.0, 8.0), 8.0), ((8.0, 9.0), None), ((None, 8.0), None)])
def test_charts_show_a_time_of_day_only_if_all_runs_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: tuple[float | None, ...], shown: float | None
) -> None:
    """The charts show both runs, but the replay shows only the first."""
    monkeypatch.setattr(page, "MOST_REPLAYS", 1)
    for name, hour in zip("ab", hours, strict=True):
        run = simulate({**RUN, "name": name, "seed": 1}, tmp_path / "runs" / name, device="cpu")
        if hour is not None:
            with (run / "scenario.yaml").open("a") as file:
                file.write(f"day: {{begin_hour: {hour}}}\n")
    text = page.report(load_runs(tmp_path / "runs"))
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])  # type: ignore[index]
    assert (data["clock"] or {}).get("begin_hour") == shown
    assert "show the first 1 of 2 runs" in text


def test_a_report_replaces_no_file_of_another_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = simulate({**RUN, "seed": 1}, tmp_path / "run", device="cpu")
    table = tmp_path / "run" / "rounds.csv"
    before = table.read_bytes()
    assert main(["report", str(run), "--out", str(table)]) == 2
    assert f"--out {table}: give a name that ends in .html or .htm" in capsys.readouterr().err
    for write in (run.report, lambda out: edgefl.report(run, out)):
        with pytest.raises(edgefl.EdgeflError, match=r"ends in \.html or \.htm"):
            write(table)
    assert table.read_bytes() == before
    assert main(["report", str(run), "--out", str(tmp_path / "page.HTM"), "--quiet"]) == 0
    assert (tmp_path / "page.HTM").is_file()


def test_a_report_replaces_no_page_of_another_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only reports and empty files are replaced; the error comes before the picture is drawn."""
    run = simulate({**RUN, "seed": 1}, tmp_path / "run", device="cpu")
    mine, picture = tmp_path / "page.html", tmp_path / "moving.png"
    mine.write_text("<html>my page</html>")
    assert main(["report", str(run), "--out", str(mine), "--picture", str(picture)]) == 2
    told = f"{mine} exists and is not an edgefl report: choose another --out, or delete the file"
    assert told in " ".join(capsys.readouterr().err.split())
    for write in (run.report, lambda out: edgefl.report(run, out)):
        with pytest.raises(edgefl.EdgeflError, match="is not an edgefl report"):
            write(mine)
    assert mine.read_text() == "<html>my page</html>"
    assert not picture.exists()
    mine.write_text("")
    empty, report = (edgefl.report(run, mine).read_text() for _ in range(2))
    assert empty == report
    (run / "report.html").write_text("my notes")
    with pytest.raises(edgefl.EdgeflError, match="is not an edgefl report"):
        edgefl.report(run)
