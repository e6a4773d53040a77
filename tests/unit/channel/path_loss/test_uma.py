"""Test that UMa agrees with the table of TR 38.901 and with an independent simulator."""

import math

import numpy as np
import pytest

from edgefl.channel.path_loss._tr38901 import breakpoint_distance_m
from edgefl.channel.path_loss.uma import UMa
from edgefl.channel.path_loss.umi import UMi

CARRIER_HZ = 3.5e9
LOG_GHZ = math.log10(3.5)
ROUNDING_DB = 1e-10
UMA, UMI = UMa(), UMi()
# ns-3 3.44 (the wheel ns3==3.44.post0): -CalcRxPower(0, bs, ut), shadowing off, AlwaysLos and NeverLos;
# 3.5 GHz; 2D distance in m -> LoS, NLoS in dB. Heights: 25 m and 1.5 m.
NS3 = {
    10: (69.83991585250035, 79.41501216207544),
    100: (83.13815667685238, 103.03752359006074),
    500: (98.26924226544836, 129.9158338083485),
    560: (99.34990280691983, 131.8354798974715),
    1000: (109.41189477469499, 141.66604604998784),
    3000: (128.49248246444088, 160.30778022286955),
}


def test_uma_agrees_with_ns3() -> None:
    for state, line_of_sight in enumerate((True, False)):
        loss = UMA.path_loss_db(list(NS3), carrier_hz=CARRIER_HZ, line_of_sight=line_of_sight)
        np.testing.assert_allclose(loss, [pair[state] for pair in NS3.values()], rtol=0, atol=ROUNDING_DB)


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
        loss = UMA.path_loss_db(list(log_3d), carrier_hz=CARRIER_HZ, line_of_sight=line_of_sight)
        np.testing.assert_allclose(loss, expected, rtol=0, atol=ROUNDING_DB)


def test_uma_devices_higher_up() -> None:
    # at 10 m: d'_BP = 4 x 24 x 9 x 3.5e9 / 3e8 = 10,080 m, so PL1 holds; PL' is 0.6 x 8.5 = 5.1 dB lower
    log_3d = math.log10(math.hypot(700, 15))
    for line_of_sight, expected in (
        (True, 28 + 22 * log_3d + 20 * LOG_GHZ),
        (False, 13.54 + 39.08 * log_3d + 20 * LOG_GHZ - 5.1),
    ):
        loss = UMA.path_loss_db(700.0, carrier_hz=CARRIER_HZ, line_of_sight=line_of_sight, ut_height_m=10.0)
        assert loss == pytest.approx(expected, abs=ROUNDING_DB)


def test_los_probability_uma() -> None:
    np.testing.assert_array_equal(UMA.los_probability([0.0, 18.0]), 1.0)
    # at 63 m: 18/63 + e^-1 (1 - 18/63) = 0.285714 + 0.367879 x 0.714286
    assert UMA.los_probability(63.0) == pytest.approx(2 / 7 + 5 / 7 / math.e, rel=1e-12)
    # at 180 m: 0.1 + e^(-180/63) 0.9
    assert UMA.los_probability(180.0) == pytest.approx(0.1 + 0.9 * math.exp(-180 / 63), rel=1e-12)
    # a macro site has line of sight over larger distances than a street canyon
    distance = np.linspace(19, 2000, 500)
    assert np.all(UMA.los_probability(distance) > UMI.los_probability(distance))
