"""docs/trust.md says what the code gives: each figure again, and what the page concludes from them."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
sys.path.insert(0, str(DOCS))
import trust  # noqa: E402
import trust_runs  # noqa: E402

PAGE = (DOCS / "trust.md").read_text()
PRINTED = 1e-3  # four digits, and sums that another library may round otherwise


def written(section: trust.Section) -> list[list[str]]:
    """The cells of a section's table as the page has them."""
    assert f"## {section.title}\n" in PAGE, "run `make trust`"
    table = PAGE.split(f"## {section.title}\n")[1].split("\n## ")[0]
    assert section.why in table, "run `make trust`"
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def assert_written(section: trust.Section, rel: float) -> None:
    cells = written(section)
    assert [row[0] for row in cells] == [row.what for row in section.rows]
    for row, (_, reference, here, *_) in zip(section.rows, cells, strict=True):
        assert float(reference) == pytest.approx(row.reference, rel=PRINTED, abs=PRINTED), row.what
        assert float(here) == pytest.approx(row.here, rel=rel, abs=PRINTED), row.what


@pytest.mark.parametrize(
    "law",
    [pytest.param(law, marks=[pytest.mark.slow] * (law is trust.shadowing)) for law in trust.LAWS],
    ids=lambda law: law.__name__,
)
def test_laws(law: object) -> None:
    assert callable(law)
    assert_written(law(), PRINTED)


@pytest.mark.slow
def test_measurements() -> None:
    """Whole runs: every stream has a name and a seed, so they come out the same."""
    for section in trust_runs.measured(trust.Row, trust.Section):
        assert_written(section, 0.01)


def test_cars_among_sectors_hand_over_for_each_border_about_as_measured() -> None:
    """What the page concludes, of the figures that it has; `test_measurements` holds these to the code."""
    lines = PAGE.split("## Handovers while driving\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    firsts = [number for number, row in enumerate(rows) if row[0].endswith("three sectors")]
    assert len(firsts) == len(trust_runs.CITIES)
    for first in firsts:
        (_, _, borders, *_), (_, _, back, *_) = rows[first + 2 : first + 4]
        assert 1.5 <= float(borders) <= 2.8 + 0.05
        assert 0.13 <= float(back) <= 0.21


def test_path_loss_is_the_other_simulators_within_the_speed_of_light() -> None:
    assert all(abs(row.here - row.reference) < 0.006 for row in trust.path_loss().rows)


@pytest.mark.slow
def test_sampled_laws_hold_within_their_errors() -> None:
    # 4 standard errors of a half square, (1 - rho) sqrt(2 / n), and what the fields' grid adds
    for row in trust.shadowing().rows:
        error = (1 - row.reference) * (2 / (9 * trust.FIELDS)) ** 0.5
        assert abs(row.here - row.reference) < 4 * error + 0.012
    # a quantile of 200,000: sqrt(p q / n) over the density, at 10 % some 0.027 per dB with the wider walls
    error_db = (0.09 / 200_000) ** 0.5 / 0.02
    assert all(abs(row.here - row.reference) < 4 * error_db for row in trust.walls().rows)


def test_fading_has_jakes_correlation_after_one_slot_and_loses_it_later() -> None:
    first, *_, last = [row for row in trust.fading().rows if row.what.startswith("correlation")]
    assert first.here == pytest.approx(first.reference, abs=0.002)
    assert last.here > last.reference
