"""Test the radio's presets: the keys that they set, which values take precedence, and a YAML round trip."""

from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from edgefl.channel.beams import beam_gain_db
from edgefl.config import registry
from edgefl.engine.air.presets import NR
from edgefl.engine.air.radio_sections import TddSettings
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.power_models.journal import JournalPower
from edgefl.engine.power_models.tr38840 import RECEIVE, SLEEPS, TR38840
from edgefl.engine.records import Round
from edgefl.scenario.scenario import Scenario, dump, load
from edgefl.testing import small_world
from tests.refusals import refused_at

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
    # 0.86 x 0.97 of the bits are payload, and a tenth of the blocks is sent twice
    assert filled.radio.link.goodput == pytest.approx(0.86 * 0.97 / 1.1)


def test_nobody_is_indoors_where_there_are_no_walls() -> None:
    filled = scenario(cell={"radius_m": 100.0}, radio={"preset": "nr", "path_loss": "inh"})
    assert filled.devices.indoor_share == 0.0


def nr(**keys: Any) -> dict[str, Any]:
    return {"preset": "nr", **keys}


# 38.101-1, Table 5.2-1: the middle of each direction's range, in MHz
@pytest.mark.parametrize(
    ("band", "downlink_mhz", "uplink_mhz"),
    [
        ("n1", 2140, 1950),
        ("n3", 1842.5, 1747.5),
        ("n5", 881.5, 836.5),
        ("n7", 2655, 2535),
        ("n8", 942.5, 897.5),
        ("n20", 806, 847),
        ("n28", 780.5, 725.5),
        ("n66", 2155, 1745),
        ("n71", 634.5, 680.5),
        ("n38", 2595, None),
        ("n40", 2350, None),
        ("n48", 3625, None),
        ("n77", 3750, None),
        ("n78", 3550, None),
        ("n79", 4700, None),
    ],
)
def test_a_band_with_both_directions_apart_has_no_frame(
    band: str, downlink_mhz: float, uplink_mhz: float | None
) -> None:
    for carrier_mhz in filter(None, (downlink_mhz, uplink_mhz)):
        radio = scenario(radio=nr(carrier_hz=carrier_mhz * 1e6)).radio
        assert (radio.tdd is None) == (uplink_mhz is not None), band
        tdd = scenario(radio=nr(carrier_hz=carrier_mhz * 1e6, tdd={})).radio.tdd
        assert tdd == TddSettings(pattern="DDDSU")


def test_a_band_is_tdd_unless_the_scenario_says_none(tmp_path: Path) -> None:
    assert scenario(radio=nr()).radio.tdd == TddSettings(pattern="DDDSU")
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
    """The power model of nr includes circuits, and would refuse the scenario's circuit keys."""
    assert isinstance(scenario(radio=nr()).devices.power, TR38840)
    own = {"count": 3, "pa_efficiency": 0.4}
    assert isinstance(scenario(radio=nr(), devices=own).devices.power, JournalPower)
    classes = {"count": 3, "classes": {"meters": {"count": 1, "circuit_power_w": 0.05}, "others": {}}}
    assert isinstance(scenario(radio=nr(), devices=classes).devices.power, JournalPower)


def test_idle_power_is_deep_sleep_and_paging() -> None:
    """By 38.840, a cycle of 1.28 s takes 1 unit throughout, 450 unit-ms to wake, and 5 ms of 100 units to listen."""
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
    assert (shannon.link.downlink_layers, shannon.monitoring.coverage_margin_db) == (1, None)


# ---- sites by type


@pytest.mark.parametrize(
    ("radio", "power_dbm"),
    [
        ({}, 44.0),  # 24 dBm per MHz
        ({"bandwidth_hz": 20e6}, 37.0),
        ({"path_loss": "uma"}, 53.0),  # 33 dBm per MHz
        ({"path_loss": {"name": "uma"}, "bandwidth_hz": 10e6, "carrier_hz": 0.7e9}, 43.0),
        ({"path_loss": "inh"}, 31.0),  # 24 dBm in 20 MHz
        ({"path_loss": registry.get("path_loss", "uma")()}, 53.0),
        ({"path_loss": "free_space"}, 44.0),  # belongs to no site type
        ({"path_loss": "uma", "budget": {"server_power_dbm": 46.0}}, 46.0),
        ({"preset": "journal", "path_loss": "uma"}, 43.0),
    ],
)
def test_a_site_is_as_strong_as_its_kind_and_its_band(radio: dict[str, Any], power_dbm: float) -> None:
    assert RadioSettings(**radio).budget.server_power_dbm == power_dbm


def test_the_servers_joules_are_those_of_its_power() -> None:
    """A site with 10 times the power uses 10 times the energy for a downlink in the same slots."""
    energy_j = []
    for power_dbm in (30.0, 40.0):
        radio = {
            "preset": "journal",
            "link": {"max_efficiency": 1e-3},
            "budget": {"server_power_dbm": power_dbm},
        }
        small = small_world([50.0], radio=radio).run()
        (row,) = small.rows.of[Round]
        energy_j.append(row.energy_server_j)
    assert energy_j[1] == pytest.approx(10 * energy_j[0])


@pytest.mark.parametrize(
    ("radio", "gains_db"),
    [
        ({}, (14.5, 9.5)),
        ({"path_loss": "uma"}, (14.5, 8.6)),
        (
            {"budget": {"array_gain_db": 20.0}},
            (20.0, 15.0),
        ),  # without line of sight, the gain is 5 dB less, as with the gains of `nr`
        ({"budget": {"array_gain_db": 0.0}}, (0.0, 0.0)),
        ({"budget": {"nlos_array_gain_db": None}}, (14.5, None)),
        ({"preset": "journal"}, (0.0, None)),
    ],
)
def test_beams_follow_from_the_spread_of_the_path_loss(
    radio: dict[str, Any], gains_db: tuple[float, float | None]
) -> None:
    budget = RadioSettings(**radio).budget
    assert (budget.array_gain_db, budget.nlos_array_gain_db) == gains_db
    if not radio:
        spreads = registry.get("path_loss", "umi")().spreads(3.5e9)
        assert gains_db == pytest.approx([beam_gain_db(each) for each in spreads], abs=0.05)


@pytest.mark.parametrize(
    ("radio", "parts"),
    [
        ({}, 11),  # about 2 W d, with a delay spread d of 50 ns
        ({"bandwidth_hz": 20e6}, 3),
        ({"bandwidth_hz": 5e6}, 1),
        ({"propagation": {"line_of_sight": "never"}}, 22),  # 103 ns
        ({"path_loss": "uma"}, 20),  # 93 ns
        ({"path_loss": "inh"}, 5),  # 20 ns
        ({"link": {"frequency_taps": 4}}, 4),
        ({"link": {"rates": "shannon"}, "monitoring": {"coverage_margin_db": None}}, 1),
        ({"preset": "journal"}, 1),
    ],
)
def test_parts_of_the_band_follow_from_its_width_and_the_spread_of_delays(
    radio: dict[str, Any], parts: int
) -> None:
    assert RadioSettings(**radio).link.frequency_taps == parts


# ---- above 7.125 GHz

FR2: dict[str, Any] = {"carrier_hz": 28e9, "slot_s": 0.125e-3}
OWN = {"array_gain_db": 24.0, "nlos_array_gain_db": 14.0, "server_power_dbm": 37.0}


def test_nr_has_nothing_of_its_own_in_fr2() -> None:
    """One error names all missing keys; FR2 is valid with these keys or preset journal; 7.125 GHz needs none."""
    lacking = [*(f"radio.budget.{key}" for key in OWN), "devices.power"]
    with refused_at("radio.carrier_hz", *lacking, "blockage"):
        scenario(radio=FR2)
    some = {key: value for key, value in OWN.items() if key != "nlos_array_gain_db"}
    with refused_at("radio.carrier_hz", "radio.budget.nlos_array_gain_db, devices.power"):
        scenario(radio={**FR2, "budget": some})
    own = scenario(radio={**FR2, "budget": OWN}, devices={"count": 3, "power": "journal"})
    assert own.radio.budget.nlos_array_gain_db == 14.0
    assert scenario(radio={"carrier_hz": 7.125e9}).radio.budget.array_gain_db > 14.0
    assert scenario(radio={**FR2, "preset": "journal"}).radio.budget.array_gain_db == 0.0


def test_what_ran_in_fr2_is_read_again(tmp_path: Path) -> None:
    own = scenario(radio={**FR2, "budget": OWN}, devices={"count": 3, "power": "journal"})
    path = tmp_path / "scenario.yaml"
    path.write_text(dump(own))
    assert dump(load(path)) == dump(own)
