"""The radio's presets: what they fill, what wins, and that a written scenario gives the same one again."""

from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from edgefl.config import registry
from edgefl.engine.air.presets import NR
from edgefl.engine.air.radio_sections import TddSettings
from edgefl.engine.power_models.journal import JournalPower
from edgefl.engine.power_models.tr38840 import RECEIVE, SLEEPS, TR38840
from edgefl.scenario.scenario import Scenario, dump, load

SMALL = {
    "name": "small",
    "devices": {"count": 3},
    "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "workload": {"payload_bits": 1000, "flops_per_sample": 1},
}


def scenario(**sections: Any) -> Scenario:
    return Scenario.model_validate({**SMALL, **sections})


def test_nr_is_the_default() -> None:
    assert scenario() == scenario(radio={"preset": "nr"})


def test_nr_fills_what_is_left_out_and_nothing_else() -> None:
    filled = scenario(
        radio={"preset": "nr", "budget": {"noise_figure_db": 7.0}}, devices={"count": 3, "indoor_share": 0.25}
    )
    for section, values in NR.items():
        for key, value in values.items():
            given = {"noise_figure_db": 7.0, "indoor_share": 0.25}.get(key, value)
            has = attrgetter(f"{section}.{key}")(filled)
            if key == "power":
                assert type(has) is registry.get("power_models", given)
            else:
                assert has == (TddSettings(**given) if key == "tdd" else given)
    # 0.86 x 0.97 of the bits are payload, and a tenth of the blocks goes twice
    assert filled.radio.link.goodput == pytest.approx(0.86 * 0.97 / 1.1)


def test_nobody_is_indoors_where_there_are_no_walls() -> None:
    filled = scenario(cell={"radius_m": 100.0}, radio={"preset": "nr", "path_loss": "inh"})
    assert filled.devices.indoor_share == 0.0


def nr(**keys: Any) -> dict[str, Any]:
    return {"preset": "nr", **keys}


def test_bands_are_tdd_from_2_4_ghz_on_unless_the_scenario_says_none(tmp_path: Path) -> None:
    assert scenario(radio=nr()).radio.tdd == TddSettings(pattern="DDDSU")
    assert scenario(radio=nr(carrier_hz=2.4e9)).radio.tdd is not None
    assert scenario(radio=nr(carrier_hz=2.1e9)).radio.tdd is None
    assert scenario(radio=nr(tdd={"pattern": "DSUUU"})).radio.tdd == TddSettings(pattern="DSUUU")
    fdd = scenario(radio=nr(tdd=None))
    assert fdd.radio.tdd is None
    path = tmp_path / "scenario.yaml"
    path.write_text(dump(fdd))
    assert load(path).radio == fdd.radio


def test_cars_are_cars_unless_buildings_are_by_place() -> None:
    assert scenario(radio=nr()).devices.vehicle_above_m_s == 3.0
    by_place = {"count": 3, "indoors_by": "place"}
    assert scenario(radio=nr(), devices=by_place).devices.vehicle_above_m_s is None
    indoors = scenario(cell={"radius_m": 100.0}, radio=nr(path_loss="inh")).devices
    assert (indoors.vehicle_above_m_s, indoors.indoor_share) == (None, 0.0)


def test_a_scenario_that_describes_circuits_keeps_the_model_that_has_them() -> None:
    """nr's own power model has its own circuits, and would refuse these."""
    assert isinstance(scenario(radio=nr()).devices.power, TR38840)
    own = {"count": 3, "pa_efficiency": 0.4}
    assert isinstance(scenario(radio=nr(), devices=own).devices.power, JournalPower)
    classes = {"count": 3, "classes": {"meters": {"count": 1, "circuit_power_w": 0.05}, "others": {}}}
    assert isinstance(scenario(radio=nr(), devices=classes).devices.power, JournalPower)


def test_idle_power_is_deep_sleep_and_paging() -> None:
    """38.840: each 1.28 s one unit all the time, 450 units times ms to wake, and some 5 ms of listening at 100."""
    cycle_ms, deep = 1280.0, SLEEPS[0]
    assert deep.transition_unit_s == 0.45
    units = deep.units + (deep.transition_unit_s * 1e3 + 5 * RECEIVE / 3) / cycle_ms
    assert NR["devices"]["idle_power_w"] == pytest.approx(units * TR38840.unit_w, rel=0.05)


def test_what_cannot_go_together_is_not_filled_in() -> None:
    assert scenario(layout={"sectors": 3}, radio=nr()).layout.antenna_gain_dbi == 0.0
    whole = {"rates": "shannon"}
    assert scenario(radio=nr(link=whole)).radio.budget.uplink_p0_dbm is None
    assert scenario(radio=nr(link=whole, sharing="static")).radio.budget.uplink_p0_dbm == -80.0
    spread = nr(link=whole, budget={"uplink_power_over_share": "per_resource_block"})
    assert scenario(radio=spread).radio.budget.uplink_p0_dbm == -80.0
    shannon = scenario(radio=nr(link={"rates": "shannon"})).radio
    assert (
        shannon.link.downlink_layers,
        shannon.monitoring.coverage_margin_db,
    ) == (
        1,
        None,
    )
