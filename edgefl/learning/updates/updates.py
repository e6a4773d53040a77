"""What devices have trained, as values: a round's results, and each device's update until a server takes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.algorithms import Notes
from edgefl.learning.data.batches import Batches
from edgefl.learning.local.local_task import LocalModels
from edgefl.learning.updates.rows import like_rows

_MEANT = "uncoded"  # name of `TrainedRound.meant` in snapshots


@dataclass(frozen=True)
class TrainedRound:
    """The local training of K devices, in order of id; no later training changes it.

    batches: what they were trained on; None where the round comes from a snapshot.
    lr: learning rate; in a round that is joined of several, [K] one of each device.
    version: of the model that the round began from, counted by `TrainedModel`.
    start: [M + Q] or [K, M + Q] what the devices received.
    meant: [M] or [K, M] the models that the server meant them to receive; None: those of `start`.
    models: local models of the devices.
    sent: [K, M] what they upload; None: their local models.
    notes: those of `Received` and those of `Sent`.
    memory: [K, n] by name, what each device whose update is aggregated keeps of its upload and its optimiser.
    """

    ids: Sequence[int]
    batches: Batches | None
    lr: float | Tensor
    version: int
    start: Tensor
    models: LocalModels
    sent: Tensor | None = None
    notes: tuple[Notes, Notes] = ({}, {})
    memory: Mapping[str, Tensor] = field(default_factory=dict)
    meant: Tensor | None = None

    @property
    def rows(self) -> Tensor:
        """[K, M + Q] local models."""
        return self.models.rows

    @property
    def trained(self) -> list[int]:
        """Positions of the devices that did a local step; without data there is none."""
        return np.flatnonzero(self.models.steps).tolist()

    def received_by(self, positions: Sequence[int]) -> Tensor:
        """Return what the devices at these positions received: [M + Q], or [n, M + Q]."""
        return self.start if self.start.dim() == 1 else self.start[list(positions)]

    def undone(self, positions: Sequence[int], sent: Tensor, received: Tensor) -> tuple[Tensor, Tensor]:
        """Return what these devices sent [k, M], and from which start, as if they had received what was meant.

        So the server sees each device's change from the model that it sends: what a device has not received yet goes
        into no mean.

        Args:
            received: [M] or [k, M] what they had received.
        """
        start = self.meant
        if start is None:
            return sent, received
        start = start if start.dim() == 1 else start[list(positions)]
        return rebased(sent, received, start, sent.new_ones(len(sent)), received=True), start

    def part(self, positions: Sequence[int]) -> "TrainedRound":
        """Return copies of what the devices at these positions trained."""
        shared = {"start": self.start, _MEANT: self.meant}
        of_all = {"lr", "version"} | {k for k, one in shared.items() if one is not None and one.dim() == 1}
        tensors = self.tensors().items()
        return self.of({name: one if name in of_all else one[list(positions)] for name, one in tensors})

    def tensors(self) -> dict[str, Tensor]:
        """Return everything but the batches as tensors by name, for `of`."""
        models = self.models
        named = {
            "ids": torch.tensor(self.ids, dtype=torch.int64),
            "lr": torch.as_tensor(self.lr, dtype=torch.float64),
            "version": torch.tensor(self.version),
            "start": self.start,
            _MEANT: self.meant,
            "rows": models.rows,
            "personal": models.personal,
            "steps": torch.from_numpy(models.steps),
            "tested": torch.from_numpy(models.tested),
            "sent": self.sent,
        }
        noted = {
            f"notes {i}/{name}": note for i, notes in enumerate(self.notes) for name, note in notes.items()
        } | {f"memory/{name}": rows for name, rows in self.memory.items()}
        return noted | {name: tensor for name, tensor in named.items() if tensor is not None}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> "TrainedRound":
        """Make a round again from what `tensors` gave."""
        received, sent, memory = (
            {name.removeprefix(begin): tensors[name] for name in tensors if name.startswith(begin)}
            for begin in ("notes 0/", "notes 1/", "memory/")
        )
        steps, tested = (tensors[name].cpu().numpy() for name in ("steps", "tested"))
        models = LocalModels(tensors["rows"], tensors.get("personal"), steps, tested)
        lr, version = float(tensors["lr"]), int(tensors["version"])
        ids = tensors["ids"].tolist()
        return cls(
            ids,
            None,
            lr,
            version,
            tensors["start"],
            models,
            tensors.get("sent"),
            (received, sent),
            memory,
            tensors.get(_MEANT),
        )


@dataclass(frozen=True)
class Update:
    """What one device has trained and no server has taken yet: a position in its round."""

    round: TrainedRound
    position: int

    @property
    def is_empty(self) -> bool:
        """Whether the device did no local step, as it has no data."""
        return not self.round.models.steps[self.position]


@dataclass(frozen=True)
class LocalResult:
    """What each of K devices did in a round of local training, in order of id.

    round: what they have trained.
    samples: [K] samples in the mini-batches of their steps, without padding.
    tested: [K] samples run forward only, for `stop` and `receive`, and by each model that a term compares with.
    down_bits, up_bits: [K] bits that it received and sends.
    scalars: those notes of the algorithm that are one number per device, and columns of an account, [K] each.
    after: columns of an account that hold once the device's part is over -> the stage after which they do.
    not_finite: devices whose update is no number.
    """

    round: TrainedRound
    samples: np.ndarray
    tested: np.ndarray
    down_bits: np.ndarray
    up_bits: np.ndarray
    scalars: Mapping[str, np.ndarray]
    after: Mapping[str, str] = field(default_factory=dict)
    not_finite: tuple[int, ...] = ()

    @property
    def steps(self) -> np.ndarray:
        """[K] local steps that each device did."""
        return self.round.models.steps


def parts(updates: Sequence[Update]) -> list[TrainedRound]:
    """Return copies of what these updates hold, as a part of each of their rounds; the rounds in order."""
    places: dict[int, list[int]] = {}
    for update in updates:
        places.setdefault(id(update.round), []).append(update.position)
    rounds = {id(update.round): update.round for update in updates}
    return [rounds[key].part(positions) for key, positions in places.items()]


def joined(updates: Sequence[Update]) -> TrainedRound:
    """Return updates of several rounds as those of one round, each with what its device received.

    Its version is that of the earliest model that one of them began from.
    """
    pieces = parts(updates)
    tensors = [one.tensors() | {"start": one.start.expand_as(one.rows)} for one in pieces]
    for one in tensors:
        if _MEANT in one:
            one[_MEANT] = one[_MEANT].expand(len(one["rows"]), -1)
    order = np.argsort(np.concatenate([one.ids for one in pieces]))
    rates = np.repeat([one.lr for one in pieces], [len(one.ids) for one in pieces])[order]
    rows = {
        name: torch.cat([one[name] for one in tensors])[order]
        for name in tensors[0].keys() - {"lr", "version"}
    }
    lr = pieces[0].lr if len(set(rates)) == 1 else like_rows(rates, pieces[0].rows)
    return replace(TrainedRound.of(tensors[0] | rows), lr=lr, version=min(one.version for one in pieces))


def rebased(sent: Tensor, start: Tensor, model: Tensor, weights: Tensor, *, received: bool) -> Tensor:
    """Return what K devices sent as if all had begun from today's model w, each change with its weight.

    row' = w + weight (row - start), or with `received` False, w + weight (row - w). A row that began from w and has
    the weight 1 stays as it is, to the last bit.

    Args:
        sent: [K, M] what they sent. start: [M] or [K, M] what they had received. model: w, likewise. weights: [K].
    """
    base = (start if received else model).expand_as(sent)
    same = (weights == 1) & (base == model).all(1)
    return torch.where(same.unsqueeze(1), sent, model + weights.unsqueeze(1) * (sent - base))


def towards(statistics: Tensor, today: Tensor, weights: Tensor) -> Tensor:
    """Return devices' statistics [K, Q] as they count: averaged, not learned, they go a share of the way.

    The share is their weight, at most the whole way. today: [Q] those of today's model.
    """
    way = weights.clamp_max(1.0).unsqueeze(1)
    return torch.where(way == 1, statistics, today + way * (statistics - today))
