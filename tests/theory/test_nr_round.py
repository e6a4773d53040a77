"""Compare rounds of thirty devices in a UMi cell with `preset: nr` with an independent Monte Carlo."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import edgefl
from tests.theory.nr_cell import Links, drawn, one_round

BITS, DEVICES, DROPS, BY_HAND, SIGMAS = 21_350_000, 30, 10, 150, 3
QUANTITIES = ("downlink_s", "uplink_s", "slowest_s", "joules")


def simulated(seed: int, path: Path, sharing: str) -> tuple[float, ...]:
    """Return mean downlink and uplink times, the round's length, and a device's mean transfer energy."""
    scenario = {
        "name": "round",
        "seed": seed,
        "devices": {"count": DEVICES},
        "radio": {"sharing": sharing, "access": None},
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        "workload": {"payload_bits": BITS, "flops_per_sample": 1, "steps": 1, "batch": 1},
    }
    edgefl.simulate(scenario, out=path, device="cpu")
    rows = pd.read_csv(path / "devices.csv")
    done = rows[rows["outcome"] == "completed"]
    down_s, up_s = (done[f"{way}_end_s"] - done[f"{way}_start_s"] for way in ("downlink", "uplink"))
    joules = done["energy_rx_j"] + done["energy_tx_j"]
    return down_s.mean(), up_s.mean(), (done["uplink_end_s"] - done["downlink_start_s"]).max(), joules.mean()


def by_hand() -> np.ndarray:
    """Return the same quantities [drops, 4] from the Monte Carlo."""
    rng, rows = np.random.default_rng(11), []
    for _ in range(BY_HAND):
        links = drawn(rng, DEVICES)
        there = links.covered
        down_s, up_s, joules = one_round(
            Links(links.down[there], links.alone[there], links.most[there]), BITS
        )
        rows.append((down_s.mean(), up_s.mean(), (down_s + up_s).max(), joules.mean()))
    return np.array(rows)


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Return the quantities [drops, 4] for each kind of sharing, over the same drops."""
    folder = tmp_path_factory.mktemp("rounds")
    return {
        sharing: np.array(
            [simulated(seed, folder / f"{sharing}{seed}", sharing) for seed in range(1, DROPS + 1)]
        )
        for sharing in ("dynamic", "static")
    }


def test_a_round_is_as_long_and_as_dear_as_by_hand(drops: dict[str, np.ndarray]) -> None:
    """The means over drops agree with the Monte Carlo within three standard errors; each drop draws new links."""
    one, other = drops["dynamic"], by_hand()
    error = np.hypot(one.std(axis=0, ddof=1) / len(one) ** 0.5, other.std(axis=0, ddof=1) / len(other) ** 0.5)
    off = (one.mean(axis=0) - other.mean(axis=0)) / error
    assert dict(zip(QUANTITIES, np.abs(off) < SIGMAS, strict=True)) == dict.fromkeys(QUANTITIES, True)


def test_dynamic_shares_take_less_time_and_energy_than_held_ones(drops: dict[str, np.ndarray]) -> None:
    """With dynamic shares, downlinks take about half the time, as devices that finish leave their shares to others.

    The last uplinks gain as much, but uplinks with power for only a few blocks gain nothing from a wider share.
    """
    downlink, uplink, slowest, joules = drops["dynamic"].mean(axis=0) / drops["static"].mean(axis=0)
    assert max(downlink, slowest) < 0.65
    assert joules < 0.8
    assert uplink < 0.8
