"""Test that a device without coverage is absent, that no round waits for it, and that it returns with its link."""

import math
from typing import Any

import numpy as np
import pytest

from edgefl.channel.modulation import EFFICIENCIES
from edgefl.channel.path_loss.umi import UMi
from edgefl.engine.air.gains import LargeScaleState, SpatialGains
from edgefl.engine.records import OUT_OF_COVERAGE, DeviceRound, Event, Round
from edgefl.mobility import Mobility, Movement
from edgefl.testing import Scripted, SmallWorld, small_world
from edgefl.testing.cell import within
from tests.unit.engine.moving import Moving

HZ, N0_W_HZ, DEVICE_W, SERVER_W = 10e6, 10 ** ((-174 - 30) / 10), 10**2.3 / 1000, 10**4.3 / 1000
MARGIN_DB, GAP_DB, PART = 3.0, 2.0, 1 / 16
TICK_S = 0.01
RADIO: dict[str, Any] = {
    "propagation": {"shadowing": "spatial", "line_of_sight": "never"},
    "link": {"rates": "cqi"},
    "monitoring": {"t310_s": 1.0, "coverage_margin_db": MARGIN_DB, "gain_reading": "interval"},
    "budget": {
        "power_over_share": "per_resource_block",
        "uplink_power_over_share": "per_resource_block",
        "noise_figure_db": 9.0,
    },
}
LOWEST = 10 ** (GAP_DB / 10) * (2 ** EFFICIENCIES[0] - 1)


def edge_m(power_w: float, part: float = 1.0) -> float:
    """Return the distance at which the mean SNR exceeds the lowest CQI's by MARGIN_DB, by bisecting the path loss."""

    def short(distance_m: float) -> bool:
        loss_db = float(UMi().path_loss_db(distance_m, carrier_hz=3.5e9, line_of_sight=False))
        snr = power_w * 10 ** (-loss_db / 10) / (N0_W_HZ * HZ * 10**0.9)
        return snr < 10 ** (MARGIN_DB / 10) * LOWEST * part

    near_m, far_m = 10.0, 5000.0
    while far_m - near_m > 1e-6:
        middle_m = (near_m + far_m) / 2
        near_m, far_m = (near_m, middle_m) if short(middle_m) else (middle_m, far_m)
    return near_m


class Straight(Mobility):
    """Devices that drive along the x axis to far_m and back, again and again, at constant speed."""

    speed_m_s: float = 50.0
    far_m: float = 600.0
    stays: bool = True  # whether device 0 stands still

    def area_radius_m(self, cell_radius_m: float) -> float:
        return cell_radius_m

    def x_m(self, time_s: float) -> float:
        turn_s = self.far_m / self.speed_m_s
        return 20.0 + self.speed_m_s * abs((time_s + turn_s) % (2 * turn_s) - turn_s)

    def start(self, positions_m: np.ndarray, **_: Any) -> Movement:
        here = [[30.0, 0.0]] * self.stays
        return Moving(lambda time_s: here + [[self.x_m(time_s), 0.0]] * (len(positions_m) - len(here)))


def at(places_m: list[float], **options: Any) -> SmallWorld:
    radio = within(RADIO, options.pop("radio", {}))
    return small_world(places_m, radio=radio, cell={"radius_m": 2000.0}, **options)


@pytest.mark.parametrize(("rule", "part"), [("per_resource_block", 1.0), ("full", PART)])
def test_the_edge_is_where_the_weaker_direction_has_its_margin(rule: str, part: float) -> None:
    """The direction with less power sets the edge; on 1/16 of the band the uplink has 12 dB more power per Hz."""
    down_m, up_m = edge_m(SERVER_W), edge_m(DEVICE_W, part)
    assert up_m < down_m
    places = [up_m - 0.01, up_m + 0.01, down_m + 10.0]
    budget = {"uplink_power_over_share": rule}
    small = at(places, radio={"budget": budget})
    network = small.simulation.network
    assert network.present(0) == [0]
    assert network.out_of_coverage(0) == [1, 2]
    without = at(places, radio={"monitoring": {"coverage_margin_db": None}, "budget": budget})
    assert without.simulation.network.present(0) == [0, 1, 2]
    assert without.simulation.network.out_of_coverage(0) is None


P0_DBM, ALPHA = -95.0, 0.8


def test_power_control_limits_the_edge_on_resource_blocks() -> None:
    """A device cannot put more power on a block than power control allows, so fewer blocks do not help it.

    The power received on 180 kHz is P0 - (1 - alpha) x path loss; it must exceed noise, lowest SNR and margin.
    """
    needed_dbm = -174 + 10 * math.log10(180e3) + 9.0 + 10 * math.log10(LOWEST) + MARGIN_DB
    most_loss_db = (P0_DBM - needed_dbm) / (1 - ALPHA)
    near_m, far_m = 10.0, 5000.0
    while far_m - near_m > 1e-6:
        middle_m = (near_m + far_m) / 2
        loss_db = float(UMi().path_loss_db(middle_m, carrier_hz=3.5e9, line_of_sight=False))
        near_m, far_m = (middle_m, far_m) if loss_db < most_loss_db else (near_m, middle_m)
    assert near_m < edge_m(DEVICE_W, PART)
    limited = {"uplink_power_over_share": "full", "uplink_p0_dbm": P0_DBM, "uplink_alpha": ALPHA}
    small = at([near_m - 0.01, near_m + 0.01], radio={"sharing": "dynamic", "budget": limited})
    assert small.simulation.radio.air.carriers["uplink"].blocks
    assert small.simulation.network.present(0) == [0]


@pytest.mark.parametrize("bandwidth_hz", [5e6, 10e6, 50e6])
@pytest.mark.parametrize("p0_dbm", [None, -95.0, -105.0])
def test_transfers_on_static_links_end_or_fail(bandwidth_hz: float, p0_dbm: float | None) -> None:
    """A static link that carries nothing is out of sync and fails after T310; otherwise its transfer never ended."""
    radio = {
        "sharing": "dynamic",
        "bandwidth_hz": bandwidth_hz,
        "monitoring": {"coverage_margin_db": None, "t310_s": 0.1, "t311_s": 0.0},
        "budget": {"uplink_power_over_share": "full", "uplink_p0_dbm": p0_dbm, "server_power_dbm": 50.0},
    }
    places_m = np.geomspace(20.0, 1500.0, 24).tolist()
    rows = at(places_m, radio=radio, learner=Scripted(work=(1, 0, 1_000, 1_000))).run().rows.of[DeviceRound]
    completed = {row.device for row in rows if row.outcome == "completed"}
    failed = {row.device for row in rows if row.outcome.startswith("failed")}
    assert completed | failed == set(range(24))
    assert completed
    assert failed


def test_the_downlink_decides_where_it_is_the_weaker_one() -> None:
    radio = {"budget": {"server_power_dbm": 13.0}}
    down_m = edge_m(SERVER_W / 1000)
    assert down_m < edge_m(DEVICE_W)
    assert at([down_m - 0.01, down_m + 0.01], radio=radio).simulation.network.present(0) == [0]


def test_a_device_that_stands_still_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coverage of a device that has not moved is checked only once, as checks of a million devices are slow."""
    judged: list[int] = []
    of_links = SpatialGains.of_links

    def counted(self: Any, places_m: Any, ids: np.ndarray, cells: Any) -> LargeScaleState:
        judged.extend(ids.tolist())
        return of_links(self, places_m, ids, cells)

    monkeypatch.setattr(SpatialGains, "of_links", counted)
    small = at([30.0, 60.0, 90.0, edge_m(DEVICE_W) + 400.0])
    network, positions_m = small.simulation.network, small.simulation.network.positions_m()
    assert small.simulation.radio.coverage is not None
    among = small.simulation.radio.coverage.among
    assert (network.present(0), network.out_of_coverage(0), network.connecting(0)) == ([0, 1, 2], [3], {})
    for ids in ([0, 1], [2, 3], [0, 1, 2, 3], []):
        assert among(0, np.array(ids, dtype=int), positions_m).tolist() == [id_ < 3 for id_ in ids]
    assert sorted(judged) == [0, 1, 2, 3]
    moved_m = positions_m.copy()
    moved_m[3] = positions_m[0]
    assert among(0, np.arange(4), moved_m).tolist() == [True] * 4


def test_who_has_no_link_takes_no_part_and_no_round_waits_for_it() -> None:
    policy = {"name": "schedule", "count": 1, "rounds": 3}
    far_m = edge_m(DEVICE_W) + 400.0
    covered = at([30.0, far_m], policy=policy).run()
    rows = covered.rows.of[DeviceRound]
    assert [row.device for row in rows] == [0, 0, 0]
    assert covered.rows.further[OUT_OF_COVERAGE] == [1, 1, 1]
    assert {event.event for event in covered.rows.of[Event]} == {"session_start", "session_end"}
    alone = at([30.0], policy=policy).run()
    assert [row.latency_s for row in covered.rows.of[Round]] == [
        row.latency_s for row in alone.rows.of[Round]
    ]
    # without the coverage check the device is selected, and each of its rounds lasts until T310 expires
    waited = at([30.0, far_m], policy=policy, radio={"monitoring": {"coverage_margin_db": None}}).run()
    assert max(row.latency_s for row in waited.rows.of[Round]) >= 1.0


def test_a_device_that_drives_out_and_back_is_there_whenever_it_has_a_link() -> None:
    small = at(
        [30.0, 30.0],
        policy={"name": "schedule", "count": 1, "rounds": 120},
        devices={"mobility": Straight()},
        rules={"every_s": 0.25},
        learner=Scripted(work=(1, 0, 20_000, 20_000)),
    ).run()
    path, limit_m = Straight(), edge_m(DEVICE_W)
    took_part = {(row.round, row.device) for row in small.rows.of[DeviceRound]}
    rounds = small.rows.of[Round]
    here = [path.x_m(row.start_s) < limit_m for row in rounds]
    assert [(row.round, 1) in took_part for row in rounds] == here
    assert sum(here[i] != here[i + 1] for i in range(len(here) - 1)) >= 2  # device 1 leaves and returns
    assert all((row.round, 0) in took_part for row in rounds)
    assert small.rows.further[OUT_OF_COVERAGE] == [int(not one) for one in here]


def test_a_cell_that_waits_goes_on_when_the_first_link_returns() -> None:
    """If all devices leave coverage, the next round begins at the first check after a device re-enters it."""
    learner = Scripted(work=(1, 0, 20_000, 20_000))
    small = at(
        [30.0],
        policy={"name": "schedule", "count": 1, "rounds": 200},
        devices={"mobility": Straight(stays=False)},
        rules={"every_s": 0.1},
        learner=learner,
    ).run()
    path, limit_m = Straight(stays=False), edge_m(DEVICE_W)
    turn_s = path.far_m / path.speed_m_s
    back_s = 2 * turn_s - (limit_m - 20.0) / 50.0
    assert path.x_m(back_s) == pytest.approx(limit_m)
    starts_s = [row.start_s for row in small.rows.of[Round]]
    after_s = min(start_s for start_s in starts_s if start_s > turn_s)
    look_s = math.ceil(back_s / TICK_S) * TICK_S
    assert after_s == pytest.approx(look_s, abs=0.1 + 1e-9)  # a round begins every 0.1 s
    assert after_s >= back_s
    assert "waiting_for_devices" in {event.event for event in small.rows.of[Event]}


def test_interference_takes_coverage_away() -> None:
    """A second site, 50 m behind the first, always sends; its mean interference moves the edge inwards."""
    down_w, other_m = SERVER_W / 1000, 50.0

    def sinr(distance_m: float, load: float) -> float:
        loss_db = [
            float(UMi().path_loss_db(at_m, carrier_hz=3.5e9, line_of_sight=False))
            for at_m in (distance_m, distance_m + other_m)
        ]
        own_w, other_w = (down_w * 10 ** (-loss / 10) for loss in loss_db)
        return own_w / (N0_W_HZ * HZ * 10**0.9 + load * other_w)

    edges_m = []
    for load in (0.0, 0.5, 1.0):
        near_m, far_m = 10.0, 2000.0
        while far_m - near_m > 1e-6:
            middle_m = (near_m + far_m) / 2
            enough = sinr(middle_m, load) >= 10 ** (MARGIN_DB / 10) * LOWEST
            near_m, far_m = (middle_m, far_m) if enough else (near_m, middle_m)
        edges_m.append(near_m)
        small = small_world(
            [(-near_m + 0.05, 0.0), (-near_m - 0.05, 0.0)],
            radio=within(
                RADIO, {"budget": {"server_power_dbm": 13.0}, "neighbour_load": load, "interference": "slot"}
            ),
            layout={"sites": [[0, 0], [other_m, 0]], "radius_m": 2000.0, "federations": "centre"},
        )
        assert small.simulation.network.present(0) == [0], load
    assert edges_m[0] > edges_m[1] + 2 > edges_m[2] + 4
