"""Test that a run killed by SIGKILL at a random instant and resumed has the same bytes as one never killed."""

from pathlib import Path

import pytest

from tests.tools import kill

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*/scenario.yaml"))
ALWAYS = "shared_band"  # the cheapest scenario, which is tested at every commit
KILLS = 1  # kills per scenario; `python -m tests.tools.kill` makes more


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(path, marks=[pytest.mark.always] * (path.parent.name == ALWAYS)) for path in GOLDEN],
    ids=lambda path: path.parent.name,
)
def test_a_killed_run_goes_on(scenario: Path) -> None:
    tally = kill.check(scenario, KILLS, seed=5, snapshot_rounds=2, again=0.3)
    assert tally.identical == tally.runs == KILLS, tally.differences
