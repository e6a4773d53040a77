"""Test properties of every path-loss model."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.channel.path_loss import PathLoss
from edgefl.channel.path_loss._tr38901 import breakpoint_distance_m
from edgefl.channel.path_loss.free_space import FreeSpace
from edgefl.channel.path_loss.inh import InH
from edgefl.channel.path_loss.uma import UMa
from edgefl.channel.path_loss.umi import UMi

UMI, UMA, INH, FREE_SPACE = UMi(), UMa(), InH(), FreeSpace()


@pytest.mark.parametrize(
    ("model", "farthest_m"), [(UMI, 5000.0), (UMA, 5000.0), (INH, 149.9), (FREE_SPACE, 5e3)]
)
@pytest.mark.parametrize("carrier_hz", [0.5e9, 3.5e9, 100e9])
def test_loss_grows_with_distance_and_obstruction_never_helps(
    model: PathLoss, farthest_m: float, carrier_hz: float
) -> None:
    distance = np.geomspace(10.0, farthest_m, 2000)
    los, nlos = (
        model.path_loss_db(distance, carrier_hz=carrier_hz, line_of_sight=state) for state in (True, False)
    )
    assert np.all(np.diff(los) > 0)
    assert np.all(np.diff(nlos) > 0)
    assert np.all(nlos >= los)


@pytest.mark.parametrize(("model", "highest_m"), [(UMI, 22.5), (UMA, 13.0)])
@given(carrier_hz=st.floats(0.5e9, 100e9), share=st.floats(0.0, 1.0))
def test_loss_is_continuous_at_the_breakpoint(
    model: PathLoss, highest_m: float, carrier_hz: float, share: float
) -> None:
    at_m = 1.2 + share * (highest_m - 1.2)
    at = breakpoint_distance_m(carrier_hz=carrier_hz, bs_height_m=model.bs_height_m, ut_height_m=at_m)
    if not 10.1 <= at <= 4999.0:
        return
    sides = model.path_loss_db([at * (1 - 1e-9), at * (1 + 1e-9)], carrier_hz=carrier_hz, ut_height_m=at_m)
    # for UMi, PL2 - PL1 at the breakpoint is 19 log10(d3D) - 9.5 log10(d_BP^2 + dh^2) = 0; slopes are below 5 dB/m
    assert abs(sides[1] - sides[0]) < 1e-6


@pytest.mark.parametrize(
    ("model", "std_db", "correlation_m", "los_correlation_m", "heights_m"),
    [
        # Table 7.4.1-1; Table 7.5-6, rows SF; Table 7.6.3.1-2; Tables 7.2-1 and 7.2-2
        (UMI, (4.0, 7.82), (10.0, 13.0), 50.0, (10.0, 1.5)),
        (UMA, (4.0, 6.0), (37.0, 50.0), 50.0, (25.0, 1.5)),
        (INH, (3.0, 8.03), (10.0, 6.0), 10.0, (3.0, 1.0)),
    ],
)
def test_constants_are_the_standards(
    model: PathLoss,
    std_db: tuple[float, float],
    correlation_m: tuple[float, float],
    los_correlation_m: float,
    heights_m: tuple[float, float],
) -> None:
    assert model.std_db == std_db
    assert (model.shadowing_std_db(True), model.shadowing_std_db(False)) == std_db
    assert model.correlation_m == correlation_m
    assert model.los_correlation_m == los_correlation_m
    assert (model.bs_height_m, model.ut_height_m) == heights_m
    at_these = {"carrier_hz": 3.5e9, "bs_height_m": heights_m[0], "ut_height_m": heights_m[1]}
    assert model.path_loss_db(50.0, carrier_hz=3.5e9) == model.path_loss_db(50.0, **at_these)


@pytest.mark.parametrize(
    ("model", "heights_m", "range_m"),
    [
        (UMI, (10.0, 1.5), (10.0, 5000.0)),
        (UMA, (25.0, 1.5), (10.0, 5000.0)),
        (INH, (3.0, 1.0), (0.0, math.sqrt(150**2 - 2**2))),  # 1 m to 150 m in 3D
        (INH, (1.4, 1.0), (math.sqrt(1 - 0.4**2), math.sqrt(150**2 - 0.4**2))),
        (FREE_SPACE, (10.0, 1.5), (10.0, math.inf)),
    ],
)
def test_a_model_holds_at_the_ends_of_its_range(
    model: PathLoss, heights_m: tuple[float, float], range_m: tuple[float, float]
) -> None:
    heights = {"bs_height_m": heights_m[0], "ut_height_m": heights_m[1]}
    assert model.range_2d_m(**heights) == pytest.approx(range_m)
    ends = [end for end in model.range_2d_m(**heights) if end < math.inf]
    assert np.all(np.isfinite(model.path_loss_db(ends, carrier_hz=3.5e9, **heights)))
