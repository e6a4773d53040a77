"""Coverage of one UMi cell by `preset: nr` beside a Monte Carlo of its link budget that shares no code with it."""

import math
from typing import Any

import numpy as np
import pytest
import simpy

from edgefl.rng import Streams
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World

DROPS, DEVICES, PLACES, SIGMAS = 12, 1000, 400_000, 4
GHZ, HZ, SLOT_S, RADIUS_M, NEAREST_M, HEIGHT_M = 3.5, 100e6, 0.5e-3, 250.0, 10.0, 8.5
SITE_DBM, DEVICE_DBM, ANTENNA_DBI, NOISE_DBM = 44.0, 23.0, 5.0, -174.0 + 80.0
BEAM_DB, NLOS_BEAM_DB = 14.5, 9.5
FIGURE_DB, SITE_FIGURE_DB, P0_DBM, ALPHA = 9.0, 5.0, -80.0, 0.8
# 38.214, Table 5.2.2.1-3: CQI 1 is QPSK at 78 / 1024; 2 dB from Shannon, 3 dB above it to count as covered
NEEDED_DB = 10 * math.log10(2 ** (2 * 78 / 1024) - 1) + 2.0 + 3.0
PARTS_DB = 10 * math.log10(16)  # an uplink may use a sixteenth of the band


def drawn(rng: np.random.Generator, coated_share: float, device_dbm: float) -> np.ndarray:
    """[places] whether a device at a random place has a link in both directions."""

    def normal() -> np.ndarray:
        return rng.standard_normal(PLACES)

    distance_m = np.sqrt(rng.uniform(NEAREST_M**2, RADIUS_M**2, PLACES))
    straight_m = np.hypot(distance_m, HEIGHT_M)
    break_m = 4 * 9 * 0.5 * GHZ * 1e9 / 3e8
    near_db = 32.4 + 21 * np.log10(straight_m) + 20 * math.log10(GHZ)
    beyond_db = 32.4 + 40 * np.log10(straight_m) + 20 * math.log10(GHZ)
    beyond_db -= 9.5 * math.log10(break_m**2 + HEIGHT_M**2)
    los_db = np.where(distance_m <= break_m, near_db, beyond_db)
    nlos_db = np.maximum(los_db, 22.4 + 35.3 * np.log10(straight_m) + 21.3 * math.log10(GHZ))
    # a field G decides line of sight with 38.901's probability, softly: s^2 of the power is that in sight
    far_m = np.maximum(distance_m, 18.0)
    p_los = 18 / far_m + np.exp(-far_m / 36) * (1 - 18 / far_m)
    decided = rng.random(PLACES)
    margin = quantile(p_los) - quantile(decided)
    s2 = (0.5 + np.arctan(math.sqrt(20 * GHZ * 1e9 / 3e8) * margin) / math.pi) ** 2
    in_sight = s2 * 10 ** (-(los_db + 4.0 * normal()) / 10)
    around = (1 - s2) * 10 ** (-(nlos_db + 7.82 * normal()) / 10)
    # walls: plain or coated glass beside concrete, the smaller of two ways inside, and a deviation
    indoors, coated = rng.random(PLACES) < 0.8, rng.random(PLACES) < coated_share
    walls_db = np.where(coated, wall_db(0.7, 23 + 0.3 * GHZ), wall_db(0.3, 2 + 0.2 * GHZ))
    walls_db += 0.5 * 25 * rng.random((2, PLACES)).min(axis=0) + np.where(coated, 6.5, 4.4) * normal()
    through = np.where(indoors, 10 ** (-walls_db / 10), 1.0)
    # coupling without the beam, for power control; with it, by state, and no path in sight within houses
    coupling_db = -10 * np.log10((in_sight + around) * through) - ANTENNA_DBI
    sees = np.where(indoors, 0.0, in_sight / (in_sight + around))
    beam_db = 10 * np.log10(sees * 10 ** (BEAM_DB / 10) + (1 - sees) * 10 ** (NLOS_BEAM_DB / 10))
    down_db = SITE_DBM + beam_db - coupling_db - NOISE_DBM - FIGURE_DB
    asked_dbm = P0_DBM + 10 * math.log10(HZ / 180e3) + ALPHA * coupling_db
    up_db = np.minimum(device_dbm, asked_dbm) + beam_db - coupling_db - NOISE_DBM - SITE_FIGURE_DB
    covered: np.ndarray = (down_db >= NEEDED_DB) & (up_db >= NEEDED_DB - PARTS_DB)
    return covered


def quantile(probability: np.ndarray) -> np.ndarray:
    """The normal quantile, by interpolation of the error function's values."""
    nodes = np.linspace(-8.0, 8.0, 20001)
    values = np.array([0.5 * math.erfc(-node / math.sqrt(2)) for node in nodes])
    return np.interp(probability, values, nodes)


def wall_db(glass: float, glass_db: float) -> float:
    return 5 - 10 * math.log10(glass * 10 ** (-glass_db / 10) + (1 - glass) * 10 ** (-(5 + 4 * GHZ) / 10))


def simulated(seed: int, **devices: Any) -> float:
    """Share of a drop's devices that have a link."""
    scenario = {
        "name": "coverage",
        "seed": seed,
        "devices": {"count": DEVICES, **devices},
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        "workload": {"payload_bits": 1, "flops_per_sample": 1},
    }
    world = World(Scenario.model_validate(scenario), Streams(seed))
    coverage = world.radio(simpy.Environment()).coverage
    assert coverage is not None
    return float(coverage.among(0, np.arange(DEVICES), world.movement.positions_m(0.0)).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("devices", "coated_share", "device_dbm"),
    [
        ({}, 0.0, DEVICE_DBM),
        ({"coated_share": 0.5}, 0.5, DEVICE_DBM),
        ({"penetration": "high_loss"}, 1.0, DEVICE_DBM),
        ({"transmit_power_dbm": 26.0}, 0.0, 26.0),
    ],
    ids=["nr", "half coated", "all coated", "power class 2"],
)
def test_as_many_have_a_link_as_by_hand(
    devices: dict[str, Any], coated_share: float, device_dbm: float
) -> None:
    """Devices of a drop share the fields of line of sight and shadowing: the error is that of the drops' means."""
    by_hand = drawn(np.random.default_rng(7), coated_share, device_dbm)
    drops = np.array([simulated(seed, **devices) for seed in range(1, DROPS + 1)])
    error = math.hypot(drops.std(ddof=1) / math.sqrt(DROPS), by_hand.std() / math.sqrt(PLACES))
    assert drops.mean() == pytest.approx(by_hand.mean(), abs=SIGMAS * error)
    assert SIGMAS * error < 0.03
