"""UMa, InH and what belongs to a model, against the tables of TR 38.901 and an independent simulator."""

import dataclasses
import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channel import path_loss
from channel.path_loss import (
    breakpoint_distance_m,
    inh_path_loss_db,
    los_probability_inh,
    los_probability_uma,
    los_probability_umi,
    uma_path_loss_db,
)
from channel.path_loss_models import (
    FREE_SPACE,
    INH,
    PATH_LOSS_MODELS,
    UMA,
    UMI,
    PathLossModel,
    path_loss_model,
)

CARRIER_HZ = 3.5e9
LOG_GHZ = math.log10(3.5)
ROUNDING_DB = 1e-10

# ns-3 3.44 (the wheel ns3==3.44.post0): -CalcRxPower(0, bs, ut), shadowing off, AlwaysLos and NeverLos;
# 3.5 GHz; 2D distance in m -> LoS, NLoS in dB. Heights: UMa 25 m and 1.5 m, InH 3 m and 1 m.
NS3_UMA = {
    10: (69.83991585250035, 79.41501216207544),
    100: (83.13815667685238, 103.03752359006074),
    500: (98.26924226544836, 129.9158338083485),
    560: (99.34990280691983, 131.8354798974715),
    1000: (109.41189477469499, 141.66604604998784),
    3000: (128.49248246444088, 160.30778022286955),
}
NS3_INH = {
    0.5: (48.716925131940705, 48.716925131940705),
    5: (55.93110356883148, 58.85221596408687),
    50: (72.6795477942626, 95.93114161923206),
    149: (80.87816011246437, 114.08182669363251),
}


@pytest.mark.parametrize(("model", "golden"), [(UMA, NS3_UMA), (INH, NS3_INH)])
def test_agrees_with_ns3(model: PathLossModel, golden: dict[float, tuple[float, float]]) -> None:
    for state, line_of_sight in enumerate((True, False)):
        loss = model.path_loss_db(list(golden), carrier_hz=CARRIER_HZ, line_of_sight=line_of_sight)
        np.testing.assert_allclose(loss, [pair[state] for pair in golden.values()], rtol=0, atol=ROUNDING_DB)


def test_uma_by_hand() -> None:
    # h_BS - h_UT = 23.5 m, d'_BP = 4 x 24 x 0.5 x 3.5e9 / 3e8 = 560 m
    assert breakpoint_distance_m(carrier_hz=CARRIER_HZ, bs_height_m=25.0, ut_height_m=1.5) == pytest.approx(
        560
    )
    # d3D = hypot(d, 23.5): 42.1574, 102.7241, 1000.2761, 2000.1381
    log_3d = {d: math.log10(math.hypot(d, 23.5)) for d in (35, 100, 1000, 2000)}
    expected_los = [
        28 + 22 * log_3d[35] + 20 * LOG_GHZ,  # PL1: 74.6286
        28 + 22 * log_3d[100] + 20 * LOG_GHZ,  # PL1: 83.1382
        # PL2: 560^2 + 23.5^2 = 314152.25
        28 + 40 * log_3d[1000] + 20 * LOG_GHZ - 9 * math.log10(314152.25),  # 109.4119
        28 + 40 * log_3d[2000] + 20 * LOG_GHZ - 9 * math.log10(314152.25),  # 121.4495
    ]
    np.testing.assert_allclose(expected_los, [74.6286, 83.1382, 109.4119, 121.4495], rtol=0, atol=5e-5)
    # PL' = 13.54 + 39.08 log d3D + 20 log fc - 0.6 (h_UT - 1.5), above LoS everywhere here
    expected_nlos = [13.54 + 39.08 * log_3d[d] + 20 * LOG_GHZ for d in log_3d]
    for line_of_sight, expected in ((True, expected_los), (False, expected_nlos)):
        loss = uma_path_loss_db(list(log_3d), carrier_hz=CARRIER_HZ, line_of_sight=line_of_sight)
        np.testing.assert_allclose(loss, expected, rtol=0, atol=ROUNDING_DB)


def test_uma_devices_higher_up() -> None:
    # at 10 m: d'_BP = 4 x 24 x 9 x 3.5e9 / 3e8 = 10,080 m, so PL1; PL' is 0.6 x 8.5 = 5.1 dB lower
    log_3d = math.log10(math.hypot(700, 15))
    for line_of_sight, expected in (
        (True, 28 + 22 * log_3d + 20 * LOG_GHZ),
        (False, 13.54 + 39.08 * log_3d + 20 * LOG_GHZ - 5.1),
    ):
        loss = uma_path_loss_db(700.0, carrier_hz=CARRIER_HZ, line_of_sight=line_of_sight, ut_height_m=10.0)
        assert loss == pytest.approx(expected, abs=ROUNDING_DB)


def test_inh_by_hand() -> None:
    # d3D = hypot(d, 2): 2, 5.3852, 20.0998, 100.0200; LoS 32.4 + 17.3 log d3D + 20 log fc
    log_3d = [math.log10(math.hypot(d, 2)) for d in (0, 5, 20, 100)]
    expected_los = [32.4 + 17.3 * x + 20 * LOG_GHZ for x in log_3d]
    np.testing.assert_allclose(expected_los, [48.489, 55.931, 65.827, 77.883], rtol=0, atol=5e-4)
    # NLoS: 17.3 + 38.3 log d3D + 24.9 log fc, at least LoS: 42.377 < 48.489 at 2 m
    expected_nlos = [17.3 + 38.3 * x + 24.9 * LOG_GHZ for x in log_3d]
    assert expected_nlos[0] < expected_los[0]
    expected_nlos[0] = expected_los[0]
    for line_of_sight, expected in ((True, expected_los), (False, expected_nlos)):
        loss = inh_path_loss_db([0, 5, 20, 100], carrier_hz=CARRIER_HZ, line_of_sight=line_of_sight)
        np.testing.assert_allclose(loss, expected, rtol=0, atol=ROUNDING_DB)


def test_umi_is_pl1_up_to_the_breakpoint_and_pl2_beyond() -> None:
    # the table's own cases, which the greatest of its lines must reproduce
    distance = np.linspace(10, 5000, 4991)
    log_3d = np.log10(np.hypot(distance, 8.5))
    near = 32.4 + 21 * log_3d + 20 * LOG_GHZ
    far = 32.4 + 40 * log_3d + 20 * LOG_GHZ - 9.5 * math.log10(210**2 + 8.5**2)
    expected = np.where(distance <= 210, near, far)
    np.testing.assert_allclose(
        path_loss.umi_path_loss_db(distance, carrier_hz=CARRIER_HZ), expected, rtol=0, atol=ROUNDING_DB
    )


@given(carrier_hz=st.floats(0.5e9, 100e9), ut_height_m=st.floats(1.2, 13.0))
def test_uma_is_continuous_at_the_breakpoint(carrier_hz: float, ut_height_m: float) -> None:
    at = breakpoint_distance_m(carrier_hz=carrier_hz, bs_height_m=25.0, ut_height_m=ut_height_m)
    if not 10.1 <= at <= 4999.0:
        return
    sides = uma_path_loss_db(
        [at * (1 - 1e-9), at * (1 + 1e-9)], carrier_hz=carrier_hz, ut_height_m=ut_height_m
    )
    # slopes are below 40 dB per decade, 2e-8 dB over this step
    assert abs(sides[1] - sides[0]) < 1e-6


@pytest.mark.parametrize(
    ("model", "farthest_m"), [(UMI, 5000.0), (UMA, 5000.0), (INH, 149.9), (FREE_SPACE, 5e3)]
)
@pytest.mark.parametrize("carrier_hz", [0.5e9, 3.5e9, 100e9])
def test_loss_grows_with_distance_and_obstruction_never_helps(
    model: PathLossModel, farthest_m: float, carrier_hz: float
) -> None:
    distance = np.geomspace(10.0, farthest_m, 2000)
    los, nlos = (
        model.path_loss_db(distance, carrier_hz=carrier_hz, line_of_sight=state) for state in (True, False)
    )
    assert np.all(np.diff(los) > 0)
    assert np.all(np.diff(nlos) > 0)
    assert np.all(nlos >= los)


@pytest.mark.parametrize("distance", [9.99, 5000.1, math.nan, -20.0])
def test_uma_refuses_distances_outside_its_range(distance: float) -> None:
    with pytest.raises(ValueError, match=r"UMa path loss holds for distance_2d_m from 10 to 5000 m, got"):
        uma_path_loss_db(distance, carrier_hz=CARRIER_HZ)


def test_uma_refuses_heights_at_which_its_breakpoint_is_random() -> None:
    uma_path_loss_db(100.0, carrier_hz=CARRIER_HZ, ut_height_m=13.0)
    with pytest.raises(ValueError, match=r"ut_height_m must be at most 13 m in UMa, got 13\.1"):
        uma_path_loss_db(100.0, carrier_hz=CARRIER_HZ, ut_height_m=13.1)
    with pytest.raises(ValueError, match="ut_height_m must exceed the environment height"):
        uma_path_loss_db(100.0, carrier_hz=CARRIER_HZ, ut_height_m=1.0)


def test_inh_range_is_in_three_dimensions() -> None:
    # hypot(149.98, 2) = 149.993; hypot(150, 2) = 150.013
    inh_path_loss_db([0.0, 149.98], carrier_hz=CARRIER_HZ)
    with pytest.raises(
        ValueError, match=r"InH path loss holds for the 3D distance from 1 to 150 m, got 150\.013"
    ):
        inh_path_loss_db(150.0, carrier_hz=CARRIER_HZ)
    with pytest.raises(ValueError, match=r"from 1 to 150 m, got 0\.5"):
        inh_path_loss_db(0.3, carrier_hz=CARRIER_HZ, bs_height_m=1.4, ut_height_m=1.0)
    with pytest.raises(ValueError, match="distance_2d_m must be >= 0"):
        inh_path_loss_db(-5.0, carrier_hz=CARRIER_HZ)


@pytest.mark.parametrize("model", [UMI, UMA, INH])
def test_carrier_in_ghz_is_refused(model: PathLossModel) -> None:
    with pytest.raises(ValueError, match="carrier_hz must lie within"):
        model.path_loss_db(50.0, carrier_hz=3.5)


def test_los_probability_uma() -> None:
    np.testing.assert_array_equal(los_probability_uma([0.0, 18.0]), 1.0)
    # at 63 m: 18/63 + e^-1 (1 - 18/63) = 0.285714 + 0.367879 x 0.714286
    assert los_probability_uma(63.0) == pytest.approx(2 / 7 + 5 / 7 / math.e, rel=1e-12)
    # at 180 m: 0.1 + e^(-180/63) 0.9
    assert los_probability_uma(180.0) == pytest.approx(0.1 + 0.9 * math.exp(-180 / 63), rel=1e-12)
    # a macro site sees farther than a street canyon
    distance = np.linspace(19, 2000, 500)
    assert np.all(los_probability_uma(distance) > los_probability_umi(distance))


def test_los_probability_inh() -> None:
    np.testing.assert_array_equal(los_probability_inh([0.0, 1.2]), 1.0)
    # 1.2 + 4.7 = 5.9 m: e^-1; 6.5 + 32.6 = 39.1 m: 0.32 e^-1
    np.testing.assert_allclose(los_probability_inh([5.9, 39.1]), [1 / math.e, 0.32 / math.e], rtol=1e-12)
    np.testing.assert_array_equal(los_probability_inh([0.0, 5.0], open_office=True), 1.0)
    # 5 + 35.4 = 40.4 m: e^-0.5; 49 + 211.7 = 260.7 m: 0.54 e^-1
    np.testing.assert_allclose(
        los_probability_inh([40.4, 260.7], open_office=True), [math.exp(-0.5), 0.54 / math.e], rtol=1e-12
    )
    # the jumps between the table's pieces: e^(-5.3/4.7) - 0.32 = 0.0038, 0.54 - e^(-44/70.8) = 0.0028
    for at, open_office in ((6.5, False), (49.0, True)):
        sides = los_probability_inh([at * (1 - 1e-9), at * (1 + 1e-9)], open_office=open_office)
        assert 0.002 < abs(sides[1] - sides[0]) < 0.004
    with pytest.raises(ValueError, match="distance_2d_m"):
        los_probability_inh(-1.0)


def test_every_path_loss_has_its_model() -> None:
    functions = {
        name.removesuffix("_path_loss_db"): function
        for name, function in inspect.getmembers(path_loss, inspect.isfunction)
        if name.endswith("_path_loss_db")
    }
    assert set(PATH_LOSS_MODELS) == set(functions)
    for name, function in functions.items():
        model = path_loss_model(name)
        assert model.name == name
        assert model.path_loss_db is function
        defaults = {k: p.default for k, p in inspect.signature(function).parameters.items()}
        assert (model.bs_height_m, model.ut_height_m) == (defaults["bs_height_m"], defaults["ut_height_m"])


@pytest.mark.parametrize(
    ("name", "std_db", "correlation_m", "los_correlation_m"),
    [
        # Table 7.4.1-1; Table 7.5-6, rows SF; Table 7.6.3.1-2
        ("umi", (4.0, 7.82), (10.0, 13.0), 50.0),
        ("uma", (4.0, 6.0), (37.0, 50.0), 50.0),
        ("inh", (3.0, 8.03), (10.0, 6.0), 10.0),
    ],
)
def test_constants_are_the_standards(
    name: str, std_db: tuple[float, float], correlation_m: tuple[float, float], los_correlation_m: float
) -> None:
    model = path_loss_model(name)
    assert model.std_db == std_db
    assert (model.shadowing_std_db(True), model.shadowing_std_db(False)) == std_db
    assert model.correlation_m == correlation_m
    assert model.los_correlation_m == los_correlation_m


def test_a_model_is_frozen_and_an_unknown_one_an_error() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        UMI.los_correlation_m = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="no path-loss model 'rma'; known: free_space, inh, uma, umi"):
        path_loss_model("rma")


def test_free_space_is_always_in_sight_and_has_no_shadowing() -> None:
    np.testing.assert_array_equal(FREE_SPACE.los_probability([1.0, 1e6]), 1.0)
    assert FREE_SPACE.std_db == (0.0, 0.0)
