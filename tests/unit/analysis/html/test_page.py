"""Test that a page about several runs names the run that its scenario and provenance come from."""

from pathlib import Path
from typing import Any

from edgefl import simulate
from edgefl.analysis.html import write_report

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
