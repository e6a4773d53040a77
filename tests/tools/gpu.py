"""Do everything that needs a GPU in one command: tests, speed, memory, repeated runs, and a study on a shared GPU.

    make gpu
    python -m tests.tools.gpu --device cuda --out runs/gpu
    python -m tests.tools.gpu --device cpu     a rehearsal: all steps in small, on the CPU

Nothing is downloaded. The results are in OUT/gpu.md. If a step fails, other steps still run; the exit code is 1.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from tests.tools.bench.training import TrainingTask

ROOT = Path(__file__).parents[2]
EDGEFL = [sys.executable, "-c", "from edgefl.commands.cli import main; main()"]
BENCH = [sys.executable, "-m", "tests.tools.bench"]
# small runs that use each kind of layer, on data that come with scikit-learn or are generated
RUNS = {
    "logistic regression": [],
    "a convolutional network": ["learning.model={name: cnn2}", "learning.local.lr=0.01"],
    "ResNet-18": ["learning.model=resnet18", "learning.local.lr=0.01", "devices.count=8"],
    "a CNN, bf16": [
        *("learning.model=svhn_cnn", "learning.local.lr=0.01"),
        "learning.local.precision=bf16",
    ],
    "SCAFFOLD": ["learning.algorithm=scaffold"],
    "MOON, a CNN": ["learning.algorithm=moon", "learning.model={name: cnn2}", "learning.local.lr=0.01"],
}
SCENARIO = {
    "name": "gpu",
    "devices": {"count": 20},
    "sessions": {"name": "schedule", "count": 2, "rounds": 5},
    "learning": {
        "dataset": "digits",
        "partition": {"name": "dirichlet", "alpha": 0.5},
        "model": "logistic",
        "warm_start": {"name": "similarity", "scale": 10},
        "local": {"lr": 0.003},
    },
}
SHARING = 3  # processes on one GPU
# operations that launch no kernel, since they only view or reserve memory, and operations whose result the host needs
NO_KERNEL = {
    *("view", "_unsafe_view", "_reshape_alias", "expand", "t", "transpose", "permute", "slice", "select"),
    *(
        "as_strided",
        "unsqueeze",
        "squeeze",
        "unbind",
        "split",
        "split_with_sizes",
        "detach",
        "alias",
        "lift_fresh",
    ),
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"),
}
WAITED_FOR = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero")
OPERATION_S = (
    5e-6  # host time per operation; small kernels take less, so the host limits a round of small models
)


@dataclass(frozen=True)
class Asked:
    """Options for the steps."""

    device: str
    out: Path

    @property
    def rehearsal(self) -> bool:
        return self.device == "cpu"


def machine(asked: Asked) -> str:
    """Describe the machine and the versions of libraries."""
    import torch

    facts = [f"Python {platform.python_version()}", f"PyTorch {torch.__version__}", platform.processor()]
    if not asked.rehearsal:
        about = torch.cuda.get_device_properties(0)
        facts += [about.name, f"{about.total_memory / 2**30:.0f} GiB", f"CUDA {torch.version.cuda}"]
    return ", ".join(filter(None, facts))


def tests(asked: Asked) -> str:
    """Run the tests that need a GPU, which are skipped on a CPU."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-m", "cuda", "tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1]
    if done.returncode:
        raise AssertionError(done.stdout[-4000:] + done.stderr[-2000:])
    return last


def training(asked: Asked) -> str:
    """Measure training rounds against the same loop on the same device."""
    figures = bench("training", asked, "--repeats", "1" if asked.rehearsal else "5", short=asked.rehearsal)
    lines = ["| task | | rounds/s | relative to the loop | share of the peak |", "|---|---|---:|---:|---:|"]
    for task in figures["tasks"]:
        for name, rate in task["rounds_per_s"].items():
            ratio, share = task["ratio"].get(name), task.get("peak_share", {}).get(name)
            shown = f"{ratio:.1f}" if ratio else "", f"{100 * share:.2g} %" if share else ""
            lines.append(f"| {task['title']} | {name} | {rate:.3g} | {shown[0]} | {shown[1]} |")
    return "\n".join(lines)


def memory(asked: Asked) -> str:
    """Measure the memory of a hundred ResNet-18 models, as in the journal paper's Table IX."""
    figures = bench("memory", asked, *(["--rounds", "1", "--batch", "2"] if asked.rehearsal else []))
    lines = ["| algorithm | peak GB | models GB | s |", "|---|---:|---:|---:|"]
    for row in figures["rows"]:
        values = f"{row['peak_memory_gb']:.1f} | {row['models_gb']:.1f} | {row['wall_s']:.0f}"
        lines.append(f"| {row['algorithm']} | {values} |")
    return "\n".join(lines)


def runs_twice(asked: Asked) -> str:
    """Run small scenarios twice, and check that all tables have the same bytes."""
    lines = ["| run | s | the same bytes | accuracy |", "|---|---:|---|---:|"]
    scenario = write(asked.out / "gpu.yaml", SCENARIO)
    different = []
    for name, overrides in RUNS.items():
        if asked.rehearsal:
            overrides = [*overrides, "sessions.count=1", "sessions.rounds=1", "devices.count=3"]
        folders = [asked.out / "twice" / f"{name.replace(' ', '_')}-{number}" for number in (1, 2)]
        taken = []
        for folder in folders:
            began = time.perf_counter()
            run(asked, scenario, folder, overrides)
            taken.append(time.perf_counter() - began)
        tables = sorted(path.name for path in folders[0].glob("*.csv"))
        unlike = [name for name in tables if len({(folder / name).read_bytes() for folder in folders}) > 1]
        different += [f"{name}: {', '.join(unlike)}"] if unlike else []
        accuracy = accuracy_of(folders[0])
        lines.append(f"| {name} | {min(taken):.1f} | {'no' if unlike else 'yes'} | {100 * accuracy:.1f} % |")
    text = "\n".join(lines)
    if different:
        raise AssertionError(f"{text}\n\nthe same run twice has different bytes: {'; '.join(different)}")
    return text


def as_on_a_cpu(asked: Asked) -> str:
    """Check that radio and energy equal those of a CPU exactly, and accuracies within 0.03."""
    import pandas as pd

    scenario = write(asked.out / "gpu.yaml", SCENARIO)
    here, there = asked.out / "as-cpu" / "device", asked.out / "as-cpu" / "cpu"
    run(asked, scenario, here, [])
    run(Asked("cpu", asked.out), scenario, there, [])
    ours, cpus = (pd.read_csv(folder / "rounds.csv") for folder in (here, there))
    physical = [column for column in cpus if column not in ("accuracy", "loss")]
    pd.testing.assert_frame_equal(ours[physical], cpus[physical])
    apart = float((ours.accuracy - cpus.accuracy).abs().max())
    assert apart < 0.03, f"accuracies are {apart:.3f} apart"
    return f"seconds, bits and joules are equal; accuracies differ by {apart:.4f} at most"


def shared_by_a_study(asked: Asked) -> str:
    """Let several processes of a study share the device, and check that tables equal those of a single process."""
    scenario = write(asked.out / "gpu.yaml", SCENARIO)
    seeds = list(range(1, SHARING + 1))
    study = write(
        asked.out / "study.yaml",
        {"name": "shared", "scenario": scenario.name, "seeds": seeds, "variants": {"alone": {}}},
    )
    taken = {}
    for jobs in (1, SHARING):
        began = time.perf_counter()
        folder = asked.out / f"study-{jobs}"
        command(asked, "study", str(study), "--jobs", str(jobs), "--out", str(folder))
        taken[jobs] = time.perf_counter() - began
    for seed in seeds:
        tables = [asked.out / f"study-{jobs}/alone/seed-{seed}/rounds.csv" for jobs in taken]
        assert tables[0].read_bytes() == tables[1].read_bytes(), (
            f"seed {seed} has other results if processes share the device"
        )
    apart, together = taken[1], taken[SHARING]
    return f"{SHARING} runs: {apart:.1f} s one after the other, {together:.1f} s at the same time; the same bytes"


def waits_of_the_host(asked: Asked) -> str:
    """Count the places at which the host waits for the device in a round of training."""
    import torch

    from tests.tools.bench.training import LOGISTIC, Ours

    if asked.rehearsal:
        return "a CPU has no waits to count"
    job = Ours(LOGISTIC, LOGISTIC.data(), 1, torch_device=torch.device(asked.device), batching="auto")
    job()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            job()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    places = {f"{Path(each.filename).name}:{each.lineno}" for each in caught}
    return f"{len(caught)} in a round, at {', '.join(sorted(places)) or 'no place'}"


def operations(task: "TrainingTask") -> Counter[str]:
    """Count the operations of a round of stacked training by name, as they would be sent to a GPU.

    A CPU with a GPU's chunk size is enough for this. More devices in a chunk need no more operations.
    """
    from edgefl.learning.local.batching import CHUNK_BYTES
    from tests.tools.bench.training import Ours
    from tests.tools.operations import Operations

    few = replace(task, devices=4, samples=64, batch=8)
    job = Ours(few, few.data(), 1, batching="stacked", memory_bytes=CHUNK_BYTES["cuda"])
    job()
    with Operations() as asked:
        job()
    return Counter(asked.names)


def launches(_: Asked) -> str:
    """Tabulate the operations of a round, and the host's time for them."""
    from tests.tools.bench.training import CNN, LOGISTIC, RESNET

    lines = ["| task | operations | kernels | waits | of the host, ms |", "|---|---:|---:|---:|---:|"]
    for task in (LOGISTIC, CNN, RESNET):
        names = operations(task)
        kernels = names.total() - sum(names[name] for name in NO_KERNEL)
        waits = sum(names[name] for name in WAITED_FOR)
        host_ms = 1e3 * names.total() * OPERATION_S
        lines.append(f"| {task.title} | {names.total()} | {kernels} | {waits} | {host_ms:.2g} |")
    return "\n".join(lines)


STEPS: dict[str, Callable[[Asked], str]] = {
    "Machine": machine,
    "Operations of a round": launches,
    "Host waits for the device": waits_of_the_host,
    "Runs, each twice": runs_twice,
    "Beside a CPU": as_on_a_cpu,
    "A study that shares the device": shared_by_a_study,
    "Training": training,
    "Memory": memory,
    "Tests": tests,
}


def write(path: Path, content: dict[str, Any]) -> Path:
    """Write a YAML file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def command(asked: Asked, *arguments: str, program: Sequence[str] = EDGEFL) -> str:
    """Run edgefl or another program on the device, and return its output."""
    words = [*program, *arguments, "--device", asked.device]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join([*program, *arguments])}: {done.stderr[-3000:]}")
    return done.stdout


def run(asked: Asked, scenario: Path, folder: Path, overrides: list[str]) -> None:
    """Run a scenario into a folder."""
    given = [word for override in overrides for word in ("--set", override)]
    command(asked, "run", str(scenario), "--out", str(folder), *given)


def bench(name: str, asked: Asked, *arguments: str, short: bool = False) -> dict[str, Any]:
    """Return the figures of a benchmark."""
    words = [name, "--json", *arguments, *(["--short"] if short else [])]
    figures: dict[str, Any] = json.loads(command(asked, *words, program=BENCH))
    return figures


def accuracy_of(folder: Path) -> float:
    """Return the final accuracy of a run."""
    import pandas as pd

    return float(pd.read_csv(folder / "rounds.csv").accuracy.dropna().iloc[-1])


def main(arguments: list[str] | None = None) -> int:
    """Run all steps; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--out", type=Path, default=Path("runs/gpu"))
    parser.add_argument("--only", nargs="*", choices=list(STEPS), help="of the steps")
    given = parser.parse_args(arguments)
    asked = Asked(given.device, given.out.resolve())
    if asked.out.exists() and any(asked.out.iterdir()):
        print(f"{given.out} is not empty: delete it, or choose another --out", file=sys.stderr)
        return 2
    asked.out.mkdir(parents=True, exist_ok=True)
    page, failed = asked.out / "gpu.md", []
    rehearsed = ", rehearsed on a CPU with small tasks" if asked.rehearsal else ""
    page.write_text(f"# Results of a GPU{rehearsed}\n")
    for title in given.only or STEPS:
        print(f"{title} ...", flush=True)
        began = time.perf_counter()
        try:
            text = STEPS[title](asked)
        except Exception:  # GPU time is scarce, so the other steps still run
            failed.append(title)
            text = f"**Failed.**\n\n```\n{traceback.format_exc()[-6000:].strip()}\n```"
        section = f"\n## {title}\n\n{text}\n\n({time.perf_counter() - began:.0f} s)\n"
        with page.open("a") as file:
            file.write(section)
        print(section, flush=True)
    print(f"{page}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
