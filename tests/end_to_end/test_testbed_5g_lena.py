"""Compare how many uploads meet the deadline in FedSched-5G's setup with published and hand-calculated numbers."""

import csv
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from edgefl.rng import Streams
from edgefl.run.api import simulate
from edgefl.scenario.scenario import Scenario, load
from edgefl.scenario.world import World
from tests.tools.invariants import check_run

FILE = Path(__file__).parents[2] / "scenarios" / "testbed_5g_lena.yaml"
BITS, OF = 5_455_136, 6
HEIGHT_M = 50.0 - 1.5
# 26 resource blocks of 11 x 12 symbols per slot of 0.5 ms, 5.55 bits per symbol, of which 8 % are headers
MOST_BIT_S, BACKGROUND_BIT_S = 26 * 11 * 12 * 5.55 / 0.5e-3 * 0.92, 6.35e6
# LABORA-INF-UFG/FedSched-5G at f0cd8d5, FL/fl-results: means over 15 seeds of 100 rounds
IN_TIME = {"round_robin": 3.23, "proportional_fair": 3.36, "max_rate": 3.35}
RINGS_M = (40, 60, 80, 100, 120, 140, 160, 180)  # 3D distances
IN_TIME_BY_RING = (0.96, 0.87, 0.66, 0.42, 0.27, 0.22, 0.16)  # shares of all 27,000 uploads


def uploads(run: Path) -> list[dict[str, str]]:
    with (run / "devices.csv").open() as file:
        return list(csv.DictReader(file))


def in_sight(scenario: Scenario) -> list[bool]:
    """Return whether each device is in line of sight, from the run's world."""
    world = World(scenario, Streams(scenario.seed))
    ids = np.arange(world.count)
    state = world.gains.of_links(world.movement.positions_m(0.0), ids, np.zeros_like(ids))
    assert state.in_sight is not None
    return [bool(each) for each in state.in_sight > 0.5]


def rate_bit_s(power_dbm: float, distance_m: float, sight: bool) -> float:
    """Return a lone phone's mean rate in the band by UMa (38.901, Table 7.4.1-1), Rayleigh fading and NrAmc's gap."""
    lg_3d, lg_fc = math.log10(math.hypot(distance_m, HEIGHT_M)), math.log10(4.0)
    loss_db = 28.0 + 22 * lg_3d + 20 * lg_fc if sight else 13.54 + 39.08 * lg_3d + 20 * lg_fc
    gain_db = 23.6 if sight else 13.5
    snr = 10 ** ((power_dbm - loss_db + gain_db + 174 - 5 - 70 - 8.2) / 10)
    power = -np.log1p(-(np.arange(1000) + 0.5) / 1000)  # power of Rayleigh fading at 1000 quantiles
    return MOST_BIT_S * float(np.minimum(5.55, np.log2(1 + snr * power)).mean()) / 5.55


def expected_in_time(rates_bit_s: list[float]) -> int:
    """Return how many of a round's uploads end within 5 s if devices share the slots equally.

    Downloads have the highest rate; background traffic takes a constant share of the uplink.
    """
    free = 1.0 - BACKGROUND_BIT_S / MOST_BIT_S
    now_s = 0.1 + 0.01 + OF * BITS / (MOST_BIT_S * free) + 0.5
    left_s = sorted(BITS / (rate * free) for rate in rates_bit_s)  # without other uploads
    done_s = 0.0
    for done, alone_s in enumerate(left_s):
        now_s += (alone_s - done_s) * (OF - done)
        if now_s > 5.0:
            return done
        done_s = alone_s
    return OF


def test_sight_and_distance_decide_which_uploads_are_in_time(tmp_path: Path) -> None:
    """`expected_in_time` predicts each round's number of on-time uploads to within 1, and the mean to within 0.5."""
    rounds = 6
    changes = [
        "radio.scheduler=equal_share",
        "radio.background.file_bits=1000000",
        f"sessions.rounds={rounds}",
    ]
    scenario = load(FILE, changes)
    run = simulate(scenario, tmp_path / "run")
    assert check_run(run) == []
    sight, power_dbm = in_sight(scenario), scenario.devices.transmit_power_dbm
    errors, ended = [], 0
    for number in range(1, rounds + 1):
        rows = [row for row in uploads(run) if int(row["round"]) == number]
        assert len(rows) == OF
        rates = [rate_bit_s(power_dbm, float(row["distance_m"]), sight[int(row["device"])]) for row in rows]
        completed = sum(row["outcome"] == "completed" for row in rows)
        errors.append(completed - expected_in_time(rates))
        ended += completed
    assert max(map(abs, errors)) <= 1
    assert abs(sum(errors)) <= rounds / 2
    assert 0 < ended < OF * rounds


def test_uploads_are_in_time_as_often_as_published(tmp_path: Path) -> None:
    """A round's uploads in time (std 1.3) agree within 20 %, a ring's share within 0.15, plus two standard errors."""
    seeds, rounds = range(1, 9), 2
    by_ring: dict[int, list[bool]] = {ring: [] for ring in RINGS_M[:-1]}
    for scheduler, published in IN_TIME.items():
        counts: Counter[int] = Counter()
        for seed in seeds:
            changes = [f"radio.scheduler={scheduler}", f"seed={seed}", f"sessions.rounds={rounds}"]
            run = simulate(load(FILE, changes), tmp_path / f"{scheduler}-{seed}")
            per_round: Counter[str] = Counter()
            for row in uploads(run):
                completed = row["outcome"] == "completed"
                per_round[row["round"]] += completed
                distance_m = math.hypot(float(row["distance_m"]), HEIGHT_M)
                by_ring[max(ring for ring in RINGS_M if ring <= distance_m)].append(completed)
            counts.update(per_round.values())
        of = counts.total()
        mean = sum(count * times for count, times in counts.items()) / of
        assert mean == pytest.approx(published, abs=0.2 * published + 2 * 1.3 / math.sqrt(of)), scheduler
        assert len(counts) >= 5
        assert max(counts.values()) < of / 2
    for (ring, ended), published in zip(by_ring.items(), IN_TIME_BY_RING, strict=True):
        error = math.sqrt(published * (1 - published) / len(ended))
        assert np.mean(ended) == pytest.approx(published, abs=0.15 + 2 * error), ring
