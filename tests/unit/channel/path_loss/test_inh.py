"""Test that InH agrees with the table of TR 38.901 and with an independent simulator."""

import math

import numpy as np

from edgefl.channel.path_loss.inh import InH

CARRIER_HZ = 3.5e9
LOG_GHZ = math.log10(3.5)
ROUNDING_DB = 1e-10
INH = InH()
# ns-3 3.44 (the wheel ns3==3.44.post0): -CalcRxPower(0, bs, ut), shadowing off, AlwaysLos and NeverLos;
# 3.5 GHz; 2D distance in m -> LoS, NLoS in dB. Heights: 3 m and 1 m.
NS3 = {
    0.5: (48.716925131940705, 48.716925131940705),
    5: (55.93110356883148, 58.85221596408687),
    50: (72.6795477942626, 95.93114161923206),
    149: (80.87816011246437, 114.08182669363251),
}


def test_inh_agrees_with_ns3() -> None:
    for state, line_of_sight in enumerate((True, False)):
        loss = INH.path_loss_db(list(NS3), carrier_hz=CARRIER_HZ, line_of_sight=line_of_sight)
        np.testing.assert_allclose(loss, [pair[state] for pair in NS3.values()], rtol=0, atol=ROUNDING_DB)


def test_inh_by_hand() -> None:
    # d3D = hypot(d, 2): 2, 5.3852, 20.0998, 100.0200; LoS 32.4 + 17.3 log d3D + 20 log fc
    log_3d = [math.log10(math.hypot(d, 2)) for d in (0, 5, 20, 100)]
    expected_los = [32.4 + 17.3 * x + 20 * LOG_GHZ for x in log_3d]
    np.testing.assert_allclose(expected_los, [48.489, 55.931, 65.827, 77.883], rtol=0, atol=5e-4)
    # NLoS: 17.3 + 38.3 log d3D + 24.9 log fc, but no less than LoS, as at 2 m: 42.377 < 48.489
    expected_nlos = [17.3 + 38.3 * x + 24.9 * LOG_GHZ for x in log_3d]
    assert expected_nlos[0] < expected_los[0]
    expected_nlos[0] = expected_los[0]
    for line_of_sight, expected in ((True, expected_los), (False, expected_nlos)):
        loss = INH.path_loss_db([0, 5, 20, 100], carrier_hz=CARRIER_HZ, line_of_sight=line_of_sight)
        np.testing.assert_allclose(loss, expected, rtol=0, atol=ROUNDING_DB)


def test_inh_range_is_in_three_dimensions() -> None:
    # hypot(149.98, 2) = 149.993; hypot(150, 2) = 150.013
    INH.path_loss_db([0.0, 149.98], carrier_hz=CARRIER_HZ)


def test_los_probability_inh() -> None:
    np.testing.assert_array_equal(INH.los_probability([0.0, 1.2]), 1.0)
    # 1.2 + 4.7 = 5.9 m: e^-1; 6.5 + 32.6 = 39.1 m: 0.32 e^-1
    np.testing.assert_allclose(INH.los_probability([5.9, 39.1]), [1 / math.e, 0.32 / math.e], rtol=1e-12)
    # the table's pieces differ by a jump of e^(-5.3/4.7) - 0.32 = 0.0038
    sides = INH.los_probability([6.5 * (1 - 1e-9), 6.5 * (1 + 1e-9)])
    assert 0.002 < abs(sides[1] - sides[0]) < 0.004
