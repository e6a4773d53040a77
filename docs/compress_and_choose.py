"""Draw docs/compress_and_choose.png from the runs of scenarios/studies/compress_and_choose.yaml.

`python docs/compress_and_choose.py STUDY_DIR` (the study takes 5 to 15 minutes on one core).
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

TARGET = 0.8
# part of the name of a setting's folder -> label, colour
CODECS = {"None": ("whole", "C0"), "top_k": ("top_k, a tenth", "C1"), "qsgd": ("qsgd, 4 bits", "C2")}
MARKS = {"uniform": "o", "fedcs": "s", "oort": "^", "least_energy": "D"}


def cost(rounds: pd.DataFrame) -> tuple[float, float] | None:
    """Return the seconds and joules that a run needs to reach the target, or None if the run misses it."""
    reached = np.flatnonzero(rounds["accuracy"].to_numpy() >= TARGET)
    if not len(reached):
        return None
    last = int(reached[0])
    joules = rounds["energy_j"][: last + 1].sum() + rounds["energy_cut_j"][last]  # as if the run ended there
    return rounds["end_s"][last] - rounds["start_s"][0], joules


def main(study: Path) -> None:
    """Draw the picture: small marks are individual seeds, large marks are geometric means over seeds."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for file in sorted(study.glob("*/*/seed-*/rounds.csv")):
        setting, variant = file.parts[-4], file.parts[-3]
        codec = next(name for name in CODECS if name in setting)
        if found := cost(pd.read_csv(file)):
            points.setdefault((codec, variant), []).append(found)
    figure, axes = plt.subplots(figsize=(7.2, 4.7))
    for (codec, variant), of_seeds in points.items():
        look = {"color": CODECS[codec][1], "marker": MARKS[variant]}
        axes.scatter(*zip(*of_seeds, strict=True), s=16, alpha=0.35, linewidths=0, **look)
        mean = np.exp(np.log(of_seeds).mean(axis=0))
        axes.scatter(*mean, s=80, edgecolors="black", linewidths=0.7, zorder=3, **look)
    for name, colour in CODECS.values():
        axes.scatter([], [], color=colour, label=name)
    for variant, mark in MARKS.items():
        axes.scatter([], [], color="0.4", marker=mark, label=variant)
    axes.set(xscale="log", yscale="log", xlabel="seconds to 80 %", ylabel="joules of all devices to 80 %")
    for axis, ticks in ((axes.xaxis, (5, 10, 20, 40, 80)), (axes.yaxis, (25, 50, 100, 200))):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(ScalarFormatter())
        axis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.3)
    axes.legend(ncols=2, fontsize=8)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
