"""Test that in the shipped scenario more uploads meet the deadline if they have priority."""

import csv
from pathlib import Path

import pytest

from edgefl.run.api import simulate
from edgefl.scenario.scenario import load
from tests.refusals import refused_at
from tests.tools.invariants import check_run

FILE = Path(__file__).parents[2] / "scenarios" / "background_traffic.yaml"


def test_priority_brings_more_uploads_in_time(tmp_path: Path) -> None:
    """On average 4.2 of 6 uploads meet the deadline with proportional fair scheduling, and all 6 with priority."""
    completed = {}
    for scheduler in ("proportional_fair", "learning_first"):
        run = simulate(load(FILE, [f"radio.scheduler={scheduler}"]), tmp_path / scheduler)
        assert check_run(run) == []
        with (run / "rounds.csv").open() as file:
            completed[scheduler] = [int(row["completed"]) for row in csv.DictReader(file)]
    means = {name: sum(counts) / len(counts) for name, counts in completed.items()}
    # standard deviation with proportional fair: 2.5 for a round, 0.55 for the mean of 20 rounds; with priority: 0
    assert means["learning_first"] - means["proportional_fair"] > 2 * 0.55
    # the figures in the scenario's comments
    assert means["proportional_fair"] == pytest.approx(4.2, abs=0.1)
    assert means["learning_first"] == pytest.approx(6.0, abs=0.1)


@pytest.mark.parametrize(
    ("settings", "place", "remedy"),
    [
        ("budget={noise_dbm_hz: -100, site_noise_figure_db: 20}", "radio.background", "raise users"),
        ("background={uplink_bps: 1e11, file_bits: 1e6}", "radio.background.uplink_bps", "lower it"),
    ],
)
def test_traffic_without_a_way_is_refused_before_the_run(
    settings: str, place: str, remedy: str, tmp_path: Path
) -> None:
    """A run that would fail at its first background file writes no directory."""
    with refused_at(place, remedy):
        simulate(load(FILE, [f"radio.{settings}"]), tmp_path / "run")
    assert not (tmp_path / "run").exists()
