"""Options for running a study, and the error that names failed runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run_directory.snapshot import DEFAULT, Every
from edgefl.studies.planning import StudyPlan


@dataclass(frozen=True)
class Failed:
    """A failed run of a study.

    Attributes:
        trace: traceback of the failure; empty for a user's error, and for a run that failed before this call.
        earlier: whether the run failed before this call.
    """

    label: str
    path: Path
    error: str
    trace: str = ""
    earlier: bool = False

    def __str__(self) -> str:
        return f"{self.label}: {self.error}"


class IncompleteStudy(EdgeflError):
    """An error raised when some runs of a study failed.

    Args:
        message: how many runs failed, and which.
        path: the study directory.
        failures: the failed runs, in the order in which they failed.
    """

    def __init__(self, message: str, path: Path, failures: Sequence[Failed]) -> None:
        super().__init__(message)
        self.path = path
        self.failures = tuple(failures)


@dataclass(frozen=True)
class StudyOptions:
    """Options for running a study.

    Attributes:
        device: as in `simulate`.
        jobs: number of processes; if None, one per core, a single process on a GPU, or as many as a cluster allows.
        executor: where to execute runs: local: in processes on this machine; inline: in this process; a function that
            receives the `RunScheduler` and `jobs`: on machines that see the directory under the same name.
        begins: called with the runs before the first one starts, and again whenever a study's question adds seeds.
        progress: called with a run's label and each finished round, and with the run's directory when the run is
            complete.
        failed: called with each failed run as soon as the run has failed.
        noted: called with notes for the user, such as on runs that other processes are executing.
        elsewhere: called with the labels of the runs that other processes still execute when this process is done,
            and again whenever a study's question adds seeds.
        wait: whether to wait for runs that other processes execute, and to take over runs whose process dies.
        fail_fast: whether to stop the study at the first failed run.
        retry: whether to repeat runs that failed in an earlier call.
        go_on: whether the directory may already contain part of the study.
        shard: (i, n) to run only the i-th of n parts, counted from 1; (1, 1) for the whole study.
        share: whether runs share training if their learners have the same settings and calls; results do not change.
        every: how often each run takes a snapshot.
    """

    device: str = "auto"
    jobs: int | None = None
    executor: Literal["local", "inline"] | Callable[..., None] = "local"
    begins: Callable[[StudyPlan], None] = lambda part: None
    progress: Callable[[str, Round | Path], None] = lambda label, report: None
    failed: Callable[[Failed], None] = lambda failure: None
    noted: Callable[[str], None] = lambda note: None
    elsewhere: Callable[[Sequence[str]], None] = lambda labels: None
    wait: bool = False
    fail_fast: bool = False
    retry: bool = False
    go_on: bool = True
    shard: tuple[int, int] = (1, 1)
    share: bool = True
    every: Every = DEFAULT
