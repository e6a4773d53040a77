"""Compare shipped scenarios of published testbeds with the measurements, as docs/testbeds.md does."""

import csv
from pathlib import Path

import pytest

from edgefl.run.api import simulate
from edgefl.scenario.scenario import load

PIS = Path(__file__).parents[2] / "scenarios" / "raspberry_pis.yaml"
# by devices: seconds of upload, download, training plus testing; fed5g_analysis, paper_figures.ipynb, cells 22, 28
MEASURED = {3: (2.64, 0.94, 28.95), 4: (2.10, 1.06, 19.30), 5: (2.44, 1.43, 16.86), 6: (2.08, 0.89, 15.27)}
SEEDS, ROUNDS = (100, 101, 102, 103), 4


def transfers(out: Path, count: int, seed: int, *more: str) -> tuple[list[float], list[float]]:
    """Return the durations of uploads and downloads in s, including the setup before the first bit."""
    compute = f"workload.flops_per_sample={MEASURED[max(count, 3)][2]}e+9"
    run = simulate(load(PIS, [f"devices.count={count}", f"seed={seed}", compute, *more]), out)
    with (run / "rounds.csv").open() as file:
        start_s = {row["round"]: float(row["start_s"]) for row in csv.DictReader(file)}
    with (run / "devices.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["outcome"] for row in rows} == {"completed"}
    uploads = [float(row["uplink_end_s"]) - float(row["compute_end_s"]) for row in rows]
    return uploads, [float(row["downlink_end_s"]) - start_s[row["round"]] for row in rows]


def test_pis_transfer_as_fast_as_measured(tmp_path: Path) -> None:
    """Uploads agree within 30 %, and are no slower with 6 Pis than with 3; downloads agree within a factor of 2."""
    means = {}
    for count, (upload_s, download_s, _) in MEASURED.items():
        runs = [
            transfers(tmp_path / f"{count}-{seed}", count, seed, f"sessions.rounds={ROUNDS}")
            for seed in SEEDS
        ]
        means[count], down_s = (
            sum(map(sum, times)) / sum(map(len, times)) for times in zip(*runs, strict=True)
        )
        assert means[count] == pytest.approx(upload_s, rel=0.3)
        assert download_s / 2 <= down_s <= 2 * download_s
    assert means[6] < 1.1 * means[3]


def test_a_pi_alone_downloads_by_hand(tmp_path: Path) -> None:
    """A download takes 27 round trips, setup, TCP slow start, and the time for its bits (CQI 8, two layers, TDD)."""
    rate = 2 * 3.3223 * 0.86 * 0.97 / 1.01 * 273 * 12 * 14 / 0.5e-3 * (7 + 6 / 14) / 10
    # TCP sends windows of 10, 20, ... 320 segments, each in less time than the round trip to its acknowledgement
    slow_start_s = 6 * 0.02 - 63 * 10 * 1460 * 8 / rate
    _, (download_s,) = transfers(tmp_path, 1, 100, "sessions.rounds=1")
    frame_s = 0.005
    by_hand_s = 27 * 0.02 + 0.36 + 0.02 + slow_start_s + 23_284_032 / rate
    assert download_s == pytest.approx(by_hand_s, abs=frame_s)
