"""Test that file, seed and machine determine every byte, whatever the threads, load and free memory."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

import edgefl
from edgefl.learning import memory
from tests.tools.code_paths import PATHS, environment

ROOT = Path(__file__).parents[3]
SCENARIO = """\
name: small
devices: {count: 12}
sessions: {name: schedule, count: 1, rounds: 2}
learning: {dataset: digits, local: {steps: 2, batch: 16}, model: %s, algorithm: moon}
"""
THREADS = 3


@contextmanager
def load() -> Iterator[None]:
    """Multiply matrices of all shapes in another thread of this process."""
    ended = threading.Event()

    def work() -> None:
        size = 1
        while not ended.is_set():
            torch.ones(size, 64) @ torch.ones(64, size)
            size = size % 256 + 1

    worker = threading.Thread(target=work)
    worker.start()
    yield
    ended.set()
    worker.join()


@pytest.mark.parametrize("model", ["logistic", "{name: mlp2, hidden: 8}", "cnn2"])
def test_neither_threads_nor_load_nor_free_memory_reach_a_table(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with three threads, other busy threads and little memory writes the same bytes, with each kernel."""
    (tmp_path / "small.yaml").write_text(SCENARIO % model)
    scenario = edgefl.load_scenario(tmp_path / "small.yaml")
    edgefl.simulate(scenario, tmp_path / "alone", device="cpu", threads=1)
    monkeypatch.setattr(memory, "available_bytes", lambda root=None: memory.MUCH)
    torch.set_num_threads(THREADS)
    with load():
        edgefl.simulate(scenario, tmp_path / "in company", device="cpu", threads=THREADS)
    tables = sorted(file.name for file in (tmp_path / "alone").glob("*.csv"))
    assert {"rounds.csv", "devices.csv"} <= set(tables)
    for table in tables:
        one, other = (tmp_path / run / table for run in ("alone", "in company"))
        assert one.read_bytes() == other.read_bytes(), table


# Functions that inspect the machine; our modules may use them to refuse large runs, to choose a number of threads, or
# to choose where rows are stored. Sizes that affect arithmetic are constants, above all `batching.CHUNK_BYTES`.
QUESTIONS = [
    "available_bytes",
    "available_cores",
    "cpu_count",
    "sched_getaffinity",
    "get_device_properties",
    "mem_get_info",
    "get_num_threads",
    "getloadavg",
    "sysconf",
]
MAY_ASK = {
    "edgefl/learning/memory.py",  # most memory that a run may need
    "edgefl/scenario/memory_needs.py",
    "edgefl/learners/model_size.py",
    "edgefl/learners/building.py",  # number of threads that train chunks in parallel
    "edgefl/learning/updates/device_states.py",  # whether rows fit on the GPU
    "edgefl/run/plan.py",  # threads
}
ROOMS = ("learning", "engine", "mobility", "places", "learners", "scenario", "run")


def test_only_who_refuses_or_counts_threads_asks_about_the_machine() -> None:
    folders = [ROOT / "channel", *(ROOT / "edgefl" / room for room in ROOMS)]
    asking = {
        str(file.relative_to(ROOT))
        for folder in folders
        for file in folder.rglob("*.py")
        if any(question in file.read_text() for question in QUESTIONS)
    }
    assert asking == MAY_ASK


# -- the code paths under which `make paths` runs tests ------------------------------------------------

SHOW = """
import torch
from numpy._core._multiarray_umath import __cpu_features__ as numpy_has
a = torch.ones(64, 64)
with torch.no_grad(), torch.backends.mkl.verbose(1), torch.backends.mkldnn.verbose(1):
    a @ a
    torch.nn.Conv2d(8, 8, 3)(torch.ones(2, 8, 16, 16))
print("torch", torch.backends.cpu.get_cpu_capability())
print("numpy", [name for name in ("X86_V3", "X86_V4") if numpy_has.get(name)])
"""
IN_FORCE = {
    "avx2": ("torch AVX2", "isa:Intel AVX2\n", "numpy ['X86_V3']"),
    "sse": ("torch DEFAULT", "isa:Intel SSE4.1\n", "CNR:COMPATIBLE", "numpy []"),
}


@pytest.mark.skipif(
    "AVX2" not in torch.backends.cpu.get_cpu_capability()
    and "AVX512" not in torch.backends.cpu.get_cpu_capability(),
    reason="a processor without these instructions, or a test under one of the paths",
)
@pytest.mark.parametrize("path", PATHS)
def test_a_code_path_is_in_force(path: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment(path), capture_output=True, text=True, check=True
    )
    for words in IN_FORCE[path]:
        assert words in done.stdout
