"""Test that the table of laws in docs/radio.md names every switch of the preset, and that its script runs."""

import sys
from pathlib import Path
from typing import Any

import pytest

from edgefl.engine.air.presets import NR
from edgefl.run_directory.circumstances import leaves
from edgefl.scenario.scenario import Scenario

DOCS = Path(__file__).parents[3] / "docs"
sys.path.insert(0, str(DOCS))
import radio  # noqa: E402

SWITCHES = {f"{section}.{key}" for section, keys in NR.items() for key in keys}
# this switch is needed for several cells, as the page says
NOT_MEASURED = {"radio.propagation.shadowing"}


def cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_the_laws_are_the_switches_of_the_preset() -> None:
    named = [key for law in radio.LAWS for key in law.keys]
    assert len(named) == len(set(named))
    assert SWITCHES - set(named) == NOT_MEASURED
    assert set(named) - SWITCHES == {"radio.neighbour_load", "devices.coated_share"}
    for law in radio.LAWS:
        turned = {key for key, _ in leaves(law.without)}
        assert turned & set(law.keys), f"the row of {law.name} turns off other laws"
    for key in NOT_MEASURED:
        assert f"`{key}:" in radio.LAWS_HEAD


def test_the_page_has_all_laws_and_both_scenarios() -> None:
    page = radio.PAGE.read_text()
    for switch in SWITCHES:
        assert f"`{switch}`" in page or f"`{switch}:" in page, (
            f"{switch} is missing: run `python docs/radio.py laws`"
        )
    sections = dict(part.split("\n", 1) for part in page.split("\n## ")[1:])
    heads = [head.splitlines()[0][3:] for head in (radio.LAWS_HEAD, radio.QUICKSTART_HEAD, radio.CITY_HEAD)]
    assert list(sections)[:3] == heads
    assert [row[0] for row in cells(sections[heads[0]])][1:-1] == [law.name for law in radio.LAWS]
    for head in heads[1:]:
        assert {row[0].split(",")[0] for row in cells(sections[head])} == set(radio.PRESETS)


def small(preset: str) -> dict[str, Any]:
    sizes: dict[str, Any] = {
        "devices": {"count": 3},
        "layout": {"rings": 0, "sites": [[0, 0], [300, 0]], "radius_m": 300},
    }
    rounds: dict[str, Any] = {"sessions": {"rounds": 1}, "workload": {"payload_bits": 10_000}}
    return radio.changed(radio.seven_cells(preset), {**sizes, **rounds})


@pytest.mark.parametrize("law", radio.LAWS, ids=lambda law: law.name)
def test_a_law_can_be_left_out(law: radio.Law) -> None:
    whole, without = (
        Scenario.model_validate(data) for data in (small("nr"), radio.changed(small("nr"), law.without))
    )
    assert whole != without


def test_small_runs_fill_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(radio, "LAWS", radio.LAWS[::14])
    rows = cells(radio.laws(map, small, seeds=(1,)))
    assert len(rows) == len(radio.LAWS) + 2
    assert rows[0][-2:] == ["1", "1"]
    for row in rows:
        assert float(row[3]) > 0


def test_means_have_their_standard_errors() -> None:
    assert radio._with_error([1.0, 3.0]) == "2 ± 1"
    assert radio._with_error([2.5]) == "2.5"
