"""Test the output of `edgefl validate` about a run: bits in each direction, and memory."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import edgefl
from edgefl.scenario.scenario import load
from edgefl.studies.validation import check, summary
from tests.refusals import refused_at

DIGITS = """\
name: digits
devices: {count: 8}
sessions: {name: schedule, count: 2, rounds: 3}
learning: {dataset: digits, partition: iid, model: logistic, local: {batch: 16}}
"""

WORLD = """\
name: world
devices: {count: 20000, mobility: random_waypoint}
layout: {rings: 1, isd_m: 500, federations: all}
rounds: {selector: {name: uniform, count: 20}}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 100000, flops_per_sample: 1000}
"""
# a separate process, which finally prints its peak memory
COMMAND = """\
import sys
from edgefl.commands.cli import main
from edgefl.learning.memory import peak_bytes
try:
    main(sys.argv[1:])
finally:
    print("held", int(peak_bytes()))
"""
OFF = 0.25  # allowed error of the estimate, relative to a run's memory


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    path = tmp_path / "digits.yaml"
    path.write_text(DIGITS)
    return path


@pytest.mark.parametrize("key", ["variants", "grid"])
def test_a_study_without_scenario_is_checked_as_a_study(key: str, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(f"name: s\nseeds: [1]\n{key}: {{a: {{}}}}\n")
    with refused_at("", f"{file}:1 scenario: is missing") as refused:
        check(file)
    assert "unknown key" not in str(refused.value)
    with refused_at("", "is a study; `edgefl study"):
        load(file)


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        ("fedavg", "20,800"),
        ("fedacg", "20,800"),
        ("scaffold", "41,600"),
        ("hypcluster", "20,800 down for each model from which devices choose, 20,800 up"),
        ("feddyn", "20,800 down (41,600 until a device's first update of a session arrives), 20,800 up"),
        ("feddc", "41,600 down (62,400 until a device's first update of a session arrives), 41,600 up"),
    ],
)
def test_what_goes_down_and_up_is_said(algorithm: str, said: str, digits: Path) -> None:
    """The payload is 650 numbers of 32 bits: a logistic regression of 8 x 8 pixels and ten classes."""
    checked = check(digits, overrides=[f"learning.algorithm={algorithm}"])
    assert f"bits per transfer: {said}" in summary(checked)


@pytest.mark.parametrize("way", ["uplink_codec", "downlink_codec"])
def test_bits_are_said_to_be_uncompressed(way: str, digits: Path) -> None:
    checked = check(digits, overrides=[f"learning.{way}=qsgd"])
    assert "bits per transfer: 20,800 (uncompressed)" in summary(checked)


def printed(folder: Path, *words: str) -> str:
    """Run a command in a separate process; return its output and peak memory."""
    environment = {**os.environ, "PYTHONPATH": str(Path(edgefl.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", COMMAND, *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, where peak memory is in kilobytes")
@pytest.mark.parametrize("text", [DIGITS, WORLD], ids=["training", "world"])
def test_memory_is_about_what_a_run_holds(text: str, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(text)
    told = re.search(r"memory: about ([\d.]+) GB for a run", printed(tmp_path, "validate", "one.yaml"))
    held = int(printed(tmp_path, "run", "one.yaml").rpartition("held ")[2])
    assert float(told[1]) == pytest.approx(held / 1e9, rel=OFF)
