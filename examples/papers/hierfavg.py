"""Repeat Liu, Zhang, Song and Letaief, ICC 2020, on MNIST: python -m edgefl.examples.papers.hierfavg

Fifty devices in five cells hold samples of one label each. A cloud round has 60 local steps: kappa1 steps in each of
kappa2 rounds of a cell. A cell's devices together have ten or two labels (`labels_per_cell`). A local step takes
0.022 s and 2.4 mJ, an upload 0.123 s and 62 mJ, and the exchange with the cloud 1.23 s, according to a summary of the
paper; downloads take negligible time. The output is the number of cloud rounds until the accuracy is 85 %, and the
seconds and joules of a device.

The model is logistic regression instead of the paper's network of 21,840 weights, which takes more than 20 s of one
core for each cloud round; uploads take as long as that network's uploads. The learning rate is constant, 0.01.
"""

from math import log10
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import edgefl
from edgefl.learning.partitions import PartitionInputs, Staying
from edgefl.rng import Streams

HERE = __name__ if __name__ != "__main__" else "edgefl.examples.papers.hierfavg"
CELLS, DEVICES, LABELS, STEPS, BATCH = 5, 50, 10, 60, 20
BITS = 7850 * 32
STEP_S, STEP_J, UPLOAD_S, UPLOAD_J, CLOUD_S, CLOCK_HZ = 0.022, 2.4e-3, 0.123, 0.062, 1.23, 1e9
QUANTITIES = ("cloud rounds", "seconds", "joules")
TARGET, SEED = 0.85, 100
LENGTHS = {1: 28, 2: 18, 4: 13, 10: 14}  # kappa2 -> number of cloud rounds that are run


class OneLabel(Staying):
    """Give each device an equal part of one label's samples; a cell's ten devices have the given number of labels."""

    labels_per_cell: int = LABELS

    def owners(
        self, labels: np.ndarray, devices: int, streams: Streams, inputs: PartitionInputs
    ) -> np.ndarray:
        each = devices // CELLS  # number of devices in a cell
        place = np.arange(devices)
        label_of = (place // each * self.labels_per_cell + place % each % self.labels_per_cell) % LABELS
        owner = np.full(len(labels), -1)
        for label in range(LABELS):
            samples, holders = np.flatnonzero(labels == label), np.flatnonzero(label_of == label)
            owner[samples] = holders[np.arange(len(samples)) % len(holders)]
        return owner


def run(kappa2: int, labels_per_cell: int) -> tuple[int, float, float]:
    """Return the number of cloud rounds to the target, and the seconds and joules per device that they take."""
    with TemporaryDirectory() as folder:
        links = Path(folder) / "links.csv"
        rows = [f"0,{device},{device * CELLS // DEVICES},1e11,{BITS / UPLOAD_S}" for device in range(DEVICES)]
        links.write_text("\n".join(["time_s,device,cell,downlink_bit_s,uplink_bit_s", *rows]) + "\n")
        described = {
            "name": "hierfavg",
            "seed": SEED,
            "layout": {"sites": [[1000 * cell, 0] for cell in range(CELLS)], "federations": "all"},
            "radio": {"measured": {"path": str(links)}},
            "devices": {
                "count": DEVICES,
                "transmit_power_dbm": 10 * log10(1000 * UPLOAD_J / UPLOAD_S),
                "circuit_power_w": 0,
                "clock_hz": CLOCK_HZ,
                "flops_per_cycle": 1,
                "capacitance": STEP_J / (STEP_S * CLOCK_HZ**3),
            },
            "sessions": {"name": "schedule", "count": 1, "rounds": kappa2 * LENGTHS[kappa2]},
            "cloud": {"every": kappa2, "backhaul_bps": 2 * BITS / CLOUD_S},
            "record": {"devices": "none"},
            "learning": {
                "dataset": "mnist",
                "partition": {"name": f"{HERE}:OneLabel", "labels_per_cell": labels_per_cell},
                "model": "logistic",
                "local": {
                    "steps": STEPS // kappa2,
                    "batch": BATCH,
                    "lr": 0.01,
                    "momentum": 0,
                    "lr_schedule": "constant",
                },
                "cost": {"flops_per_sample": STEP_S * CLOCK_HZ / BATCH},
                "evaluation": {"every": kappa2},
            },
        }
        rounds = edgefl.simulate(described, out=f"{folder}/run", progress=False, threads=1).rounds
    clouds = rounds[rounds["cloud_version"].notna()].groupby("cloud_version")
    number = 1 + int(np.flatnonzero(clouds["accuracy"].mean() >= TARGET)[0])
    end_s = float(clouds["end_s"].max().iloc[number - 1])
    return number, end_s, float(rounds.loc[rounds["end_s"] <= end_s, "energy_j"].sum()) / DEVICES


def main() -> None:
    """Print cloud rounds, seconds and joules to the target as a table of comma-separated values."""
    print("setting,variant,ours,ours_std,seeds")
    for labels_per_cell in (10, 2):
        for kappa2 in LENGTHS:
            setting = f"{labels_per_cell} labels a cell; kappa1 {STEPS // kappa2}; kappa2 {kappa2}"
            for name, value in zip(QUANTITIES, run(kappa2, labels_per_cell), strict=True):
                print(f"{setting},{name},{value:.4g},,1", flush=True)


if __name__ == "__main__":
    main()
