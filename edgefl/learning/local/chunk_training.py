"""Run the local training of a chunk of devices, from the received models to each device's last step."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from edgefl.config.answers import is_alike, must_be_shaped
from edgefl.learning import memory
from edgefl.learning.data.data_in_memory import SampleReader, SplitInMemory
from edgefl.learning.local.gradients import Batch, GradientSteps, Kernel
from edgefl.learning.local.local_task import LocalModels, LocalTask
from edgefl.learning.local.update_rule import UpdateRule

# number of steps prepared together if devices may stop early
AT_ONCE = 64
_PLACE = ("learning", "algorithm")


class Worker:
    """The kernel (with a copy of the module), the reader, and the memory that one training thread uses."""

    def __init__(self, kernel: Kernel, train: SplitInMemory) -> None:
        if train.x.device.type == "cpu":
            memory.reuse_freed()
        self.kernel = kernel
        self.reader = SampleReader(train)
        self._rooms: dict[str, Tensor] = {}

    def room(self, name: str, count: int, size: int, like: Tensor) -> Tensor:
        """Return the thread's buffer [count, size] with this name, which chunks reuse."""
        room = self._rooms.get(name)
        if room is None or len(room) < count or room.device != like.device:
            room = self._rooms[name] = like.new_empty(count, size)
        return room[:count]


class ChunkTraining:
    """Run the local steps of a chunk of devices, sorted by decreasing number of steps; results go into `models`."""

    def __init__(self, worker: Worker, task: LocalTask, rule: UpdateRule, models: LocalModels) -> None:
        self._worker = worker
        self._task = task
        self._rule = rule
        self._models = models
        self._layout = worker.kernel.layout
        self._rows, self._state = models.rows[:0], [models.rows[:0]]
        self._masks: dict[int, torch.Generator] = {}
        self._before: Tensor | None = None  # [k, 1] number of steps in earlier rounds
        self._personal: _PersonalModels | None = None
        self._stopping: _EarlyStopping | None = None

    @torch.no_grad()
    def run(self, positions: Sequence[int]) -> None:
        """Train the devices at these indices of the round."""
        task, worker, result = self._task, self._worker, self._models.rows
        self._rows = worker.room("local models", len(positions), self._layout.size, result)
        self._state = _state_of(worker, self._rule, "local", len(positions), result)
        self._rows.copy_(task.received(positions))
        if task.optimiser is not None:
            sizes = [*(vector.shape[1] for vector in self._state), 1]
            *vectors, steps = task.optimiser(positions).split(sizes, dim=1)
            self._before = steps.clone()
            for vector, kept in zip(self._state, vectors, strict=True):
                vector.copy_(kept)
        if worker.kernel.needs_generators:
            self._masks = {k: torch.Generator().manual_seed(int(task.batches.seeds[k])) for k in positions}
        if task.personal is not None:
            assert self._models.personal is not None
            self._personal = _PersonalModels(worker, task, self._rule, positions, self._models.personal)
        if len(task.batches.validation):
            self._stopping = _EarlyStopping(worker, task, self._models, positions, self._rows)
        going, step = list(positions), 0
        while going:  # one pass, unless devices stop early; the remaining rows are then made contiguous
            going, step = self._train(going, step)

    def _train(self, positions: list[int], first: int) -> tuple[list[int], int]:
        """Train devices from step `first` until all are done or a device stops early.

        Returns:
            Positions of the devices that continue, and the number of these devices' next step.
        """
        task, rows, state, personal = self._task, self._rows, self._state, self._personal
        algorithm, received = task.algorithm, task.received(positions)
        (local, _), (start, _) = self._layout.split(rows), self._layout.split(received)
        own = task.own(positions)
        masks = [self._masks[k] for k in positions] if self._masks else []
        steps = task.batches.steps[positions]
        end, fewest = int(steps[0]), int(steps[-1])
        if self._stopping is not None:
            end = min(end, first + AT_ONCE)
        gradients = _gradient_steps(self._worker, task, positions, range(first, end), rows, masks)
        if personal is not None:
            personal.begin(positions, range(first, end))
        going: list[int] | None = None
        step, trained = first, len(positions)
        for step in range(first, end):
            active = int((steps > step).sum()) if fewest <= step else trained
            if active < trained:  # the other devices are done; take views of the first rows
                trained = active
                local, state = local[:active], [vector[:active] for vector in state]
                start = start if start.dim() == 1 else start[:active]
                own = {name: vector[:active] for name, vector in own.items()}
            if personal is not None:  # personal steps use the local models from before the local step
                personal.step(step, step - first, local, start, own)
            grads = self._rule.clipped(gradients(step - first, active))
            grads = algorithm.correct(grads, local, start, task.state, own)
            _must_be_rows(algorithm.correct, grads, local)
            number = step + 1 if self._before is None else self._before[:active] + (step + 1)
            self._rule.step(number, task.lr, local, grads, state)
            if self._stopping is not None:
                going = self._stopping.going(positions[:active], step, rows)
                if going is not None:
                    break
        _put(self._models.rows, positions, rows)
        if self._before is not None and self._models.optimiser is not None:
            done = torch.from_numpy(self._models.steps[positions]).to(self._before).unsqueeze(1)
            _put(self._models.optimiser, positions, torch.cat([*self._state, self._before + done], dim=1))
        if personal is not None:
            personal.put(positions)
        if going is None and end < steps[0]:
            going = np.flatnonzero(steps > end).tolist()
        if going is None:
            return [], step
        self._rows, self._state = in_front(self._rows, going), [in_front(one, going) for one in self._state]
        if self._before is not None:
            self._before = in_front(self._before, going)
        if personal is not None:
            personal.close(going)
        return [positions[k] for k in going], step + 1


class _PersonalModels:
    """Personal models that devices train besides local models, on the same mini-batches, with separate state.

    The algorithm chooses the points at which gradients are computed and statistics are updated.
    """

    def __init__(
        self, worker: Worker, task: LocalTask, rule: UpdateRule, positions: Sequence[int], result: Tensor
    ) -> None:
        assert task.personal is not None
        self._worker, self._task, self._rule, self._result = worker, task, rule, result
        layout = worker.kernel.layout
        count = len(positions)
        self._rows = worker.room("personal models", count, layout.size, result)
        self._state = _state_of(worker, rule, "personal", count, result)
        self._points = worker.room("points", count, layout.size, result)
        self._rows.copy_(task.personal(positions))
        self._points.copy_(self._rows)
        self._gradients: GradientSteps
        # dropout masks come from separate streams, so that personal models do not change the local models' masks
        self._masks = {
            k: torch.Generator().manual_seed((int(task.batches.seeds[k]) + 1) % 2**63) for k in positions
        }

    def begin(self, positions: Sequence[int], steps: range) -> None:
        """Prepare the gradients of personal models for some steps; row k belongs to the k-th of `positions`."""
        masks = [self._masks[k] for k in positions] if self._worker.kernel.needs_generators else []
        self._gradients = _gradient_steps(self._worker, self._task, positions, steps, self._points, masks)

    def step(self, step: int, prepared: int, local: Tensor, start: Tensor, own: Mapping[str, Tensor]) -> None:
        """Step the first devices' personal models with the prepared gradients, before stepping the local models."""
        algorithm, active = self._task.algorithm, len(local)
        layout = self._worker.kernel.layout
        personal, _ = layout.split(self._rows[:active])
        points, _ = layout.split(self._points[:active])
        chosen = algorithm.personal_point(personal, local)
        _must_be_rows(algorithm.personal_point, chosen, local)
        points.copy_(chosen)
        grads = self._rule.clipped(self._gradients(prepared, active))
        grads = algorithm.correct_personal(grads, personal, start, self._task.state, own)
        _must_be_rows(algorithm.correct_personal, grads, personal)
        state = [vector[:active] for vector in self._state]
        self._rule.step(step + 1, self._task.lr, personal, grads, state)

    def put(self, positions: Sequence[int]) -> None:
        """Write the personal models into the round's result, with the statistics that the gradient passes updated."""
        layout = self._worker.kernel.layout
        layout.split(self._rows)[1].copy_(layout.split(self._points)[1])
        _put(self._result, positions, self._rows)

    def close(self, going: Sequence[int]) -> None:
        """Keep only the personal models of the devices that continue, which are in the rows `going`."""
        self._rows, self._state = in_front(self._rows, going), [in_front(one, going) for one in self._state]
        self._points = in_front(self._points, going)


class _EarlyStopping:
    """Early stopping of a chunk's devices, decided by the algorithm after each epoch of a device."""

    def __init__(
        self, worker: Worker, task: LocalTask, models: LocalModels, positions: Sequence[int], rows: Tensor
    ) -> None:
        self._worker, self._task, self._models = worker, task, models
        batches = task.batches
        self._samples = {
            k: torch.from_numpy(batches.validation[k]).to(rows.device)
            for k in positions
            if len(batches.validation[k]) and batches.steps[k] > batches.per_epoch[k]
        }
        places = {k: place for place, k in enumerate(positions)}
        self._before = {k: self._loss(k, rows[places[k]]) for k in self._samples}

    def going(self, positions: Sequence[int], step: int, rows: Tensor) -> list[int] | None:
        """Return the indices of devices that continue after a step, or None if no device stops early."""
        batches, done = self._task.batches, step + 1
        asked = [
            place
            for place, k in enumerate(positions)
            if k in self._samples and done % batches.per_epoch[k] == 0 and done < batches.steps[k]
        ]
        if not asked:
            return None
        ids = [positions[place] for place in asked]
        losses = [self._loss(k, rows[place]) for k, place in zip(ids, asked, strict=True)]
        before = torch.stack([self._before[k] for k in ids])
        epoch = torch.as_tensor(done // batches.per_epoch[ids], device=rows.device)
        stop = self._task.stop or self._task.algorithm.stop
        told = stop(epoch, torch.stack(losses), before)
        must_be_shaped(stop, told, (before.shape,), "whether each device stops, a tensor", *_PLACE)
        stops = told.tolist()
        self._before.update(zip(ids, losses, strict=True))
        leaving = {place for place, stop in zip(asked, stops, strict=True) if stop}
        if not leaving:
            return None
        for place in leaving:
            self._models.steps[positions[place]] = done
        return [
            place for place, k in enumerate(positions) if place not in leaving and done < batches.steps[k]
        ]

    def _loss(self, k: int, row: Tensor) -> Tensor:
        self._models.tested[k] += len(self._samples[k])
        return self._worker.kernel.loss(row, self._worker.reader, self._samples[k])


def _must_be_rows(method: Callable[..., Tensor], answer: Tensor, like: Tensor) -> None:
    """Raise an error unless an algorithm's result is like a given tensor; a single value would be broadcast."""
    # not `must_be_shaped` alone, as this runs in every step
    if getattr(answer, "shape", None) != like.shape or not is_alike(answer, like):
        wanted = "a row for each device, a tensor"
        must_be_shaped(method, answer, (tuple(like.shape),), wanted, *_PLACE, like=like)


def _gradient_steps(
    worker: Worker,
    task: LocalTask,
    positions: Sequence[int],
    steps: range,
    rows: Tensor,
    masks: Sequence[torch.Generator],
) -> GradientSteps:
    """Return a function that computes devices' gradients in `steps`, at the models `rows` [k, M + Q]."""
    batches = task.batches
    # a step's batches are contiguous in memory: [steps, k, B]
    places = _together(positions)
    samples, weight = (
        torch.from_numpy(all_steps[places, steps.start : steps.stop].swapaxes(0, 1))
        .to(rows.device)
        .contiguous()
        for all_steps in (batches.rows, batches.weights)
    )
    views = None
    if batches.views is not None:
        ways = torch.from_numpy(batches.views[places, steps.start : steps.stop].swapaxes(0, 1))
        views = ways.to(rows.device, torch.int64).contiguous()
    return worker.kernel.start(
        rows,
        Batch(
            worker.reader,
            samples,
            worker.reader.labels(samples),
            weight,
            batches.sizes[places, steps.start : steps.stop].T.tolist(),
            masks,
            views,
        ),
        task.terms_of(positions),
    )


def _state_of(worker: Worker, rule: UpdateRule, name: str, count: int, like: Tensor) -> list[Tensor]:
    """Return the optimiser's initial state for `count` models: a list of zero vectors [count, M]."""
    size = worker.kernel.layout.parameters.size
    names = [f"{name} state {i}" for i in range(rule.optimiser.vectors)]
    return [worker.room(each, count, size, like).zero_() for each in names]


def _put(result: Tensor, positions: Sequence[int], rows: Tensor) -> None:
    """Write the rows of a chunk's devices to the devices' positions in the round's result."""
    result[_together(positions)] = rows


def _together(positions: Sequence[int]) -> slice | list[int]:
    """Return positions as a slice if they are contiguous, so that indexing makes no copy, and otherwise as a list."""
    span = range(positions[0], positions[-1] + 1)
    return slice(span.start, span.stop) if list(positions) == list(span) else list(positions)


def in_front(rows: Tensor, positions: Sequence[int]) -> Tensor:
    """Move the rows at ascending positions to the front, in place to save memory, and return these rows."""
    if len(positions) < len(rows):
        for place, position in enumerate(positions):
            rows[place] = rows[position]
    return rows[: len(positions)]
