"""A model under training, with all that its algorithm keeps: at the server, and on the devices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.algorithms import Algorithm, State, Updates
from edgefl.learning.batches import Batches
from edgefl.learning.device_states import DeviceStates
from edgefl.learning.local_training import LocalTraining, Work
from edgefl.learning.models import OutputTerm

LOCAL_MODEL = "last local model"
FINISHED_AT_ONCE_BYTES = 256_000_000  # of devices' vectors


class Diverged(Exception):
    """Training has left the finite numbers: of this device, or (None) of the aggregated model."""

    def __init__(self, device: int | None) -> None:
        super().__init__(device)
        self.device = device


@dataclass(frozen=True)
class LocalRound:
    """Local models that wait for their uploads.

    start: [M + Q] or [K, M + Q] what the devices received.
    rows: [K, M + Q] local models, in order of device id.
    """

    ids: Sequence[int]
    batches: Batches
    lr: float
    start: Tensor
    rows: Tensor

    def received_by(self, devices: Sequence[int]) -> Tensor:
        """What the devices at these positions received: [M + Q], or [n, M + Q]."""
        return self.start if self.start.dim() == 1 else self.start[list(devices)]


class Track:
    """The global model's road from round to round, or that of a probe's auxiliary model.

    Args:
        devices: where devices keep their vectors; a probe brings its own, so that it leaves no trace.
        model: [M + Q].
    """

    def __init__(
        self, training: LocalTraining, algorithm: Algorithm, devices: DeviceStates, model: Tensor
    ) -> None:
        self._training = training
        self._algorithm = algorithm
        self.devices = devices
        self.model = model
        self.state: State = {}
        self.last: LocalRound

    def open(self, model: Tensor, samples: Mapping[int, int]) -> None:
        """A session begins with this model and these devices (id -> number of samples)."""
        parameters, _ = self._training.layout.split(model)
        members = _Members(self.devices, samples, parameters)
        self.model = model
        self.state = self._algorithm.init_state(parameters, self.state, members)

    def state_tensors(self) -> dict[str, Tensor]:
        """Model and the algorithm's state, by name."""
        return {"model": self.model, **{f"state.{name}": value for name, value in self.state.items()}}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `state_tensors` gave."""
        self.model = tensors["model"]
        self.state = {
            name.removeprefix("state."): value for name, value in tensors.items() if name.startswith("state.")
        }

    def train(self, ids: Sequence[int], batches: Batches, lr: float, terms: Sequence[OutputTerm]) -> None:
        """Local training of a round; afterwards `last`.

        Raises:
            Diverged: a local model is not finite.
        """
        work = self.work(ids, batches, lr, terms)
        rows = self._training.run(work)
        finite = torch.isfinite(rows.sum(1))
        if not finite.all():
            raise Diverged(ids[int(finite.int().argmin())])
        self.last = LocalRound(ids, batches, lr, work.start, rows)

    def work(self, ids: Sequence[int], batches: Batches, lr: float, terms: Sequence[OutputTerm]) -> Work:
        """What these devices have to do in a round."""
        algorithm, devices = self._algorithm, self.devices
        parameters, statistics = self._training.layout.split(self.model)
        received = algorithm.start_rows(parameters, self.state)
        start = torch.cat([received, statistics.expand(*received.shape[:-1], -1)], dim=-1)

        def chosen(positions: Sequence[int]) -> list[int]:
            return [ids[k] for k in positions]

        def own(positions: Sequence[int]) -> dict[str, Tensor]:
            zero = torch.zeros_like(parameters)
            return {name: devices.rows(name, chosen(positions), zero) for name in algorithm.device_vectors}

        def previous(positions: Sequence[int]) -> Tensor:
            missing = start if start.dim() == 1 else start[list(positions)]
            return devices.rows(LOCAL_MODEL, chosen(positions), missing)

        kept = previous if algorithm.keeps_local_model else None
        return Work(start, batches, lr, algorithm, self.state, own, kept, terms)

    def aggregate(self, arrived: Sequence[int], samples: Mapping[int, int]) -> None:
        """Take in the updates of these devices; those without data do not count.

        Args:
            arrived: ids whose update made it.
            samples: id -> number of samples, of all devices of the session.

        Raises:
            Diverged: the new model is not finite.
        """
        last, layout = self.last, self._training.layout
        where = {id_: k for k, id_ in enumerate(last.ids)}
        positions = [where[id_] for id_ in sorted(arrived) if last.batches.steps[where[id_]]]
        if not positions:
            return
        ids = [last.ids[k] for k in positions]
        rows = last.rows
        if len(positions) < len(last.ids):
            for k, position in enumerate(positions):  # in place: a second [K, M] may not fit
                rows[k] = rows[position]
            rows = rows[: len(positions)]
        held = np.array([samples[id_] for id_ in ids], dtype=np.float64)
        steps = last.batches.steps[positions]
        parameters, statistics = layout.split(rows)
        start, _ = layout.split(last.received_by(positions))
        updates = Updates(
            rows=parameters,
            start=start,
            shares=_like(held / held.sum(), rows),
            coverage=float(held.sum() / sum(samples.values())),
            iterations=_like(steps, rows),
            travel=_like(self._training.travel(steps), rows),
            lr=last.lr,
        )
        self._keep_device_states(ids, rows, updates)
        model, self.state = self._algorithm.aggregate(layout.split(self.model)[0], updates, self.state)
        if not torch.isfinite(model.sum()):
            raise Diverged(None)
        self.model = torch.cat([model, updates.shares @ statistics])

    def _keep_device_states(self, ids: Sequence[int], rows: Tensor, updates: Updates) -> None:
        if self._algorithm.keeps_local_model:
            self.devices.keep(LOCAL_MODEL, ids, rows)
        names = self._algorithm.device_vectors
        if not names:
            return
        zero = torch.zeros_like(updates.rows[0])
        size = max(1, FINISHED_AT_ONCE_BYTES // (4 * zero.numel()))
        for begin in range(0, len(ids), size):
            end = min(begin + size, len(ids))
            own = {name: self.devices.rows(name, ids[begin:end], zero) for name in names}
            finished = self._algorithm.finish(updates.part(begin, end), self.state, own)
            for name, vectors in finished.items():
                self.devices.keep(name, ids[begin:end], vectors)


class _Members:
    """The devices of a session, weighted by their data."""

    def __init__(self, devices: DeviceStates, samples: Mapping[int, int], like: Tensor) -> None:
        self._devices = devices
        self._ids = list(samples)
        self._weights = np.array(list(samples.values()), dtype=np.float64) / max(1, sum(samples.values()))
        self._like = like

    def mean(self, name: str) -> Tensor:
        return self._devices.mean(name, self._ids, self._weights, self._like)

    def shift(self, name: str, by: Tensor) -> None:
        self._devices.shift(name, self._ids, by)


def _like(values: np.ndarray, rows: Tensor) -> Tensor:
    return torch.as_tensor(values, dtype=rows.dtype, device=rows.device)
