"""Test that UMi agrees with two independent simulators (tests/golden/golden_umi.csv) and with its definition."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.channel.path_loss._tr38901 import breakpoint_distance_m
from edgefl.channel.path_loss.free_space import FreeSpace
from edgefl.channel.path_loss.umi import UMi

GOLDEN = Path(__file__).parents[3] / "golden" / "golden_umi.csv"
# ns-3 rounds c to 3e8 as edgefl does; only the rounding to six printed digits remains.
NS3_TOLERANCE_DB = 1e-5
# Sionna's exact c moves the breakpoint by 3e8 / 299,792,458, and PL2 by up to 19 log10 1.000692 = 0.0057 dB.
SIONNA_TOLERANCE_DB = 0.006
HEIGHTS = {"bs_height_m": 10.0, "ut_height_m": 1.5}
CARRIER_HZ = 3.5e9
LOG_GHZ = math.log10(3.5)
ROUNDING_DB = 1e-10
UMI, FREE_SPACE = UMi(), FreeSpace()


def golden_rows(source: str) -> dict[str, np.ndarray]:
    with GOLDEN.open() as file:
        lines = [line for line in file if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["source"] == source]
    assert len(rows) == 13
    return {
        key: np.array([float(row[key]) for row in rows])
        for key in rows[0]
        if key not in ("source", "version")
    }


@pytest.mark.parametrize(
    ("source", "tolerance_db"), [("ns3-cpp", NS3_TOLERANCE_DB), ("sionna-no-rt", SIONNA_TOLERANCE_DB)]
)
def test_umi_agrees_with_two_simulators(source: str, tolerance_db: float) -> None:
    golden = golden_rows(source)
    for line_of_sight, column in ((True, "pl_los_db"), (False, "pl_nlos_db")):
        loss = UMI.path_loss_db(golden["d2d_m"], carrier_hz=3.5e9, line_of_sight=line_of_sight)
        np.testing.assert_allclose(loss, golden[column], rtol=0, atol=tolerance_db)


def test_los_probability_agrees_with_sionna() -> None:
    golden = golden_rows("sionna-no-rt")
    np.testing.assert_allclose(UMI.los_probability(golden["d2d_m"]), golden["p_los"], rtol=0, atol=1e-9)


def test_los_probability_is_one_up_to_18_m_and_continuous_there() -> None:
    np.testing.assert_array_equal(UMI.los_probability([0.0, 10.0, 18.0]), 1.0)
    # as the slope just beyond 18 m is -1/18 (1 - e^-0.5), the probability falls by less than 1e-4 per mm
    assert 1 - 1e-4 < UMI.los_probability(18.001) < 1


def test_breakpoint_of_table_i_is_210_m() -> None:
    # 4 x (10 - 1) x (1.5 - 1) x 3.5e9 / 3e8
    assert breakpoint_distance_m(carrier_hz=3.5e9, **HEIGHTS) == pytest.approx(210.0, rel=1e-14)


def test_line_of_sight_can_differ_by_device() -> None:
    mixed = UMI.path_loss_db([100.0, 100.0], carrier_hz=3.5e9, line_of_sight=[True, False])
    # values of the golden table at 100 m
    np.testing.assert_allclose(mixed, [85.314189, 104.643832], rtol=0, atol=NS3_TOLERANCE_DB)


def test_umi_forgives_rounding_at_the_edge_of_its_range() -> None:
    just_inside = np.hypot(10.0 * math.cos(1.0), 10.0 * math.sin(1.0)) * (1 - 2e-16)
    UMI.path_loss_db([just_inside, 10.0, 5000.0], carrier_hz=3.5e9)


@given(distance=st.floats(10.0, 5000.0), carrier_hz=st.floats(0.5e9, 100e9))
def test_umi_loses_about_as_much_as_free_space_at_least(distance: float, carrier_hz: float) -> None:
    # 32.4 is 20 log10(4 pi 1e9 / 3e8) = 32.44 dB rounded
    free = FREE_SPACE.path_loss_db(distance, carrier_hz=carrier_hz)
    assert UMI.path_loss_db(distance, carrier_hz=carrier_hz) >= free - 0.05


def test_umi_is_pl1_up_to_the_breakpoint_and_pl2_beyond() -> None:
    # the maximum of the two lines must reproduce the table's case distinction
    distance = np.linspace(10, 5000, 4991)
    log_3d = np.log10(np.hypot(distance, 8.5))
    near = 32.4 + 21 * log_3d + 20 * LOG_GHZ
    far = 32.4 + 40 * log_3d + 20 * LOG_GHZ - 9.5 * math.log10(210**2 + 8.5**2)
    expected = np.where(distance <= 210, near, far)
    np.testing.assert_allclose(
        UMI.path_loss_db(distance, carrier_hz=CARRIER_HZ), expected, rtol=0, atol=ROUNDING_DB
    )
