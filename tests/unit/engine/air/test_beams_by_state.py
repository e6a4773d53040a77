"""Test beam gain with and without line of sight, and indoors, and each link's share of power in line of sight."""

from typing import Any

import numpy as np
import pytest
import simpy

from edgefl.channel.units import db_to_linear
from edgefl.engine.air.gains import LargeScaleState, SpatialGains
from edgefl.engine.air.measurements import Measurements
from edgefl.engine.air.radio import Radio
from tests.unit.engine.air.worlds import world_of

COUNT, KEY = 200, (1, "train", 1)
IN_SIGHT_DB, NLOS_DB = 14.0, 8.0
SINGLE = 2e-3  # rounding error of a survey in single precision
LAYOUTS: tuple[dict[str, Any], ...] = (
    {},
    {"rings": 1, "isd_m": 300},
    {"rings": 1, "isd_m": 300, "sectors": 3},
)


def world(state: str, layout: dict[str, Any] | None = None, indoors: float = 0.0, **budget: Any) -> Any:
    keys = {"array_gain_db": IN_SIGHT_DB, "nlos_array_gain_db": NLOS_DB, **budget}
    return world_of(
        seed=4,
        devices={"count": COUNT, "indoor_share": indoors, "indoors_by": "place"},
        layout=layout or {},
        radio={
            "preset": "nr",
            "propagation": {"line_of_sight": state, "shadowing_std_db": 0.0},
            "budget": keys,
            "neighbour_load": 0.3 if layout else 0.0,
        },
    )


def states(one: Any) -> dict[str, LargeScaleState]:
    """Return the states of all devices' links to cell 0, from each of the three methods that compute them."""
    gains: SpatialGains = one.gains
    places_m, ids = one.movement.positions_m(0.0), list(range(COUNT))
    cells = np.zeros(COUNT, dtype=int)
    survey = Measurements(one.scenario.layout.cells, gains.power_db_of).survey(places_m)
    return {
        "round": gains.of_round(places_m, ids, 0, KEY),
        "links": gains.of_links(places_m, np.arange(COUNT), cells),
        "survey": gains.of_survey(survey, ids, cells),
    }


@pytest.mark.parametrize("layout", LAYOUTS, ids=["one", "seven", "sectors"])
def test_the_share_in_sight_is_that_of_the_two_gains_that_add_up(layout: dict[str, Any]) -> None:
    """38.901, eq. (7.6-19): a soft gain is s^2 times the line-of-sight gain plus (1 - s^2) times the NLoS gain."""
    soft, in_sight, without = (states(world(state, layout)) for state in ("soft", "always", "never"))
    for way, state in soft.items():
        total, los, nlos = (db_to_linear(of[way].gains_db) for of in (soft, in_sight, without))
        apart = los > nlos * 1.1  # near the site both states have equal loss, which hides the weight
        assert apart.sum() > COUNT / 2
        weight = (total - nlos)[apart] / (los - nlos)[apart]
        assert state.in_sight is not None
        shares = state.in_sight[apart]
        assert shares == pytest.approx(weight * los[apart] / total[apart], abs=5e-3)
        assert 0.05 < shares.mean() < 0.95
        assert in_sight[way].in_sight == pytest.approx(np.ones(COUNT))
        assert without[way].in_sight == pytest.approx(np.zeros(COUNT))
        assert state.in_sight == pytest.approx(soft["round"].in_sight, abs=SINGLE)
        some = state.of([3, 17, 90])
        assert some.in_sight == pytest.approx(state.in_sight[[3, 17, 90]])


def radio_of(one: Any) -> Radio:
    radio: Radio = one.radio(simpy.Environment())
    return radio


@pytest.mark.parametrize("state", ["always", "never", "probabilistic"])
def test_a_link_has_the_gain_of_its_state(state: str) -> None:
    one, plain = world(state), world(state, array_gain_db=0.0, nlos_array_gain_db=0.0)
    radio, bare = radio_of(one), radio_of(plain)
    places_m, ids = one.movement.positions_m(0.0), list(range(COUNT))
    of = radio.gains.of_round(places_m, ids, 0, KEY)
    sees = np.full(COUNT, state == "always")
    if state == "probabilistic":
        sees = one.gains.large_scale.line_of_sight(places_m)[:, 0]
        assert 0.1 < sees.mean() < 0.9
    with_beam, without = radio.budget.snr(of), bare.budget.snr(bare.gains.of_round(places_m, ids, 0, KEY))
    for direction in ("downlink", "uplink"):
        gain_db = 10 * np.log10(with_beam[direction] / without[direction])  # type: ignore[index]
        assert gain_db == pytest.approx(np.where(sees, IN_SIGHT_DB, NLOS_DB), abs=1e-9)


def test_walls_hide_the_direct_path() -> None:
    """An indoor device has the gain without line of sight even in a street with it; the coverage check agrees."""
    one = world("always", indoors=0.5)
    radio = radio_of(one)
    places_m, ids = one.movement.positions_m(0.0), np.arange(COUNT)
    inside = one.walls(radio.env).loss_db(places_m, ids) != 0
    assert 0.3 < inside.mean() < 0.7
    of = radio.gains.of_links(places_m, ids, np.zeros(COUNT, dtype=int))
    gain_db = 10 * np.log10(radio.budget.array_gain(of))
    assert gain_db == pytest.approx(np.where(inside, NLOS_DB, IN_SIGHT_DB), abs=1e-9)
    # with this interference margin, and full power, some devices have a link only because of the beam
    loud = {"interference_margin_db": 33.0, "uplink_p0_dbm": None}
    covered, fewer = (
        radio_of(world("always", indoors=0.5, nlos_array_gain_db=nlos_db, **loud)).coverage.among(  # type: ignore[union-attr]
            0, ids, places_m
        )
        for nlos_db in (NLOS_DB, 0.0)
    )
    assert covered[inside].sum() > fewer[inside].sum() > 0
    assert (covered[~inside] == fewer[~inside]).all()


def test_interference_has_no_beam() -> None:
    layout = LAYOUTS[1]
    one, plain = (
        radio_of(world("probabilistic", layout, **keys))
        for keys in ({}, {"array_gain_db": 0.0, "nlos_array_gain_db": 0.0})
    )
    places_m = world("probabilistic", layout).movement.positions_m(0.0)
    of = [radio.gains.of_round(places_m, list(range(COUNT)), 0, KEY) for radio in (one, plain)]
    assert one.budget.downlink_levels(of[0]) == pytest.approx(plain.budget.downlink_levels(of[1]))


def test_without_a_second_number_all_links_have_one() -> None:
    radio = radio_of(world("soft", nlos_array_gain_db=None))
    places_m = np.array([[30.0, 40.0]] * COUNT)
    of = radio.gains.of_links(places_m, np.arange(COUNT), np.zeros(COUNT, dtype=int))
    assert of.in_sight is None
    assert radio.budget.array_gain(of) == pytest.approx(10 ** (IN_SIGHT_DB / 10))


def test_a_link_drawn_by_round_has_its_state_too() -> None:
    """With shadowing drawn for each round, either all links or no links have line of sight."""
    for state, gain_db in (("always", IN_SIGHT_DB), ("never", NLOS_DB)):
        keys = {"array_gain_db": IN_SIGHT_DB, "nlos_array_gain_db": NLOS_DB}
        one = world_of(
            devices={"count": 3},
            radio={"preset": "journal", "propagation": {"line_of_sight": state}, "budget": keys},
        )
        radio = radio_of(one)
        of = radio.gains.of_round(one.movement.positions_m(0.0), [0, 1, 2], 0, KEY)
        assert 10 * np.log10(radio.budget.array_gain(of)) == pytest.approx(np.full(3, gain_db), abs=1e-9)


def test_a_devices_own_antennas_gain_in_both_directions_and_nothing_of_others() -> None:
    """An antenna gain of -3 dB in one class lowers both directions of that class's links, but not interference."""
    classes = {"small": {"share": 0.5, "array_gain_db": -3.0}, "phones": {}}
    layout = {"sites": [[0, 0], [400, 0]], "radius_m": 300.0}
    shared = {"devices": {"count": 8, "classes": classes}, "layout": layout, "radio": {"neighbour_load": 0.3}}
    one, plain = world_of(**shared), world_of(**{**shared, "devices": {"count": 8}})
    radios = [radio_of(each) for each in (one, plain)]
    places_m, ids = one.movement.positions_m(0.0), list(range(8))
    of = [radio.gains.of_round(places_m, ids, 0, KEY) for radio in radios]
    small = one.fleet.of == 0
    assert 0 < small.sum() < 8
    snr, bare = (radio.budget.snr(state) for radio, state in zip(radios, of, strict=True))
    for direction in ("downlink", "uplink"):
        gain_db = 10 * np.log10(snr[direction] / bare[direction])  # type: ignore[index]
        assert gain_db == pytest.approx(np.where(small, -3.0, 0.0), abs=1e-9)
    heard, other = (radio.budget.downlink_levels(state) for radio, state in zip(radios, of, strict=True))
    assert heard == pytest.approx(other)
