"""Train the chunks of a round: in threads of this process, or in other processes that a chunk is sent to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from edgefl.learning.algorithms import Algorithm
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.hands import Hands
from edgefl.learning.local.chunk_training import ChunkTraining, Worker
from edgefl.learning.local.gradients import Kernel
from edgefl.learning.local.handed import Handed
from edgefl.learning.local.local_task import LocalModels, LocalTask
from edgefl.learning.local.precision import Precision
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model
from edgefl.learning.modules.module_facts import example
from edgefl.learning.objective import CLASSIFICATION
from edgefl.learning.tasks import Task

Chunk = Sequence[int]  # positions of the devices that are computed together, those with the most steps first


@dataclass(frozen=True, eq=False)
class Kit:
    """What a worker trains with, but for its memory: workers of one kit are alike, in whichever process.

    rule: of all devices' steps.
    """

    train: SplitInMemory
    kind: type[Kernel]
    model: Model
    module: nn.Module
    precision: Precision
    rule: UpdateRule
    task: Task = CLASSIFICATION

    def but_data(self) -> dict[str, Any]:
        """Return everything a worker needs except the training data."""
        return {name: value for name, value in vars(self).items() if name != "train"}

    def worker(self) -> Worker:
        """Make a worker."""
        kernel = self.kind(self.model, self.module, self.precision, example(self.train.x), self.task)
        return Worker(kernel, self.train)


class ChunkTrainers(Protocol):
    """Trains the devices of a round, chunk by chunk.

    The chunks are given. In which order, by whom and on which machine they are trained does not matter to the last
    bit, as long as none is cut or joined with another: products of another shape are rounded otherwise.
    """

    def train(self, kit: Kit, task: LocalTask, chunks: Sequence[Chunk], models: LocalModels) -> None:
        """Train the devices of all chunks; results go to their positions in `models`."""


class Threads:
    """Trains chunks in this process, a given number of them at the same time."""

    def __init__(self, count: int) -> None:
        self._hands = Hands(count)
        self._workers: dict[Kit, list[Worker]] = {}

    def train(self, kit: Kit, task: LocalTask, chunks: Sequence[Chunk], models: LocalModels) -> None:
        """Train the devices of all chunks; results go to their positions in `models`."""
        workers = self.workers(kit, self._hands.count)

        def train(hand: int, positions: Chunk) -> None:
            ChunkTraining(workers[hand], task, kit.rule, models).run(positions)

        self._hands.work(train, chunks)

    def workers(self, kit: Kit, count: int = 1) -> list[Worker]:
        """Return `count` workers of a kit."""
        workers = self._workers.setdefault(kit, [])
        workers += [kit.worker() for _ in range(count - len(workers))]
        return workers[:count]


# -- chunks that are sent elsewhere ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Piece:
    """Some chunks of a round, with all that their training asks for: a value that another process can be sent.

    Devices' own vectors travel with it, so that a worker keeps nothing that would be lost with it.

    task: of these devices alone. chunks: positions in it. positions: of these devices in the whole round.
    """

    task: LocalTask
    chunks: Sequence[Chunk]
    positions: Sequence[int]

    @classmethod
    def of(cls, task: LocalTask, chunks: Iterable[Chunk]) -> "Piece":
        """Cut these chunks out of a round."""
        positions: list[int] = []
        local = []
        for chunk in chunks:
            local.append(range(len(positions), len(positions) + len(chunk)))
            positions += chunk
        part = replace(
            task,
            start=task.received(positions),
            batches=task.batches.part(positions),
            own=_Vectors(
                task.algorithm, {name: vectors.numpy() for name, vectors in task.own(positions).items()}
            ),
            previous=None if task.previous is None else _RowsAt(task.previous(positions).numpy()),
            personal=None if task.personal is None else _RowsAt(task.personal(positions).numpy()),
            optimiser=None if task.optimiser is None else _RowsAt(task.optimiser(positions).numpy()),
        )
        return cls(part, local, positions)

    def train(self, worker: Worker, rule: UpdateRule) -> "PieceModels":
        """Train these devices."""
        count, like = len(self.positions), self.task.start
        models = LocalModels(
            rows=like.new_empty(count, like.shape[-1]),
            personal=None if self.task.personal is None else like.new_empty(count, like.shape[-1]),
            steps=self.task.batches.steps.copy(),
            tested=np.zeros(count, dtype=np.int64),
            optimiser=None if self.task.optimiser is None else like.new_zeros(count, self._state_size),
        )
        for chunk in self.chunks:
            ChunkTraining(worker, self.task, rule, models).run(chunk)
        personal = None if models.personal is None else models.personal.numpy()
        state = None if models.optimiser is None else models.optimiser.numpy()
        return PieceModels(models.rows.numpy(), personal, models.steps, models.tested, state)

    @property
    def _state_size(self) -> int:
        assert self.task.optimiser is not None
        return self.task.optimiser([0]).shape[1]

    def put(self, trained: "PieceModels", models: LocalModels) -> None:
        """Write what `train` returned to these devices' positions in the whole round's models."""
        places = list(self.positions)
        models.rows.numpy()[places] = trained.rows
        if models.personal is not None and trained.personal is not None:
            models.personal.numpy()[places] = trained.personal
        if models.optimiser is not None and trained.optimiser is not None:
            models.optimiser.numpy()[places] = trained.optimiser
        models.steps[places], models.tested[places] = trained.steps, trained.tested


class PieceModels(NamedTuple):
    """The `LocalModels` of a piece, as arrays: they are sent without a copy."""

    rows: np.ndarray
    personal: np.ndarray | None
    steps: np.ndarray
    tested: np.ndarray
    optimiser: np.ndarray | None = None


@dataclass(frozen=True)
class _RowsAt:
    """Rows [k, ...] that are at hand, as a function of positions."""

    rows: np.ndarray

    def __call__(self, positions: Sequence[int]) -> Tensor:
        return torch.from_numpy(self.rows[list(positions)])


@dataclass(frozen=True)
class _Vectors:
    """Vectors [k, M] by name that are at hand, as a function of positions."""

    algorithm: Algorithm
    rows: Mapping[str, np.ndarray]

    def __call__(self, positions: Sequence[int]) -> Mapping[str, Tensor]:
        vectors = {name: torch.from_numpy(rows[list(positions)]) for name, rows in self.rows.items()}
        return Handed.own(self.algorithm, vectors)
