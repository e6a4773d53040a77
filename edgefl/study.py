"""A study: one base scenario, named variants and seeds. Every variant of a seed meets the same world."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty
from typing import Any, Self

from pydantic import Field, model_validator

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.results import free_directory, fresh_directory
from edgefl.scenario import Scenario, Section, from_source
from edgefl.simulation import Membership, simulate
from edgefl.yaml_source import Source


class Study(Section):
    """What a study file says."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="letters, digits, . _ -")
    scenario: str = Field(description="base scenario, relative to the study file")
    seeds: list[int] = Field(min_length=1, description="each variant runs once per seed")
    reference: str = Field(description="the proposed variant, to whose peak the others are compared")
    variants: dict[str, dict[str, Any] | None] = Field(
        min_length=1, description="name -> dotted overrides of the base scenario"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.reference not in self.variants:
            raise ValueError(f"reference '{self.reference}' is none of the variants {list(self.variants)}")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds are given twice in {self.seeds}")
        return self


@dataclass(frozen=True)
class Run:
    """One run of a study."""

    variant: str
    scenario: Scenario
    path: Path
    member: Membership

    @property
    def label(self) -> str:
        return f"{self.variant} seed {self.scenario.seed}"


def load(path: str | Path) -> tuple[Study, dict[str, Scenario]]:
    """A study and the base-seed scenario of each variant, all validated.

    Raises:
        EdgeflError: names file, line and remedy.
    """
    source = Source(Path(path))
    study = source.validate(Study)
    scenarios = {}
    for variant, overrides in study.variants.items():
        base = Source(source.path.parent / study.scenario)
        for key, value in (overrides or {}).items():
            base.override(key, value, source.where(("variants", variant, key)))
        scenarios[variant] = from_source(base)
    return study, scenarios


def run(
    path: str | Path,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    jobs: int | None = None,
    progress: Callable[[str, Round | None], None] = lambda label, row: None,
) -> Path:
    """Run a study into `out/VARIANT/seed-N`.

    Args:
        path: study file.
        out: new or empty directory; None: `runs/NAME` in the current folder, numbered if taken.
        device: as in `simulate`.
        jobs: processes at once; None: one per core (one in all on a GPU).
        progress: called with a run's label and each finished round, and with None when the run is complete.

    Returns:
        The study directory.
    """
    study, scenarios = load(path)
    directory = fresh_directory(Path(out) if out is not None else free_directory(Path("runs"), study.name))
    runs = [
        Run(
            variant,
            scenario.model_copy(update={"seed": seed}),
            directory / variant / f"seed-{seed}",
            Membership(study.name, variant, study.reference),
        )
        for seed in study.seeds
        for variant, scenario in scenarios.items()
    ]
    (directory / "study.yaml").write_text(Path(path).read_text(encoding="utf-8"), encoding="utf-8")
    workers = min(len(runs), jobs or (os.cpu_count() or 1))
    if workers == 1:
        for one in runs:
            report = partial(progress, one.label)
            simulate(one.scenario, one.path, device=device, on_round=report, member=one.member)
            progress(one.label, None)
    else:
        _run_parallel(runs, device, workers, progress)
    return directory


# What a worker process was given when it started.
_worker: tuple[Any, Any] | None = None


def _start_worker(reports: Any, stop: Any) -> None:
    global _worker
    _worker = (reports, stop)


def _work(one: Run, device: str) -> None:
    assert _worker is not None
    reports, stop = _worker

    def report(row: Round) -> None:
        reports.put((one.label, row))
        if stop.is_set():
            raise EdgeflError("stopped, because another run of the study failed")

    simulate(one.scenario, one.path, device=device, on_round=report, member=one.member)
    reports.put((one.label, None))


def _run_parallel(
    runs: list[Run], device: str, workers: int, progress: Callable[[str, Round | None], None]
) -> None:
    # spawn: a forked child would inherit PyTorch's thread pools in an undefined state
    context = multiprocessing.get_context("spawn")
    reports, stop = context.Queue(), context.Event()
    with ProcessPoolExecutor(workers, context, _start_worker, (reports, stop)) as pool:
        futures = {pool.submit(_work, one, device): one for one in runs}
        pending = set(futures)
        try:
            while pending:
                _forward(reports, progress)
                done, pending = wait(pending, timeout=0, return_when=FIRST_EXCEPTION)
                for future in done:
                    error = future.exception()
                    if isinstance(error, EdgeflError):
                        raise EdgeflError(f"{futures[future].label}: {error}") from error
                    if error is not None:
                        raise error
            _forward(reports, progress)
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _forward(reports: Any, progress: Callable[[str, Round | None], None]) -> None:
    """Pass on what workers have reported; returns when nothing has come for a moment."""
    try:
        while True:
            progress(*reports.get(timeout=0.1))
    except Empty:
        return
