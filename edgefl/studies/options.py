"""How the runs of a study are carried out, and the error that names those that failed."""

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
    """A run of a study that failed; trace: where in the code, if it was no error of the user's."""

    label: str
    path: Path
    error: str
    trace: str = ""

    def __str__(self) -> str:
        return f"{self.label}: {self.error}"


class IncompleteStudy(EdgeflError):
    """Some runs of a study have failed.

    Args:
        message: how many, and which.
        path: the study directory.
        failures: in the order in which they came.
    """

    def __init__(self, message: str, path: Path, failures: Sequence[Failed]) -> None:
        super().__init__(message)
        self.path = path
        self.failures = tuple(failures)


@dataclass(frozen=True)
class StudyOptions:
    """How the runs of a study are carried out.

    Attributes:
        device: as in `simulate`.
        jobs: processes at once; None: one per core (one in all on a GPU), or as many as the cluster has room for.
        executor: where runs are carried out: in processes of this machine, in this process, or by a function
            of the `RunScheduler` and `jobs`, on machines that see the directory under the same name.
        begins: told the runs before any of them begins; of a study with a question again whenever seeds are added.
        progress: called with a run's label and each finished round, and with None when the run is complete.
        failed: called with each run that fails, at once.
        noted: told what the user should know, such as runs that other processes are doing.
        elsewhere: called with the labels of the runs that other processes still do when this one has done its own; of
            a study with a question again whenever seeds are added.
        wait: whether to wait for these runs, and to do them if those processes end.
        fail_fast: end the study with the first run that fails.
        retry: do runs again that have failed before.
        go_on: whether a directory may hold some of the study already.
        shard: (i, n): only the i-th of n parts, from 1 on.
        share: whether runs whose learners are told and asked the same share a training; results are the same.
        every: how often a run takes a snapshot.
    """

    device: str = "auto"
    jobs: int | None = None
    executor: Literal["local", "inline"] | Callable[..., None] = "local"
    begins: Callable[[StudyPlan], None] = lambda part: None
    progress: Callable[[str, Round | None], None] = lambda label, row: None
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
