"""Test on small jobs that the benchmarks measure what they claim, so that they do not break unnoticed."""

import dataclasses
import math
import time
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional

from edgefl.config import registry
from edgefl.engine.selectors import Decider
from edgefl.learning.models.logistic import Logistic
from tests.tools.bench import deciders, floor, interleaved, memory, network, radio, report, training, whole
from tests.tools.bench.floor import Speeds, Work
from tests.tools.bench.jax_rounds import rivals

SMALL = training.TrainingTask("small", Logistic(), (4, 4), devices=3, samples=20, steps=2, batch=8, rounds=1)
ROUNDS = 40
BATCHES_DIFFER = 0.2  # relative; jobs draw their own initial models and batches


def test_rates_are_medians_of_interleaved_repeats() -> None:
    order = []

    def job(name: str, takes_s: list[float]) -> float:
        order.append(name)
        time.sleep(takes_s.pop(0))
        return 1.0

    slow, fast = [0.0, 0.03, 0.3, 0.03], [0.0, 0.01, 0.01, 0.01]
    rates = interleaved({"slow": lambda: job("slow", slow), "fast": lambda: job("fast", fast)}, 3)
    assert order == ["slow", "fast"] * 4
    assert 10 < rates["slow"] < 1 / 0.03, "neither the warm-up nor the outlier counts"
    assert rates["slow"] < rates["fast"] <= 100


@pytest.mark.parametrize("threads", [1, 2])
def test_rivals_and_ours_do_the_same_job(threads: int) -> None:
    """After the same number of rounds, all rivals have the same score on labels that a linear model can predict.

    JAX is tested if it is installed.
    """
    data = SMALL.data()
    data = dataclasses.replace(data, y=(data.x[:, 0, 0] > 127).astype(np.int64))
    inputs = (torch.from_numpy(data.x).float().flatten(1) - training.MEAN) / training.STD
    torch.manual_seed(0)
    losses = []
    of_jax = rivals(SMALL, data).values()
    for job in (training.Loop(SMALL, data), training.Ours(SMALL, data, threads), *of_jax):
        for _ in range(ROUNDS):
            assert job() == 1.0
        weights, bias = job.model[:-10].view(10, -1), job.model[-10:]
        losses.append(float(functional.cross_entropy(inputs @ weights.T + bias, torch.from_numpy(data.y))))
    assert max(losses) < 0.5 * math.log(10)
    assert losses[1:] == pytest.approx([losses[0]] * len(losses[1:]), rel=BATCHES_DIFFER)


def test_a_gpus_task_is_measured_against_its_peak() -> None:
    """A round takes 3 devices x 2 steps x 8 samples x 16 inputs x 10 classes x 4 FLOPs (both passes)."""
    cpu = torch.device("cpu")
    assert training.matrix_peak_flops(cpu, 64) > 0
    figures = training.beside_peak(SMALL, cpu, 1e9, repeats=1)
    flops = 3 * 2 * 8 * (2 + 2) * 16 * 10
    for name, rate in figures["rounds_per_s"].items():
        assert figures["peak_share"][name] == pytest.approx(rate * flops / 1e9)
    assert set(figures["ratio"]) == {"edgefl", "edgefl, bf16"}
    assert report.training({"matrix_peak_flops": 1e9, "tasks": [figures]})


def test_the_floor_is_the_work_at_the_machines_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least time is for the work of 3 devices with 20 images of 4x4, 2 steps of 8 images, and 170 parameters."""
    work = training.work_of(SMALL)
    assert work == Work(flops=3 * 2 * 8 * 4 * 160, bytes=3 * 2 * 8 * 16 + 3 * 3 * 170 * 4, numbers=60)
    speeds = Speeds(flops_per_s=1e9, bytes_per_s=1e6, numbers_per_s=1e3)
    least_s = work.flops / 1e9 + work.bytes / 1e6 + 0.06
    assert speeds.seconds(work) == pytest.approx(least_s)
    with monkeypatch.context() as patched:
        patched.setattr(Speeds, "measured", lambda threads: speeds)
        figures = training._beside_loop(SMALL, {"": (SMALL.model, False)}, 1, 1, floor=True)
    for name, rate in figures["rounds_per_s"].items():
        assert figures["over_floor"][name] == pytest.approx(1 / rate / least_s)
    assert report.training({"tasks": [figures]})
    monkeypatch.setattr(floor, "NUMBERS", 1000)
    measured = Speeds.measured(1)
    assert 1e9 < measured.flops_per_s < 1e13
    assert 1e8 < measured.bytes_per_s < 1e13


def test_whole_runs_are_measured_beside_loops() -> None:
    figures = whole.run(2, 1, dataclasses.replace(SMALL, devices=4), floats=True)
    assert list(figures["wall_ms"]) == list(figures["cpu_ms"])
    own = figures["wall_ms"]["edgefl, 2 threads"]
    for name, ratio in figures["ratio"].items():
        assert ratio == pytest.approx(figures["wall_ms"][name] / own)
    of_jax = rivals(SMALL, SMALL.data())
    assert set(figures["ratio"]) == {"PyTorch loop", "PyTorch loop, 2 processes", *of_jax}
    assert figures["parts"]["start and end"] > 0
    assert report.whole(figures)


def test_network_reports_ratios() -> None:
    figures = network.run(2.0, (20,))
    (row,) = figures["rows"]
    assert row["ratio"] == pytest.approx(
        figures["rival"]["wall_ms_per_device_hour"] / row["wall_ms_per_device_hour"]
    )
    assert figures["rival"]["handovers_per_device_hour"] > 0
    assert report.network(figures).row_count == 1


def test_deciders_are_all_timed_and_the_rival_finds_no_fewer_joules() -> None:
    figures = deciders.run(candidates=12, taken=3, repeats=1)
    every = [registry.get("selectors", name) for name in registry.names("selectors")]
    assert len(figures["ms"]) == sum(issubclass(kind, Decider) for kind in every)
    assert all(ms > 0 for ms in figures["ms"].values())
    rival = figures["rival"]
    assert rival["ratio"] == pytest.approx(rival["ms"] / rival["ours_ms"])
    assert abs(rival["above"]) < 1e-6  # as in test_allocation.py
    assert report.deciders(figures).row_count == len(figures["ms"]) + 1


def test_radio_reports_slots_and_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    small_sizes = {
        "DEVICES": 10,
        "SLOTS": 3000,
        "REPEATS": 1,
        "RENEWAL_SLOTS": 3000,
        "RENEWAL_TRANSFERS": 500,
    }
    for name, small in {**small_sizes, "SLOT_TRANSFERS": 1}.items():
        monkeypatch.setattr(radio, name, small)
    monkeypatch.setattr(radio, "presets", partial(radio.presets, rounds=1, repeats=1, devices=40))
    figures = radio.run()
    ours = [name for name in figures["slots"] if name.startswith("edgefl")]
    assert len(ours) == 5
    assert set(figures["slot_ratio"]) == set(figures["slots"]) - set(ours)
    assert figures["presets"]["ratio"]["journal"] == 1.0
    assert report.radio(figures).row_count == len(figures["slots"]) + 4
    assert radio._interfered(0.99, 6, 10) == 10 * 3000


def test_memory_of_small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SAMPLES", 8)
    figures = memory._row("scaffold", devices=2, rounds=1, steps=1, batch=2)
    assert figures["models_gb"] == pytest.approx(2 * 11_573_066 * 4 / 1e9)
    assert figures["peak_memory_gb"] > figures["models_gb"]
