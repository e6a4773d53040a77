"""Execute a study's runs on a Ray cluster, each as a task with one core and a share of a GPU.

All machines need edgefl, and must see the study's directory under the same path. If Ray reports that a task's process
or node is lost, the task's run resumes elsewhere from its last snapshot, as after any kill. Ray is loaded only when a
cluster is requested.
"""

import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgefl.config import outside
from edgefl.errors import EdgeflError
from edgefl.run_directory.interruption import Interrupted, interruptible
from edgefl.run_directory.status import this_process
from edgefl.studies import run_locks
from edgefl.studies.directory import FILE
from edgefl.studies.one_run import ELSEWHERE, RunTask, work
from edgefl.studies.scheduler import RunScheduler
from edgefl.studies.workers import GRACE_S, LOOK_AGAIN_S, Failure

MOST_LOSSES = 3  # lost processes of a run after which its node is assumed to have too little memory
REPORT_S = 0.5  # seconds between two batches of a run's reports
GOES_ON = "results written so far are kept; the same command continues the study"


@dataclass(frozen=True)
class OnRay:
    """An executor of `StudyOptions` that executes all runs of a study on a Ray cluster.

    Attributes:
        address: `auto` for the cluster of this machine; `local` for a cluster started here for the study; host:port,
            or ray://host:port.
        gpus: share of a GPU that each run uses; 0 if runs use no GPU.
    """

    address: str = "auto"
    gpus: float = 0.0

    def __call__(self, scheduler: RunScheduler, jobs: int | None) -> None:
        """Execute a study's runs, `jobs` at a time; by default, as many as the cluster currently has room for.

        Raises:
            EdgeflError: Ray is not installed, there is no such cluster, or the cluster has no GPU.
        """
        # Ray installs its own signal handlers
        with _connected(self.address) as ray, interruptible():
            _Cluster(ray, scheduler, self.gpus, jobs).work()


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Yield the package ray with an open connection; a connection that existed before stays open.

    Args:
        address: `auto` for the cluster of this machine; `local` for a cluster that is started here and ends with
            the study; host:port, or ray://host:port.

    Raises:
        EdgeflError: Ray is not installed, or there is no such cluster, or the cluster fails during use and its other
            machines cannot take over.
    """
    try:
        import ray
    except ImportError as error:
        raise EdgeflError("--executor ray needs the package ray: pip install 'edgefl-cosim[ray]'") from error
    ours = not ray.is_initialized()
    if ours:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # Ray warns if tasks request no GPU
                ray.init(address=address, log_to_driver=False, logging_level="WARNING")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise EdgeflError(
                f"--executor ray: no cluster at address '{address}' ({error}); start one with"
                " `ray start --head`, or give --address local"
            ) from error
    try:
        yield ray
    except ray.exceptions.ObjectStoreFullError as error:
        raise EdgeflError(
            f"--executor ray: the cluster's memory for data and models is full ({_first_line(error)}); start its"
            f" nodes with a larger --object-store-memory, or lower --jobs; {GOES_ON}"
        ) from error
    except ray.exceptions.RayError as error:
        raise EdgeflError(
            f"--executor ray: the cluster has failed ({type(error).__name__}: {_first_line(error)}); see `ray"
            f" status`; {GOES_ON}"
        ) from error
    finally:
        if ours:
            ray.shutdown()


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")


@dataclass
class _Sent:
    """A task sent to the cluster; `owner` is the process that began the task, once known."""

    task: RunTask
    owner: Mapping[str, object] = field(default_factory=dict)


class _Cluster:
    def __init__(self, ray: Any, scheduler: RunScheduler, gpus: float, jobs: int | None) -> None:
        self._ray, self._scheduler, self._gpus, self._jobs = ray, scheduler, gpus, jobs
        if gpus and not ray.cluster_resources().get("GPU"):
            raise EdgeflError(
                f"--gpus {gpus:g}: the cluster has no GPU; leave --gpus out, or start nodes with GPUs"
            )
        here = ray.get_runtime_context().get_node_id()
        stay = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        self._mailbox = ray.remote(_Mailbox).options(num_cpus=0, scheduling_strategy=stay).remote()
        # Ray must not retry lost tasks, since claims decide which process continues the run
        self._remote = ray.remote(_carry_out).options(num_cpus=1, num_gpus=gpus, max_retries=0)
        self._sent: dict[Any, _Sent] = {}  # keys: Ray's references to the tasks' results
        self._numbers: dict[int, _Sent] = {}
        self._lost: list[tuple[float, RunTask]] = []  # tasks with the time from which they may begin again
        self._losses: dict[Path, int] = {}

    def work(self) -> None:
        try:
            while True:
                self._put_back()
                while len(self._sent) < self._room() and (task := self._scheduler.take()) is not None:
                    self._send(task)
                if not (self._sent or self._lost or self._scheduler.waits()):
                    return
                self._wait()
        finally:
            self._cancel()

    def _room(self) -> int:
        if self._jobs is not None:
            return self._jobs
        have = self._ray.cluster_resources()
        room = have.get("CPU", 0.0)
        if self._gpus:
            room = min(room, have.get("GPU", 0.0) / self._gpus)
        return max(1, int(room))

    def _send(self, task: RunTask) -> None:
        number = len(self._numbers)
        sent = self._numbers[number] = _Sent(task)
        allowed = os.environ.get(outside.ALLOW, "")
        self._sent[self._remote.remote(task, self._mailbox, number, str(Path.cwd()), allowed)] = sent

    def _wait(self) -> None:
        ended: list[Any] = []
        if self._sent:
            ended, _ = self._ray.wait(list(self._sent), num_returns=1, timeout=LOOK_AGAIN_S)
        else:
            time.sleep(LOOK_AGAIN_S)
        self._listen()
        for reference in ended:
            sent = self._sent.pop(reference)
            try:
                result: str | Failure | None = self._ray.get(reference)
            except (
                self._ray.exceptions.RayTaskError
            ) as error:  # the task failed outside the run, such as while being unpickled
                result = Failure.of(error)
            except self._ray.exceptions.RayError as error:
                self._lose(sent, error)
                continue
            if isinstance(result, str):
                self._scheduler.reported(sent.task, result)
            self._scheduler.ended(sent.task, result if isinstance(result, Failure) else None)

    def _listen(self) -> None:
        """Pass the reports of the cluster's runs on to the scheduler."""
        for number, message in self._ray.get(self._mailbox.empty.remote()):
            sent = self._numbers[number]
            if isinstance(message, dict):
                sent.owner = message
            else:
                for each in message:
                    self._scheduler.reported(sent.task, each)

    def _lose(self, sent: _Sent, error: Exception) -> None:
        task = sent.task
        self._losses[task.run.path] = self._losses.get(task.run.path, 0) + 1
        wait_s = run_locks.revoke(task.directory, task.run.path, sent.owner)
        if self._losses[task.run.path] < MOST_LOSSES:
            self._lost.append((time.monotonic() + wait_s, task))
            return
        why = f"its process was lost {MOST_LOSSES} times ({type(error).__name__}), perhaps for lack of memory"
        self._scheduler.ended(task, Failure(why))

    def _put_back(self) -> None:
        now = time.monotonic()
        for due, task in [one for one in self._lost if one[0] <= now]:
            self._lost.remove((due, task))
            self._scheduler.lost(task)

    def _cancel(self) -> None:
        """End all runs under way on the cluster, as Ctrl-C would."""
        for reference in self._sent:
            with suppress(self._ray.exceptions.RayError):
                self._ray.cancel(reference)
        if self._sent:
            self._ray.wait(list(self._sent), num_returns=len(self._sent), timeout=GRACE_S)
        self._ray.kill(self._mailbox)


class _Mailbox:
    """A mailbox that stores the reports of runs until the starting process fetches them."""

    def __init__(self) -> None:
        self._messages: list[tuple[int, Any]] = []

    def put(self, number: int, message: Any) -> None:
        self._messages.append((number, message))

    def empty(self) -> list[tuple[int, Any]]:
        messages, self._messages = self._messages, []
        return messages


# -- on the cluster -------------------------------------------------------------------------------------


def _carry_out(task: RunTask, mailbox: Any, number: int, folder: str, allowed: str) -> str | Failure | None:
    """Execute a run on the cluster; return its failure, ELSEWHERE if another process has claimed the run, or None."""
    import ray

    if not (task.directory / FILE).is_file() or not Path(folder).is_dir():
        missing = folder if (task.directory / FILE).is_file() else task.directory
        return Failure(
            f"{missing}: is not on the cluster's node {this_process()['host']}; work in a folder that all nodes share"
        )
    os.chdir(folder)  # relative paths in scenarios start from this folder
    os.environ[outside.ALLOW] = allowed
    ray.get(mailbox.put.remote(number, this_process()))  # report the process before it claims the run
    reports = _Reports(mailbox, number)
    try:
        work(task, reports)
    except Interrupted:
        return None  # the result of an interrupted run is no longer needed
    except Exception as error:
        return Failure.of(error)
    finally:
        reports.send()
    return ELSEWHERE if reports.elsewhere else None


class _Reports:
    """A sender of a run's reports in batches, since a run may have thousands of rounds a second."""

    def __init__(self, mailbox: Any, number: int) -> None:
        self._mailbox, self._number = mailbox, number
        self._waiting: list[Any] = []
        self._last = time.monotonic()
        self.elsewhere = False

    def __call__(self, report: Any) -> None:
        if report == ELSEWHERE:
            self.elsewhere = True
            return
        self._waiting.append(report)
        if time.monotonic() - self._last > REPORT_S:
            self.send()

    def send(self) -> None:
        if self._waiting:
            self._mailbox.put.remote(self._number, self._waiting)
        self._waiting, self._last = [], time.monotonic()
