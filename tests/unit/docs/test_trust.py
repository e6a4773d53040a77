"""Test that docs/trust.md agrees with the code: figures are computed again, and the conclusions hold."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.injecting import ours
from tests.faults.table import FAULTS

DOCS = Path(__file__).parents[3] / "docs"
sys.path.insert(0, str(DOCS))
import mobility_sketch  # noqa: E402
import trust  # noqa: E402
import trust_calibration  # noqa: E402
import trust_faults  # noqa: E402
import trust_rates  # noqa: E402
import trust_runs  # noqa: E402

PAGE = (DOCS / "trust.md").read_text()
PRINTED = 1e-3  # figures have four digits, and other libraries may round sums differently


def written(section: trust.Section) -> list[list[str]]:
    """Return the cells of a section's table on the page."""
    assert f"## {section.title}\n" in PAGE, "run `make trust`"
    table = PAGE.split(f"## {section.title}\n")[1].split("\n## ")[0]
    assert section.why in table, "run `make trust`"
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def assert_written(section: trust.Section, rel: float) -> None:
    cells = written(section)
    assert [row[0] for row in cells] == [row.what for row in section.rows]
    for row, (_, reference, here, _, _, *held) in zip(section.rows, cells, strict=True):
        assert row.allowed is None or abs(row.off) <= row.allowed, row.what
        assert held == row.cells()[-2:], row.what
        assert float(reference) == pytest.approx(row.reference, rel=PRINTED, abs=PRINTED), row.what
        assert float(here) == pytest.approx(row.here, rel=rel, abs=PRINTED), row.what


@pytest.mark.parametrize("law", trust.LAWS, ids=lambda law: law.__name__)
def test_laws(law: object) -> None:
    assert callable(law)
    assert_written(law(), PRINTED)


@pytest.mark.parametrize(
    "runs", [trust_calibration, trust_rates, trust_runs], ids=["calibration", "rates", "runs"]
)
def test_measurements(runs: object) -> None:
    """Measurements from whole runs are reproduced, as every random stream has a name and a seed."""
    for section in runs.measured(trust.Row, trust.Section):  # type: ignore[attr-defined]
        assert_written(section, 0.01)


@pytest.fixture
def forgetting() -> Iterator[None]:
    """Clear the caches of functions before and after a fault is injected."""
    forget()
    yield
    forget()


def forget() -> None:
    for module in ours():
        for kept in vars(module).values():
            if hasattr(kept, "cache_clear"):
                kept.cache_clear()


@pytest.mark.usefixtures("forgetting")
@pytest.mark.parametrize("law", trust.LAWS, ids=lambda law: law.__name__)
def test_a_rows_fault_takes_it_beyond_what_is_allowed(
    law: Callable[[], trust.Section], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = {row.fault for row in law().rows if row.fault}
    for fault in FAULTS:
        if fault.id in faults:
            with monkeypatch.context() as patch:
                fault.inject(patch)
                forget()
                for row in law().rows:
                    if row.fault == fault.id:
                        assert row.allowed is not None
                        assert abs(row.off) > row.allowed, row.what
    assert faults <= {fault.id for fault in FAULTS}


def test_figures_are_as_near_to_what_was_measured_as_the_page_allows() -> None:
    """Figures on the page deviate from their references by no more than the page allows."""
    lines = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    held = 0
    for cells in lines:
        if len(cells) == 7 and (allowed := cells[5].strip()) not in ("allowed", "page"):
            reference, here, unit = float(cells[1]), float(cells[2]), cells[3].strip()
            relative = allowed.endswith("%")
            off = (here - reference) / (reference if relative else 1.0)
            most = float(allowed.rstrip("%")) / (100 if relative else 1)
            # figures are rounded to four digits, as on the page
            assert abs(off) <= most + 1e-3 * (1 if relative else abs(reference)), (cells, unit)
            held += 1
    assert held > 50


def test_faults_and_mutants_are_those_of_the_last_runs() -> None:
    """The tables show the results stored by `make faults` and `make mutants`, which are not repeated here."""
    assert PAGE.endswith(f"\n{trust_faults.text()}"), "run `python docs/trust.py faults`"


def table_of(title: str) -> list[list[str]]:
    """Return a section's table on the page, whose figures `test_measurements` compares with the code."""
    lines = PAGE.split(f"## {title}\n")[1].split("\n## ")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][
        1:
    ]


def test_a_macro_network_hands_over_as_in_3gpps_setting() -> None:
    for what, reference, here, unit, *_ in table_of("Handovers of a macro network"):
        if unit == "1/border":
            assert 1.2 <= float(here) <= 2.0, what
        elif unit == "1/h":
            assert float(reference) < float(here) < 50, what
        else:
            assert float(here) <= 0.24, what


def test_without_shadowing_the_sketch_hands_over_at_the_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handovers happen at borders; near a corner, sampling every 2 m counts two crossings as one."""
    for name, value in {"SHADOWING_DB": 0.0, "A3_DB": 0.0, "FILTER_K": 0, "WALK_M": 300.0}.items():
        monkeypatch.setattr(mobility_sketch, name, value)
    found = mobility_sketch.count(10.0, 0.0, users=300)
    assert 4 * found.error / found.a_minute < 0.3
    assert found.a_border == pytest.approx(1.0, rel=4 * found.error / found.a_minute + 0.02)
