"""Write a small study with a question, which compares two of its three variants."""

from pathlib import Path

SCENARIO = """\
name: radio
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 1000, flops_per_sample: 1}
"""
STUDY = """\
name: asked
scenario: radio.yaml
seeds: [4, 2]
variants: {a: {}, b: {devices.count: 5}, other: {devices.count: 6}}
question: {metric: latency_s, variants: [a, b], precision: 0.5, budget: 40}
"""
GRID = "grid: {radio.bandwidth_hz: [1.0e+6, 2.0e+6]}\n"


def written(folder: Path, text: str = STUDY) -> Path:
    (folder / "radio.yaml").write_text(SCENARIO)
    (folder / "study.yaml").write_text(text)
    return folder / "study.yaml"
