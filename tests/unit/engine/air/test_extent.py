"""Test the extent of a scenario's world, the heights of its antennas, and distances that its path loss refuses."""

import math
from typing import Any

import numpy as np
import pytest

from edgefl.channel.path_loss import PathLoss
from edgefl.channel.path_loss.inh import InH
from edgefl.channel.path_loss.uma import UMa
from edgefl.channel.path_loss.umi import UMi
from edgefl.rng import Streams
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from tests.tools.journal import with_journal

BASE: dict[str, Any] = {
    "name": "w",
    "devices": {"count": 4},
    "sessions": {"name": "schedule", "count": 1, "rounds": 2},
    "workload": {"payload_bits": 100_000, "flops_per_sample": 1000},
}


def scenario(**sections: Any) -> Scenario:
    return Scenario.model_validate(with_journal({**BASE, **sections}))


@pytest.mark.parametrize(
    ("name", "model", "radius_m", "heights_m", "nearest_m"),
    # TR 38.901, Tables 7.2-1 and 7.2-2 (heights), 7.4.1-1 (distances; InH from 1 m in 3D: any 2D)
    [
        ("umi", UMi(), 250.0, (10.0, 1.5), 10.0),
        ("uma", UMa(), 250.0, (25.0, 1.5), 10.0),
        ("inh", InH(), 100.0, (3.0, 1.0), 0.0),
    ],
)
@pytest.mark.parametrize("shadowing", ["round", "spatial"])
def test_heights_and_the_smallest_distance_are_the_path_losss(
    name: str,
    model: PathLoss,
    radius_m: float,
    heights_m: tuple[float, float],
    nearest_m: float,
    shadowing: str,
) -> None:
    made = scenario(
        cell={"radius_m": radius_m},
        radio={"path_loss": name, "propagation": {"shadowing": shadowing, "shadowing_std_db": 0.0}},
    )
    extent = made.extent
    assert (extent.bs_height_m, extent.ut_height_m, extent.min_distance_m) == (*heights_m, nearest_m)
    distances_m = np.array([max(nearest_m, 2.0), 47.0, radius_m])
    gains = World(made, Streams(1)).gains
    state = gains.of_round(np.stack([distances_m, 0 * distances_m], axis=1), [0, 1, 2], 0, (1, "train", 1))
    heights = {"bs_height_m": heights_m[0], "ut_height_m": heights_m[1]}
    assert state.gains_db == pytest.approx(-model.path_loss_db(distances_m, carrier_hz=3.5e9, **heights))


def test_uma_at_the_cell_edge_by_hand() -> None:
    """With LoS, before the breakpoint: 28 + 22 log10 d3D + 20 log10 3.5 with d3D = hypot(250, 23.5)."""
    made = scenario(radio={"path_loss": "uma", "propagation": {"shadowing_std_db": 0.0}})
    gain = World(made, Streams(1)).gains.of_round(np.array([[250.0, 0.0]]), [0], 0, (1, "train", 1))
    breakpoint_m = 4 * 24 * 0.5 * 3.5e9 / 3e8
    assert breakpoint_m > 250
    expected = 28 + 22 * math.log10(math.hypot(250, 23.5)) + 20 * math.log10(3.5)
    assert -gain.gains_db[0] == pytest.approx(expected, abs=0.01)  # edgefl uses the exact c, not 3e8 m/s


def test_given_heights_and_distances_are_kept() -> None:
    extent = scenario(cell={"bs_height_m": 6, "ut_height_m": 2, "min_distance_m": 30}).extent
    assert (extent.bs_height_m, extent.ut_height_m, extent.min_distance_m) == (6, 2, 30)
    dropped = World(scenario(cell={"min_distance_m": 240}), Streams(1)).movement.positions_m(0.0)
    assert np.linalg.norm(dropped, axis=1).min() >= 240


def test_the_world_of_several_cells_reaches_as_far_as_devices_do() -> None:
    """Border and fields reach the area's farthest point: a square's corner, a road's end, or a disc's edge."""
    cells = {
        "layout": {"rings": 1, "isd_m": 100},
        "radio": {"preset": "journal", "propagation": {"shadowing": "spatial"}},
    }
    for mobility, reach_m in [
        ({"name": "manhattan", "area_factor": 1.2}, 1.2 * 150 * math.sqrt(2)),
        ({"name": "highway", "lanes": 2, "area_factor": 1.5}, math.hypot(225, 35 + 3 * 4)),
        ({"name": "random_waypoint", "area_factor": 1.4}, 1.4 * 150),
        ("static", 150),
    ]:
        extent = scenario(devices={"count": 4, "mobility": mobility}, **cells).extent
        assert extent.field_radius_m == pytest.approx(reach_m)
        assert extent.edge_m == pytest.approx(reach_m, rel=1e-9)
        assert extent.edge_m > reach_m * (1 + 1e-12), "devices reflected at the edge are not absent"
    # with one cell, the border is the cell's edge, and fields cover the area where devices are placed
    one = scenario(devices={"count": 4, "mobility": {"name": "manhattan", "area_factor": 1.2}}).extent
    assert (one.edge_m, one.field_radius_m) == (250, 1.2 * 250)
