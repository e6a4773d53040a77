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
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from edgefl.errors import EdgeflError
from edgefl.learning.hands import one_thread_each
from edgefl.learning.local.chunk_trainers import Chunk, Kit, Piece, PieceModels
from edgefl.learning.local.chunk_training import Worker
from edgefl.learning.local.local_task import LocalModels, LocalTask
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.run.ray_cluster import connected
from edgefl.run_directory.circumstances import of_process
from edgefl.run_directory.status import this_process

__all__ = ["on_ray"]

MOST_LOSSES = 3  # of one piece, or of workers that begin: more are no accident
PIECES_EACH = 2  # of a round, for each worker, at least: who is slower does fewer
PIECE_BYTES = 64_000_000  # of local models, about: pieces of large models are single devices
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
    """A worker's actor; known: its process, once it is known."""

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
        # by Ray's references: to what a worker tells of itself, and to what it has found of a part of the round
        self._starting: dict[Any, _Hired] = {}
        self._busy: dict[Any, tuple[_Hired, int, Piece]] = {}
        self._failed_starts = 0
        # data and kits -> their numbers, and Ray's references to them; for as long as somebody here has them
        self._sent: WeakKeyDictionary[object, tuple[int, Any]] = WeakKeyDictionary()
        self._numbers = count()
        self.lost = 0

    def train(self, kit: Kit, task: LocalTask, chunks: Sequence[Chunk], models: LocalModels) -> None:
        """Train the devices of all chunks; results go to their positions in `models`.

        Raises:
            EdgeflError: no worker begins, or the same devices' are lost again and again.
        """
        size = max(PIECES_EACH * self._count, -(-models.rows.nbytes // PIECE_BYTES))
        parts = [chunks[number::size] for number in range(min(size, len(chunks)))]
        waiting = deque(range(len(parts)))
        losses: Counter[int] = Counter()
        try:
            while waiting or self._busy:
                self._hire(min(self._count, len(waiting)))
                while waiting and self._idle:
                    number = waiting.popleft()
                    self._send(kit, number, Piece.of(task, parts[number]))
                for reference in self._wait():
                    if reference in self._starting:
                        self._began(reference)
                        continue
                    worker, number, piece = self._busy.pop(reference)
                    try:
                        piece.put(self._ray.get(reference), models)
                        self._idle.append(worker)
                    except self._ray.exceptions.RayTaskError as error:
                        self._idle.append(worker)
                        if not isinstance(error.cause, self._ray.exceptions.RayError):
                            raise (error.cause or error) from error  # its own: it would fail here, too
                        # what was sent once for all is gone from the cluster: it is sent again
                        self._sent.clear()
                        waiting.append(number)
                        self._count_loss(losses, number, piece, error)
                    except self._ray.exceptions.RayError as error:
                        self._lose(worker)
                        waiting.append(number)
                        self._count_loss(losses, number, piece, error)
        finally:
            for worker, _, _ in self._busy.values():  # nobody waits for them any more
                self._dismiss(worker)
            self._busy.clear()

    def processes(self) -> list[dict[str, Any]]:
        """Return the processes of the workers that have begun, as `this_process` describes them."""
        hired = [*self._idle, *(worker for worker, _, _ in self._busy.values())]
        return [worker.known["process"] for worker in hired if worker.known]

    def close(self) -> None:
        """End all workers; a round that comes later hires others."""
        for worker in [*self._idle, *self._starting.values()]:
            self._dismiss(worker)
        self._idle, self._starting = [], {}
        self._sent.clear()

    def _hire(self, count: int) -> None:
        for _ in range(count - len(self._idle) - len(self._starting) - len(self._busy)):
            worker = _Hired(self._actor.remote(str(Path.cwd()), sys.path))
            self._starting[worker.actor.about.remote()] = worker

    def _send(self, kit: Kit, number: int, piece: Piece) -> None:
        worker = self._idle.pop()
        of_data, (kit_number, of_kit) = self._put(kit.train, kit.train)[1], self._put(kit, kit.but_data())
        known = [number for number, _ in self._sent.values()]
        # in a list: a worker asks for them itself, once
        reference = worker.actor.train.remote(known, kit_number, [of_data, of_kit], piece)
        self._busy[reference] = worker, number, piece

    def _put(self, key: object, what: object) -> tuple[int, Any]:
        """Return the number of an object, and where the cluster finds the object."""
        if key not in self._sent:
            self._sent[key] = next(self._numbers), self._ray.put(what)
        return self._sent[key]

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
            _require_alike(worker.known)
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

    def _count_loss(self, losses: Counter[int], number: int, piece: Piece, error: Exception) -> None:
        losses[number] += 1
        if losses[number] == MOST_LOSSES:
            raise _lost_again_and_again(piece, error) from error

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
    """Trains pieces one after the other.

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
        self._workers: dict[int, tuple[Worker, UpdateRule]] = {}  # by the number of their kit

    def about(self) -> dict[str, Any]:
        """Tell what results depend on here, and which process this is."""
        return {"circumstances": of_process(), "process": this_process()}

    def train(
        self, known: Sequence[int], number: int, references: Sequence[Any], piece: Piece
    ) -> PieceModels:
        """Train a piece with the kit of this number; those that are not known any more are dropped."""
        for gone in self._workers.keys() - set(known):
            del self._workers[gone]
        if number not in self._workers:
            import ray

            data, rest = ray.get(list(references))
            kit = Kit(data, **rest)
            self._workers[number] = kit.worker(), kit.rule
        return piece.train(*self._workers[number])
