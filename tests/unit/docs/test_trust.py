"""docs/trust.md says what the code gives: each figure again, and what the page concludes from them."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
sys.path.insert(0, str(DOCS))
import mobility_sketch  # noqa: E402
import trust  # noqa: E402
import trust_faults  # noqa: E402
import trust_rates  # noqa: E402
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
@pytest.mark.usefixtures("fields_once")
@pytest.mark.parametrize("runs", [trust_rates, trust_runs], ids=["rates", "runs"])
def test_measurements(runs: object) -> None:
    """Whole runs: every stream has a name and a seed, so they come out the same."""
    for section in runs.measured(trust.Row, trust.Section):  # type: ignore[attr-defined]
        assert_written(section, 0.01)


def test_rates_and_sinr_are_as_measured_in_networks() -> None:
    """What the page concludes: outdoors within operators' range but for a tenth, SINR within 3 dB at full load."""
    tables = PAGE.split("\n## ")
    rates, sinr = (
        [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in table.splitlines()
            if line[:2] == "| "
        ][1:]
        for title in ("Rates of one device", "SINR under load")
        for table in tables
        if table.startswith(title)
    )
    for what, reference, here, *_ in rates:
        if "outdoors" in what:
            assert float(here) == pytest.approx(float(reference), rel=0.15), what
    for what, reference, here, *_ in sinr:
        if what.startswith("load 1"):
            assert abs(float(here) - float(reference)) < 3.0, what


def test_faults_and_mutants_are_those_of_the_last_runs() -> None:
    """Made from what `make faults` and `make mutants` have kept: nothing is run again here."""
    assert PAGE.endswith(f"\n{trust_faults.text()}"), "run `python docs/trust.py faults`"


def table_of(title: str) -> list[list[str]]:
    """What the page has in a section's table; `test_measurements` holds these figures to the code."""
    lines = PAGE.split(f"## {title}\n")[1].split("\n## ")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][
        1:
    ]


def test_cars_among_sectors_hand_over_for_each_border_as_the_page_concludes() -> None:
    """Measured: 1.5 and 2.4 a border, 16 and 19 % back."""
    rows = table_of("Handovers while driving")
    firsts = [number for number, row in enumerate(rows) if row[0].endswith("three sectors")]
    assert len(firsts) == len(trust_runs.CITIES)
    for first in firsts:
        (_, _, borders, *_), (_, _, back, *_) = rows[first + 2 : first + 4]
        assert 1.35 <= float(borders) <= 2.45
        assert 0.115 <= float(back) <= 0.185


def test_a_macro_network_hands_over_as_in_3gpps_setting() -> None:
    for what, reference, here, unit, _ in table_of("Handovers of a macro network"):
        if unit == "1/border":
            assert 1.2 <= float(here) <= 2.0, what
        elif unit == "1/h":
            assert float(reference) < float(here) < 50, what
        else:
            assert float(here) <= 0.24, what


def test_without_shadowing_the_sketch_hands_over_at_the_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sampled each 2 m: of the two crossings near a corner one is missed."""
    for name, value in {"SHADOWING_DB": 0.0, "A3_DB": 0.0, "FILTER_K": 0, "WALK_M": 300.0}.items():
        monkeypatch.setattr(mobility_sketch, name, value)
    found = mobility_sketch.count(10.0, 0.0, users=300)
    assert 4 * found.error / found.a_minute < 0.3
    assert found.a_border == pytest.approx(1.0, rel=4 * found.error / found.a_minute + 0.02)
