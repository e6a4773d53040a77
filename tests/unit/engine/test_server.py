"""Rounds, departures and sessions at exactly derived times.

The fading of a device with Doppler speed 0 never changes, so a transfer of Z bits over bandwidth W takes
ceil(Z / (W log2(1 + snr |h|^2) tau)) slots: every event time follows by hand from |h|^2.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import simpy

from channel.ofdma import equal_share
from channel.path_loss import umi_path_loss_db
from edgefl.contract import Evaluation, Opening, Phase, Start
from edgefl.engine.device import Device
from edgefl.engine.population import Population
from edgefl.engine.radio import Radio
from edgefl.engine.records import DeviceRound, Event, Round, Session
from edgefl.engine.selectors.all import All
from edgefl.engine.server import Server
from edgefl.engine.sessions.membership import Membership
from edgefl.engine.sessions.schedule import Schedule
from edgefl.errors import EdgeflError
from edgefl.rng import Streams
from edgefl.scenario import Cell, Devices, RadioSettings

SLOT_S = 0.5e-3
PAYLOAD_BITS = 3_000_000
FLOPS, STEPS, BATCH = 1.0e6, 5, 128
COMPUTE_S = FLOPS * STEPS * BATCH / (1.0e9 * 8)  # (J 27) with the default processor: 80 ms
COMPUTE_J = 1.0e-28 * (FLOPS * STEPS * BATCH / 8) * 1.0e9**2  # (J 28): 8 mJ
RX_W, TX_W = 0.1, 10 ** (23 / 10) / 1000
EXACT = 1e-9


class Rows:
    """Keeps every row by its type."""

    def __init__(self) -> None:
        self.of: dict[type, list[Any]] = {Round: [], DeviceRound: [], Event: [], Session: []}

    def write(self, *rows: Any) -> None:
        for row in rows:
            self.of[type(row)].append(row)

    def flush(self) -> None:
        pass


class Spy:
    """A learner that only notes what it is asked."""

    payload_bits, flops_per_sample, batch = PAYLOAD_BITS, FLOPS, BATCH

    def __init__(self, probes: int = 0, share: float = 1.0) -> None:
        self.version = 0
        self.probes, self.share = probes, share
        self.calls: list[tuple[Any, ...]] = []

    def open_session(self, session: int, ids: Sequence[int], longest: int) -> Opening:
        self.calls.append(("open", session, tuple(ids), longest))
        return Opening("train", self.probes, self.share)

    def begin_training(self) -> Start:
        self.calls.append(("begin",))
        return Start("similarity", {2: 0.25, 3: 0.75}, [0, 1], 0.5, 1.5)

    def local_update(self, ids: Sequence[int], phase: Phase, round_: int) -> Mapping[int, int]:
        self.calls.append((phase, round_, tuple(ids)))
        return dict.fromkeys(ids, STEPS)

    def aggregate(self, ids: Sequence[int]) -> None:
        self.calls.append(("aggregate", tuple(ids)))
        self.version += 1

    def evaluate(self) -> Evaluation | None:
        return Evaluation(0.75, 0.5)

    def close_session(self) -> None:
        self.calls.append(("close",))


class Script:
    """Movement by a script: device -> times at which it changes between inside and outside the cell."""

    def __init__(self, positions_m: np.ndarray, crossings_s: Mapping[int, Sequence[float]]) -> None:
        self.moves = bool(crossings_s)
        self._positions_m = positions_m
        self._crossings_s = crossings_s

    def positions_m(self, time_s: float) -> np.ndarray:
        positions = self._positions_m.copy()
        for device, times in self._crossings_s.items():
            # half a tick early, so that rounding of the tick times does not matter
            if sum(time_s >= t - 0.005 for t in times) % 2:
                positions[device] += 1e4
        return positions

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.zeros(len(self._positions_m))


class World:
    """A cell of 250 m with devices at given distances, looked at every 10 ms."""

    def __init__(
        self,
        distances_m: Sequence[float],
        *,
        crossings_s: Mapping[int, Sequence[float]] | None = None,
        policy: Any = None,
        learner: Spy | None = None,
        max_wait_s: float = 10.0,
    ) -> None:
        self.env = simpy.Environment()
        self.rows = Rows()
        self.learner = learner or Spy()
        self.distances_m = np.asarray(distances_m, dtype=float)
        positions = np.column_stack([self.distances_m, np.zeros(len(distances_m))])
        movement = Script(positions, crossings_s or {})
        self.settings = RadioSettings(bandwidth_hz=10e6, shadowing_std_db=0.0, fidelity="slot")
        self.streams = Streams(7)
        self.radio = Radio(
            self.env,
            settings=self.settings,
            cell=Cell(),
            device_power_w=TX_W,
            speeds_m_s=movement.doppler_speeds_m_s(),
            path_loss_db=umi_path_loss_db,
            share=equal_share,
            streams=self.streams,
        )
        population = Population(self.env, movement, radius_m=250.0, tick_s=0.01, recorder=self.rows)
        settings = Devices(count=len(distances_m))
        devices = [Device(self.env, id_, self.radio, settings) for id_ in range(len(distances_m))]
        population.on_departure = lambda id_: devices[id_].leave()
        server = Server(
            self.env,
            population=population,
            devices=devices,
            radio=self.radio,
            learner=self.learner,
            policy=policy or Schedule(count=1, rounds=1),
            selector=All(),
            recorder=self.rows,
            streams=self.streams,
            max_wait_s=max_wait_s,
        )
        self.env.process(population.watch())
        self._server = self.env.process(server.run())

    def run(self) -> "World":
        self.env.run(until=self._server)
        return self

    def slots(self, device: int, power_w: float, sharing: int) -> int:
        """Slots of one transfer by the closed form, from the link's |h|^2."""
        loss_db = umi_path_loss_db(self.distances_m[device], carrier_hz=3.5e9)
        bandwidth = 10e6 / sharing
        noise_w = 10 ** ((-174 - 30) / 10) * bandwidth
        snr = power_w * 10 ** (-float(loss_db) / 10) / noise_w
        h2 = float(self.radio._fading[device].power(0, 1)[0])
        return math.ceil(PAYLOAD_BITS / (bandwidth * SLOT_S * math.log2(1 + snr * h2)))


def next_slot_s(time_s: float) -> float:
    return math.ceil(round(time_s / SLOT_S, 6)) * SLOT_S


def expected_stages(world: World, device: int, sharing: int, start_s: float = 0.0) -> list[float]:
    down = next_slot_s(start_s)
    computes = down + world.slots(device, 10 ** (43 / 10) / 1000, sharing) * SLOT_S
    up = next_slot_s(computes + COMPUTE_S)
    done = up + world.slots(device, TX_W, sharing) * SLOT_S
    return [down, computes, computes, computes + COMPUTE_S, up, done]


def stages(row: DeviceRound) -> list[float | None]:
    return [
        row.downlink_start_s,
        row.downlink_end_s,
        row.compute_start_s,
        row.compute_end_s,
        row.uplink_start_s,
        row.uplink_end_s,
    ]


def test_a_round_takes_exactly_what_its_devices_take() -> None:
    world = World([50.0, 240.0]).run()
    rows, (round_,) = world.rows.of[DeviceRound], world.rows.of[Round]
    ends = []
    for row in rows:
        expected = expected_stages(world, row.device, sharing=2)
        assert stages(row) == pytest.approx(expected, abs=EXACT)
        assert row.energy_rx_j == pytest.approx(RX_W * (expected[1] - expected[0]))
        assert row.energy_tx_j == pytest.approx(TX_W * (expected[5] - expected[4]))
        assert row.energy_compute_j == pytest.approx(COMPUTE_J)
        assert (row.downlink_bits, row.uplink_bits, row.iterations) == (PAYLOAD_BITS, PAYLOAD_BITS, STEPS)
        assert row.outcome == "completed"
        ends.append(expected[5])
    assert round_.latency_s == pytest.approx(max(ends), abs=EXACT)
    assert round_.latency_mean_s == pytest.approx(sum(ends) / 2, abs=EXACT)
    assert round_.energy_j == pytest.approx(sum(row.energy_j for row in rows))
    assert (round_.participants, round_.completed, round_.version) == (2, 2, 1)


def test_rounds_follow_one_another() -> None:
    world = World([50.0, 240.0], policy=Schedule(count=2, rounds=2)).run()
    rounds = world.rows.of[Round]
    assert [(r.session, r.round, r.version) for r in rounds] == [(1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 2, 4)]
    for before, after in itertools.pairwise(rounds):
        assert after.start_s == pytest.approx(before.end_s, abs=EXACT)
    calls = [call[0] for call in world.learner.calls]
    session = ["open", "begin", "train", "aggregate", "train", "aggregate", "close"]
    assert calls == session * 2


def test_probe_rounds_take_time_and_energy_and_change_no_model() -> None:
    world = World([50.0, 60.0, 70.0, 80.0], learner=Spy(probes=2, share=0.5)).run()
    rounds = world.rows.of[Round]
    assert [(r.phase, r.round, r.participants) for r in rounds] == [
        ("probe", 1, 2),
        ("probe", 2, 2),
        ("train", 1, 4),
    ]
    assert all(r.latency_s > 0 and r.energy_j > 0 for r in rounds)
    assert rounds[0].accuracy is None
    assert rounds[2].accuracy == 0.75
    (session,) = world.rows.of[Session]
    assert session.start_s == rounds[0].start_s
    assert (session.weights, session.labels) == ("2:0.25 3:0.75", "0 1")


@pytest.mark.parametrize("stage", ["downlink", "compute", "uplink"])
def test_a_device_that_leaves_is_cut_off_and_pays_until_then(stage: str) -> None:
    distances = [50.0, 60.0]
    planned = expected_stages(World(distances), 1, sharing=2)
    begin, end = {"downlink": planned[:2], "compute": planned[2:4], "uplink": planned[4:]}[stage]
    leaves_s = math.ceil(begin / 0.01 + 0.5) * 0.01  # the first tick inside the stage
    assert begin < leaves_s < end, "choose distances whose stages last longer than a tick"
    world = World(distances, crossings_s={1: [leaves_s]}).run()
    row = next(r for r in world.rows.of[DeviceRound] if r.device == 1)
    assert row.outcome == f"left_{stage}"
    share = (leaves_s - begin) / (end - begin)
    assert row.energy_rx_j == pytest.approx(RX_W * (min(planned[1], leaves_s) - planned[0]))
    if stage == "downlink":
        assert stages(row)[1:] == [pytest.approx(leaves_s), None, None, None, None]
        assert (row.energy_compute_j, row.energy_tx_j, row.iterations) == (0, 0, 0)
        # the rate is constant, so whole slots times the rate have moved
        whole = math.floor(round((leaves_s - begin) / SLOT_S, 6))
        slots = world.slots(1, 10 ** (43 / 10) / 1000, 2)
        assert PAYLOAD_BITS * (slots - 1) / slots * whole / slots <= row.downlink_bits
        assert row.downlink_bits <= PAYLOAD_BITS * whole / (slots - 1)
    elif stage == "compute":
        assert row.energy_compute_j == pytest.approx(COMPUTE_J * share)
        assert row.iterations == int(STEPS * share)
        assert (row.uplink_start_s, row.uplink_bits) == (None, 0)
    else:
        assert row.energy_tx_j == pytest.approx(TX_W * (leaves_s - begin))
        assert 0 < row.uplink_bits < PAYLOAD_BITS
    assert ("aggregate", (0,)) in world.learner.calls
    (round_,) = world.rows.of[Round]
    assert (round_.participants, round_.completed) == (2, 1)
    assert round_.energy_j == pytest.approx(sum(r.energy_j for r in world.rows.of[DeviceRound]))
    assert [(e.event, e.device) for e in world.rows.of[Event] if e.device is not None] == [("departure", 1)]


def test_a_round_without_survivors_keeps_the_model_and_says_so() -> None:
    world = World([50.0], crossings_s={0: [0.02, 0.5]}, policy=Schedule(count=1, rounds=2)).run()
    first, second = world.rows.of[Round]
    assert (first.completed, first.version) == (0, 0)
    assert first.end_s == pytest.approx(0.02, abs=EXACT)
    assert [e.event for e in world.rows.of[Event]].count("no_updates") == 1
    # the empty cell holds the server up until the device comes back
    assert second.start_s == pytest.approx(0.5, abs=EXACT)
    assert (second.completed, second.version) == (1, 1)


def test_nobody_ever_comes_back() -> None:
    world = World([50.0], crossings_s={0: [0.02]}, policy=Schedule(count=1, rounds=2), max_wait_s=1.0)
    with pytest.raises(EdgeflError, match=r"no device entered the cell within 1\.0 s"):
        world.run()


def test_an_arrival_joins_the_next_round_and_a_departure_ends_the_session() -> None:
    # device 2 begins outside: it crosses at time 0 already
    world = World(
        [50.0, 60.0, 70.0],
        crossings_s={2: [0.0, 0.05], 1: [0.0, 0.4]},
        policy=Membership(count=2, changed_share=0.6, min_rounds=1, max_rounds=50),
    ).run()
    first, second = world.rows.of[Session][0], world.rows.of[Session][1]
    assert first.devices == "0"
    assert (first.reason, second.reason) == ("start", "membership")
    participants = [call[2] for call in world.learner.calls if call[0] == "train"]
    assert participants[0] == (0,)
    assert (0, 2) in participants
    starts = {r.session: r.start_s for r in reversed(world.rows.of[Round])}
    # 60 % of one member have changed as soon as device 2 is there: the session ends with that round
    assert starts[2] >= 0.05
    assert second.devices == "0 2"
