"""A run's local training on a Ray cluster: pieces of each round go to workers, and come back as local models.

A worker is an actor of one core. It holds the training data, once for all workers of a machine, and the model's
module; all that a piece depends on besides travels with it. So a worker that is lost takes nothing with it: its piece
is trained again elsewhere. Cut as they are on one machine, put back in their places and aggregated here, the results
are those of one machine to the last bit, on processors alike.
"""

import os
import sys
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.learning.chunk_trainers import Chunk, Kit, Piece, one_thread_each
from edgefl.learning.chunk_training import Worker
from edgefl.learning.local_task import LocalModels, LocalTask
from edgefl.ray_cluster import connected
from edgefl.run_directory.circumstances import of_process
from edgefl.run_directory.status import this_process

MOST_LOSSES = 3  # of one piece, or of workers that begin: more are no accident
PIECES_EACH = 2  # of a round, for each worker: who is slower does fewer
START_S = 300.0  # until a worker has to be there: PyTorch loads for seconds, and a cluster may start machines


@contextmanager
def on_ray(address: str = "auto", workers: int | None = None) -> Iterator["RayTrainers"]:
    """Give trainers on a Ray cluster, for `simulate`; its workers end with this.

    Args:
        address: as in `ray_cluster.connected`.
        workers: at most so many, of one core each; None: as many as the cluster has cores now.

    Raises:
        EdgeflError: there is no Ray, or no such cluster.
    """
    with connected(address) as ray:
        trainers = RayTrainers(ray, workers or max(1, int(ray.cluster_resources().get("CPU", 1))))
        try:
            yield trainers
        finally:
            trainers.close()


@dataclass(eq=False)
class _Hired:
    """A worker's actor; known: what it has told of its process, once it has."""

    actor: Any
    known: dict[str, Any] | None = None


class RayTrainers:
    """Trains chunks on a Ray cluster; see `ChunkTrainers`.

    Attributes:
        lost: workers lost so far.
    """

    def __init__(self, ray: Any, workers: int) -> None:
        self._ray, self._count = ray, workers
        self._actor = ray.remote(_RemoteWorker).options(
            num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        self._idle: list[_Hired] = []
        self._starting: dict[Any, _Hired] = {}  # by Ray's reference to what it tells of itself
        self._busy: dict[Any, tuple[_Hired, Piece]] = {}  # by Ray's reference to the models
        self._failed_starts = 0
        self._sent: dict[int, Any] = {}  # id of data or kit -> Ray's reference
        self._kept: list[Any] = []  # of these, so that no other takes its id
        self.lost = 0

    def train(self, kit: Kit, task: LocalTask, chunks: Sequence[Chunk], models: LocalModels) -> None:
        """Train the devices of all chunks; results go to their positions in `models`.

        Raises:
            EdgeflError: no worker begins, or the same devices' are lost again and again.
        """
        count = min(len(chunks), PIECES_EACH * self._count)
        waiting = deque(Piece.of(task, chunks[number::count]) for number in range(count))
        losses: Counter[Piece] = Counter()
        try:
            while waiting or self._busy:
                self._hire(min(self._count, len(waiting)))
                while waiting and self._idle:
                    self._send(kit, waiting.popleft())
                for reference in self._wait():
                    if reference in self._starting:
                        self._began(reference)
                        continue
                    worker, piece = self._busy.pop(reference)
                    try:
                        piece.put(self._ray.get(reference), models)
                        self._idle.append(worker)
                    except self._ray.exceptions.RayTaskError as error:  # its own: it would fail here, too
                        self._idle.append(worker)
                        raise (error.cause or error) from error
                    except self._ray.exceptions.RayError as error:
                        self._lose(worker)
                        losses[piece] += 1
                        if losses[piece] == MOST_LOSSES:
                            raise _lost_again_and_again(piece, error) from error
                        waiting.append(piece)
        finally:
            for worker, _ in self._busy.values():  # nobody waits for them any more
                self._dismiss(worker)
            self._busy.clear()

    def processes(self) -> list[dict[str, Any]]:
        """Return the processes of the workers that have begun, as `this_process` describes them."""
        hired = [*self._idle, *(worker for worker, _ in self._busy.values())]
        return [worker.known["process"] for worker in hired if worker.known]

    def close(self) -> None:
        """End all workers; a round that comes later hires others."""
        for worker in [*self._idle, *self._starting.values()]:
            self._dismiss(worker)
        self._idle, self._starting = [], {}
        self._sent, self._kept = {}, []

    def _hire(self, wanted: int) -> None:
        for _ in range(wanted - len(self._idle) - len(self._starting) - len(self._busy)):
            worker = _Hired(self._actor.remote(str(Path.cwd()), sys.path))
            self._starting[worker.actor.about.remote()] = worker

    def _send(self, kit: Kit, piece: Piece) -> None:
        worker = self._idle.pop()
        self._busy[worker.actor.train.remote(id(kit), self._references(kit), piece)] = worker, piece

    def _references(self, kit: Kit) -> list[Any]:
        """Return where the cluster finds the data and the rest of a kit; in a list, a worker asks for them itself."""
        rest = (kit.kind, kit.model, kit.module, kit.precision, kit.momentum)
        for of, what in ((kit.train, kit.train), (kit, rest)):
            if id(of) not in self._sent:
                self._kept.append(of)
                self._sent[id(of)] = self._ray.put(what)
        return [self._sent[id(kit.train)], self._sent[id(kit)]]

    def _wait(self) -> list[Any]:
        """Wait for the first to end or begin."""
        patience_s = None if self._busy else START_S
        ended, _ = self._ray.wait([*self._busy, *self._starting], num_returns=1, timeout=patience_s)
        if not ended:
            free = self._ray.available_resources().get("CPU", 0)
            raise EdgeflError(
                f"--executor ray: no worker has begun within {START_S:g} s; the cluster has {free:g} cores to spare"
            )
        return list(ended)

    def _began(self, reference: Any) -> None:
        worker = self._starting.pop(reference)
        fresh = worker.known is None
        try:
            worker.known = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._dismiss(worker)
            self._failed_starts += fresh
            if self._failed_starts == MOST_LOSSES:
                raise EdgeflError(
                    f"--executor ray: {MOST_LOSSES} workers in a row did not begin: {error}"
                ) from error
            return
        self._failed_starts = 0
        self._idle.append(worker)
        _require_alike(worker.known)

    def _lose(self, worker: _Hired) -> None:
        """Note that a worker is lost; the idle ones have to say that they are still there, for a node may be gone."""
        self.lost += 1
        self._dismiss(worker)
        for one in self._idle:
            self._starting[one.actor.about.remote()] = one
        self._idle = []

    def _dismiss(self, worker: _Hired) -> None:
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(worker.actor)


def _require_alike(worker: dict[str, Any]) -> None:
    """Refuse a worker that would round otherwise."""
    here, host = of_process(), worker["process"]["host"]
    for name, ours in here.items():
        if worker["circumstances"].get(name) != ours:
            raise EdgeflError(
                f"--executor ray: {name} is {worker['circumstances'].get(name)} on the node {host} and {ours} here:"
                " results would differ; give Ray machines alike, with the same packages"
            )


def _lost_again_and_again(piece: Piece, error: Exception) -> EdgeflError:
    return EdgeflError(
        f"--executor ray: the workers that trained the same {len(piece.positions)} devices were lost {MOST_LOSSES}"
        f" times ({type(error).__name__}), perhaps for want of memory: take fewer --workers"
    )


# -- on the cluster -------------------------------------------------------------------------------------


class _RemoteWorker:
    """Trains pieces with what it is sent, one after the other.

    Args:
        folder: where the run was begun. path: where modules lie there, the scenario's own among them.
    """

    def __init__(self, folder: str, path: list[str]) -> None:
        if Path(folder).is_dir():
            os.chdir(folder)
        sys.path += [one for one in path if one not in sys.path]
        one_thread_each()
        # arrays that a machine's processes share cannot be written to, and nobody does
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        self._workers: dict[int, tuple[Worker, float]] = {}

    def about(self) -> dict[str, Any]:
        """Tell what results depend on here, and which process this is."""
        return {"circumstances": of_process(), "process": this_process()}

    def train(self, number: int, references: Sequence[Any], piece: Piece) -> LocalModels:
        """Train a piece; data and kit are fetched when the first of this number comes."""
        if number not in self._workers:
            import ray

            data, (kind, model, module, precision, momentum) = ray.get(references)
            kit = Kit(kind, model, module, precision, data, momentum)
            self._workers[number] = kit.worker(), momentum
        return piece.train(*self._workers[number])
