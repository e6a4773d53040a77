"""Compare the handover rate of pedestrians with an independently programmed walk between two sites.

A correct program fails for at most one seed in 1,000.
"""

import math
from pathlib import Path

import numpy as np
import pytest
import simpy
import yaml

from edgefl.channel.gaussian_fields import Common
from edgefl.channel.large_scale import LargeScale
from edgefl.channel.path_loss import PathLoss
from edgefl.channel.path_loss.uma import UMa
from edgefl.channel.path_loss.umi import UMi
from edgefl.engine.records import Event
from edgefl.engine.settings import HandoverSettings
from edgefl.rng import Streams
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.testing import Rows
from tests.unit.engine.cells.watched import watched

SCENARIO = Path(__file__).parents[2] / "scenarios" / "walk_among_sites.yaml"
STANDARD_ERRORS = 4
STEP_M = 1.0  # the distance between two measurements
MARGIN_DB = 4.0  # A3's offset plus hysteresis, as in nr
SHARED = 0.5  # share of the shadowing's variance common to two sites
LANES = np.linspace(-0.4, 0.4, 9)  # offsets from the line between the sites, in units of their distance
PAIRS = 20  # pairs of sites at the same two places, each with its own shadowing
# TR 38.901, Tables 7.4.1-1 and 7.5-6, without line of sight: slope over log10 d3D, standard deviation, correlation
# distance, and the height of the mast above the device
NLOS: dict[type[PathLoss], tuple[float, float, float, float]] = {
    UMi: (35.3, 7.82, 13.0, 8.5),
    UMa: (39.08, 6.0, 50.0, 23.5),
}
# Between their nodes, 13 m / 8 apart, the fields are smoother than the process; see `GaussianFields`
FIELD = 0.05


class Across:
    """Devices that walk from the first to the second site, once on each lane for each pair of sites."""

    moves = True

    def __init__(self, isd_m: float) -> None:
        self._isd_m = isd_m
        self.lanes_m = np.tile(LANES * isd_m, PAIRS)

    def positions_m(self, time_s: float) -> np.ndarray:
        return np.stack([np.full(len(self.lanes_m), time_s * STEP_M - self._isd_m / 2), self.lanes_m], axis=1)

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.full(len(self.lanes_m), STEP_M)


def found(model: PathLoss, isd_m: float) -> np.ndarray:
    """Return the number of handovers [devices] on each walk, in a network that measures after each step."""
    large_scale = LargeScale(
        sites_m=np.tile([[-isd_m / 2, 0.0], [isd_m / 2, 0.0]], (PAIRS, 1)),
        model=model,
        carrier_hz=3.5e9,
        bs_height_m=model.bs_height_m,
        ut_height_m=model.ut_height_m,
        min_distance_m=10.0,
        area_radius_m=0.7 * isd_m,
        keys=range(2 * PAIRS),
        line_of_sight="never",
        shadowing_std_db=None,
        common=Common(99, SHARED),
    )
    walk = Across(isd_m)
    rows, own = np.arange(len(walk.lanes_m)), 2 * np.repeat(np.arange(PAIRS), len(LANES))

    def power_db_of(positions_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        gains_db = large_scale.gain_db(positions_m)
        return np.stack([gains_db[rows[: len(ids)], own[ids] + side] for side in (0, 1)], axis=1)

    rules = HandoverSettings(
        a3_offset_db=MARGIN_DB,
        hysteresis_db=0.0,
        time_to_trigger_s=0.0,
        handover_latency_s=0.0,
        measurement_interval_s=1.0,
        l3_filter_k=0,
    )
    env = simpy.Environment()
    _, log = watched(env, walk, 2, power_db_of, rules)
    env.run(until=isd_m / STEP_M)
    return np.bincount([event.device for event in log.of[Event]], minlength=len(rows))


def expected(model: type[PathLoss], isd_m: float, walks: int = 400) -> tuple[float, float]:
    """Return the mean number of handovers and its error, with shadowing as an Ornstein-Uhlenbeck process."""
    slope_db, std_db, correlation_m, height_m = NLOS[model]
    lanes_m = np.tile(LANES * isd_m, walks)
    rng = np.random.default_rng(1)
    kept = math.exp(-STEP_M / correlation_m)
    apart_db = std_db * math.sqrt(2 * (1 - SHARED))  # the shadowing that both sites share cancels
    shadow = rng.standard_normal(len(lanes_m))
    served_by_second, handovers = None, np.zeros(len(lanes_m))
    for step in range(int(isd_m / STEP_M)):
        along_m = step * STEP_M
        squares = [(along_m - site_m) ** 2 + lanes_m**2 + height_m**2 for site_m in (0.0, isd_m)]
        ahead_db = slope_db / 2 * np.log10(squares[0] / squares[1]) + apart_db * shadow  # second site's lead
        if served_by_second is None:
            served_by_second = ahead_db > 0
        goes = np.where(served_by_second, -ahead_db, ahead_db) > MARGIN_DB
        served_by_second ^= goes
        handovers += goes
        shadow = kept * shadow + math.sqrt(1 - kept**2) * rng.standard_normal(len(shadow))
    return handovers.mean(), handovers.std() / math.sqrt(len(handovers))


@pytest.mark.parametrize(("model", "isd_m"), [(UMi, 200.0), (UMi, 400.0)])
def test_a_walk_between_two_sites_hands_over_as_often_as_shadowing_makes_it(
    model: type[PathLoss], isd_m: float
) -> None:
    each, (mean, error) = found(model(), isd_m), expected(model, isd_m)
    tolerance = STANDARD_ERRORS * math.hypot(each.std() / math.sqrt(len(each)), error) + FIELD * mean
    assert tolerance < 0.25 * mean
    assert each.mean() == pytest.approx(mean, abs=tolerance)


def test_handovers_of_umi_grow_with_the_distance_between_sites() -> None:
    """Shadowing decides handovers over a fixed fraction of the distance between sites, but decorrelates over 13 m.

    So UMi has twice as many handovers per border at 400 m as at the 200 m of TR 38.901, Table 7.2-1.
    """
    per_border = {isd_m: expected(UMi, isd_m)[0] for isd_m in (200.0, 400.0)}
    assert per_border[400.0] / per_border[200.0] == pytest.approx(2.0, abs=0.3)
    assert expected(UMa, 400.0)[0] < per_border[400.0] / 2


def test_the_shipped_walk_hands_over_as_networks_do() -> None:
    """The default walk has 1.5 to 2.4 handovers per border (docs/trust.md), at most a quarter undone within 5 s."""
    walk = yaml.safe_load(SCENARIO.read_text())
    walk["devices"]["count"] = 300  # fewer devices take less time
    scenario = Scenario.model_validate(walk)
    assert scenario.layout.sectors == 3
    world, rows, env = World(scenario, Streams(scenario.seed)), Rows(), simpy.Environment()
    network = world.network(env, rows)
    for process in network.processes():
        env.process(process)
    env.run(until=80.0)
    events = [event for event in rows.of[Event] if event.event == "handover"]
    assert network.borders is not None
    crossed = network.borders.crossed
    # error for two independent Poisson processes; counts of the same walks correlate, so the ratio varies less
    error = math.sqrt(1 / len(events) + 1 / crossed)
    assert STANDARD_ERRORS * error < 0.6
    per_border = len(events) / crossed
    assert 1.5 * (1 - STANDARD_ERRORS * error) < per_border < 2.4 * (1 + STANDARD_ERRORS * error)
    last: dict[int | None, Event] = {}
    back = 0
    for event in events:
        before = last.get(event.device)
        back += before is not None and before.from_cell == event.cell and event.time_s - before.time_s < 5.0
        last[event.device] = event
    assert back < 0.25 * len(events)
