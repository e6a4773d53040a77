"""Test the physical world of a scenario: sites, federations, and gains."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgefl.channel.path_loss.umi import UMi
from edgefl.engine.clock import Clock
from edgefl.scenario.world import World
from edgefl.testing.cell import within
from tests.refusals import refused_at
from tests.tools.journal import with_journal
from tests.unit.engine.air.worlds import world_of


def world(**sections: Any) -> World:
    return world_of(**with_journal({"devices": {"count": 50}, **sections}))


@pytest.mark.parametrize(
    ("layout", "federations"),
    [({}, 1), ({"rings": 1}, 7), ({"rings": 2}, 19), ({"rings": 1, "federations": "centre"}, 1)],
)
def test_which_cells_have_a_federation(layout: dict[str, Any], federations: int) -> None:
    spatial = {"propagation": {"shadowing": "spatial"}}
    assert world(layout=layout, radio=spatial).served == list(range(federations))


def test_devices_are_dropped_in_the_cell_or_over_the_whole_layout() -> None:
    single = np.linalg.norm(world().movement.positions_m(0.0), axis=1)
    assert 10 <= single.min() < single.max() <= 250
    several = world(layout={"rings": 1, "isd_m": 200}, radio={"propagation": {"shadowing": "spatial"}})
    assert np.linalg.norm(several.movement.positions_m(0.0), axis=1).max() <= 1.5 * 200


def test_a_place_keeps_its_shadowing_and_a_round_draws_its_own() -> None:
    positions_m = np.array([[60.0, 0.0], [0.0, 120.0]])
    for shadowing, same in (("spatial", True), ("round", False)):
        gains = world(radio={"propagation": {"shadowing": shadowing}}).gains
        first = gains.of_round(positions_m, [0, 1], 0, (1, "train", 1)).gains_db
        second = gains.of_round(positions_m, [0, 1], 0, (1, "train", 2)).gains_db
        assert np.array_equal(first, second) == same
        again = gains.of_round(positions_m, [0, 1], 0, (1, "train", 1)).gains_db
        assert np.array_equal(first, again), "gains do not depend on earlier requests"


def test_who_stands_still_is_measured_once_and_counted_each_round() -> None:
    gains = world(radio={"propagation": {"shadowing_std_db": 0}}).gains
    places_m = np.array([[60.0, 0.0], [0.0, 1.0]])  # the second place is below the smallest distance
    key = (1, "train", 1)
    first, again = gains.of_round(places_m, [0, 1], 0, key), gains.of_round(places_m, [0, 1], 0, key)
    assert np.array_equal(first.gains_db, again.gains_db)
    assert np.array_equal(first.distances_m, again.distances_m)
    assert gains.clamped == 2
    assert gains.of_round(places_m, [0], 0, key).distances_m.tolist() == [60.0], "other places than before"
    places_m[0, 0] = 30.0
    moved = gains.of_round(places_m, [0, 1], 0, key)
    assert moved.distances_m.tolist() == [30.0, 1.0]
    assert moved.gains_db[0] > first.gains_db[0]
    assert gains.clamped == 3


def shadowing_db(site_correlation: float, rings: int, positions_m: np.ndarray) -> np.ndarray:
    """Return the world's shadowing [places, sites], as the difference from the same world without shadowing."""
    propagation, found = {"shadowing": "spatial", "site_correlation": site_correlation}, []
    for further in ({"shadowing_std_db": 0}, {}):
        made = world(layout={"rings": rings, "isd_m": 200}, radio={"propagation": {**propagation, **further}})
        found.append(made.gains.power_db(positions_m))
    bare, shadowed = found
    return bare - shadowed


@pytest.mark.parametrize("site_correlation", [0.0, 0.5, 1.0])
def test_shadowing_towards_two_sites_has_their_correlation(site_correlation: float) -> None:
    """Over a disc of 300 m, the shadowing of two sites correlates as set, by default 0.5 (TR 36.942, TR 36.814)."""
    angle, radius = np.random.default_rng(1).random((2, 20_000))
    positions_m = 300 * np.sqrt(radius)[:, None] * np.exp(2j * np.pi * angle)[:, None].view(float)
    shadowing = shadowing_db(site_correlation, 1, positions_m) / UMi().shadowing_std_db(True)
    # products of two fields correlate by at most exp(-2 r / 10 m), so the disc has pi 300^2 / (2 pi 10^2 / 4)
    # independent products, of variance 1 + rho^2 each; all pairs count as one sample
    error = np.sqrt((1 + site_correlation**2) / (300**2 / 50))
    pairs = [(shadowing[:, i] * shadowing[:, j]).mean() for i in range(7) for j in range(i)]
    assert 4 * error < 0.14
    assert np.mean(pairs) == pytest.approx(site_correlation, abs=4 * error)
    # a common field does not change the standard deviation, whose error is 1 / sqrt(2 n), as for n normal numbers
    assert shadowing.std() == pytest.approx(1.0, abs=4 / np.sqrt(2 * (300**2 / 50)))


def gains_of_pair(**radio: Any) -> np.ndarray:
    """Return the gains [places, 2] with `nr` from places that are equally far from two sites 300 m apart."""
    across = np.stack([np.full(60, 150.0), np.linspace(-120, 120, 60)], axis=1)
    radio = within({"preset": "nr", "propagation": {"shadowing_std_db": 0}}, radio)
    made = world(layout={"sites": [[0, 0], [300, 0]], "radius_m": 450}, radio=radio)
    return made.gains.power_db(across)


def test_line_of_sight_towards_two_sites_is_shared_by_half_in_nr() -> None:
    by_itself, whole = (gains_of_pair(propagation={"los_site_correlation": share}) for share in (0.0, 1.0))
    assert np.allclose(whole[:, 0], whole[:, 1], atol=1e-3), "both sites have equal distances and states"
    assert np.ptp(by_itself, axis=1).max() > 10
    half = gains_of_pair()
    assert np.array_equal(half, gains_of_pair(propagation={"los_site_correlation": 0.5}))
    assert not np.array_equal(half, by_itself)


def test_a_single_site_shares_its_shadowing_with_nobody() -> None:
    positions_m = np.array([[60.0, 0.0], [0.0, 120.0]])
    alone, half = (shadowing_db(rho, 0, positions_m) for rho in (0.0, 0.5))
    assert np.array_equal(alone, half)


def test_a_links_shadowing_does_not_depend_on_who_takes_part() -> None:
    positions_m = np.array([[60.0, 0.0], [0.0, 120.0], [80.0, 80.0]])
    for shadowing in ("spatial", "round"):
        gains = world(radio={"propagation": {"shadowing": shadowing}}).gains
        everyone = gains.of_round(positions_m, [0, 1, 2], 0, (1, "train", 1))
        alone = gains.of_round(positions_m, [2], 0, (1, "train", 1))
        assert alone.gains_db[0] == everyone.gains_db[2]
        assert everyone.of([2]).gains_db[0] == alone.gains_db[0]


def test_populations_take_turns() -> None:
    three = world(devices={"count": 8, "populations": 3})
    first, second, third = {0, 1, 2}, {3, 4, 5}, {6, 7}
    assert [set(three.members(session)) for session in (1, 2, 3, 4)] == [first, second, third, first]
    assert world().members(1) is None
    pattern = {"name": "client_pattern", "sessions": [[0, 5]]}
    both = world(devices={"count": 8, "populations": 2, "churn": pattern})
    assert [set(both.members(session) or ()) for session in (1, 2)] == [{0}, {5}]


def test_populations_need_devices() -> None:
    # the cell of 0.2 km^2 has one or two devices
    few = world(devices={"density_per_km2": 5, "populations": 50})
    with refused_at("devices.populations", "seed 1", 50):
        few.members(1)


def test_without_shadowing_the_gain_is_the_path_loss() -> None:
    positions_m = np.array([[60.0, 0.0], [0.0, 4.0]])
    expected = -UMi().path_loss_db(np.array([60.0, 10.0]), carrier_hz=3.5e9)
    for shadowing in ("spatial", "round"):
        gains = world(radio={"propagation": {"shadowing": shadowing, "shadowing_std_db": 0}}).gains
        assert gains.of_round(positions_m, [0, 1], 0, (1, "train", 1)).gains_db == pytest.approx(expected)
        assert gains.clamped == 1, "4 m is clamped to the minimum distance, and counted"


def test_who_is_just_beyond_the_edge_takes_the_gain_there() -> None:
    """Until its next check, a device just beyond the fields or the model's range has the gain at the edge."""
    direction = np.array([0.6, 0.8])
    key = (1, "train", 1)
    inh = {"path_loss": "inh", "propagation": {"shadowing_std_db": 0.0}}
    ends_m = np.sqrt(150.0**2 - 2.0**2)  # horizontal distance at the end of InH's range of 150 m
    for edge_m, sections in [
        (250.0, {"radio": {"preset": "journal", "propagation": {"shadowing": "spatial"}}}),
        (ends_m, {"radio": inh, "cell": {"radius_m": 149.0}}),
    ]:
        gains = world(**sections).gains
        places_m = np.array([edge_m * (1 - 1e-12) * direction, (edge_m + 0.9) * direction])
        state = gains.of_round(places_m, [0, 1], 0, key)
        assert state.gains_db[1] == pytest.approx(state.gains_db[0], abs=1e-6)
        assert gains.beyond == 1
        assert np.array_equal(places_m[1], (edge_m + 0.9) * direction), "the caller's array has not changed"


def test_who_is_absent_or_beyond_the_border_is_not_measured() -> None:
    made = world(layout={"rings": 1, "isd_m": 200}, radio={"propagation": {"shadowing": "spatial"}})
    places_m = np.array([[np.nan, np.nan], [50.0, 20.0], [301.0, 0.0], [300.0, 0.0]])
    power_db = made.gains.power_db(places_m)
    assert np.isneginf(power_db[[0, 2]]).all()
    assert np.array_equal(power_db[[1, 3]], made.gains.power_db(places_m[[1, 3]]))
    assert np.isfinite(power_db[[1, 3]]).all()


def test_a_device_too_fast_for_the_slots_is_refused_at_the_key_of_its_speed(tmp_path: Path) -> None:
    """J0's argument 2 pi v fc tau / c must be below 2.405: v below 65.6 m/s at 3.5 GHz and 0.5 ms."""
    static = {"name": "static", "doppler_speed_m_s": 66.0}
    for keys, place in (
        ({"mobility": static}, "mobility"),
        ({"classes": {"a": {"mobility": static}}}, "classes.a.mobility"),
    ):
        with refused_at(
            f"devices.{place}.doppler_speed_m_s", "device 0 moves", "now 66", "radio.slot_s below 0.000497"
        ):
            world(devices={"count": 2, **keys}).radio(Clock())
    (tmp_path / "mm.csv").write_text("t,id,x,y\n0,ann,0,0\n0,bob,0,0\n1,ann,0,0\n1,bob,1000,0\n")
    trace = {"name": "trace", "path": str(tmp_path / "mm.csv")}
    remedies = "scale: 0.01 if x and y are in centimetres or 0.001 if in millimetres, or time_scale: 60"
    with refused_at(
        "devices.mobility.path", "mm.csv: device 1 (id bob) moves at 1,000 m/s", remedies
    ) as refusal:
        world(devices={"count": 2, "mobility": trace}).radio(Clock())
    assert "radio.slot_s" not in str(refusal.value), "no slot is short enough for wrong units"


@pytest.mark.parametrize("classes", [0, 1])
def test_a_wrong_row_that_makes_a_device_too_fast_is_named(tmp_path: Path, classes: int) -> None:
    """A walker at 1 m/s whose position at 50 s is 20 km off moves at 405 m/s on average."""
    rows = [f"{t},ann,{t + 20_000 * (t == 50)},0\n" for t in range(100)]
    (tmp_path / "far.csv").write_text("t,id,x,y\n" + "".join(rows))
    trace = {"count": 1, "mobility": {"name": "trace", "path": str(tmp_path / "far.csv")}}
    devices = {"classes": {"a": trace, "b": {"count": 1}}} if classes else trace
    row = "2 of 99 steps between samples are faster than a train, the first 20,001 m/s; correct or remove the row of"
    with refused_at("", "moves at 405", f"{row} 'ann' at 50 s") as refusal:
        world(devices=devices).radio(Clock())
    assert "scale" not in str(refusal.value)
