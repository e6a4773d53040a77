"""The results of a round of local training, and devices' updates until they are aggregated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.algorithms import Notes
from edgefl.learning.data.batches import Batches
from edgefl.learning.local.local_task import LocalModels
from edgefl.learning.updates.rows import rebased

MEANT = "uncoded"  # name of `TrainedRound.meant` in snapshots


@dataclass(frozen=True)
class TrainedRound:
    """The results of a round's local training on K devices, in order of id; later training does not change them.

    batches: the round's mini-batches, or None if the round comes from a snapshot.
    lr: learning rate; one per device [K] if the round was joined from several rounds.
    version: version of the model that the round started from, as in `TrainedModel`.
    start: the models that devices received, [M + Q] or [K, M + Q].
    meant: the models that the server sent, before coding, [M] or [K, M]; if None, the models in `start`.
    models: local models of the devices.
    sent: uploads [K, M]; if None, devices sent their local models.
    notes: the notes in `Received` and `Sent`.
    memory: state of codec and optimiser that each device keeps if its update is aggregated, [K, n] by name.
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
        """The local models, [K, M + Q]."""
        return self.models.rows

    @property
    def trained(self) -> list[int]:
        """The positions of devices that took a local step, which are the devices with data."""
        return np.flatnonzero(self.models.steps).tolist()

    def received_by(self, positions: Sequence[int]) -> Tensor:
        """Return the model that devices at these indices received, [M + Q] for all, or [n, M + Q] one each."""
        return self.start if self.start.dim() == 1 else self.start[list(positions)]

    def undone(self, positions: Sequence[int], sent: Tensor, received: Tensor) -> tuple[Tensor, Tensor]:
        """Return uploads [k, M], and their start models, as if devices had received uncoded models.

        Each device's change is then relative to the server's model, so downlink coding errors do not enter the mean.

        Args:
            received: the models that devices received, [M] or [k, M].
        """
        start = self.meant
        if start is None:
            return sent, received
        start = start if start.dim() == 1 else start[list(positions)]
        return rebased(sent, received, start, sent.new_ones(len(sent)), received=True), start

    def part(self, positions: Sequence[int]) -> "TrainedRound":
        """Return a copy of the round with only the devices at these indices."""
        shared = {"start": self.start, MEANT: self.meant}
        of_all = {"lr", "version"} | {k for k, one in shared.items() if one is not None and one.dim() == 1}
        tensors = self.tensors().items()
        return self.of({name: one if name in of_all else one[list(positions)] for name, one in tensors})

    def tensors(self) -> dict[str, Tensor]:
        """Return everything but the mini-batches as tensors by name; `of` restores the round from these tensors."""
        models = self.models
        named = {
            "ids": torch.tensor(self.ids, dtype=torch.int64),
            "lr": torch.as_tensor(self.lr, dtype=torch.float64),
            "version": torch.tensor(self.version),
            "start": self.start,
            MEANT: self.meant,
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
        """Restore a round from the tensors that `tensors` returned."""
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
            tensors.get(MEANT),
        )


@dataclass(frozen=True)
class Update:
    """A device's update that has not been aggregated yet, as a round and the device's position in this round."""

    round: TrainedRound
    position: int

    @property
    def is_empty(self) -> bool:
        """Whether the device took no local step because it has no data."""
        return not self.round.models.steps[self.position]


@dataclass(frozen=True)
class Amounts:
    """The amounts of work of K devices in a round, in order of id, as far as known before training, [K] each.

    steps: how many local steps each device takes.
    samples: number of samples in the mini-batches of these steps, without padding.
    tested: number of samples with only a forward pass, for `stop`, `receive` and terms' reference models.
    down_bits, up_bits: how many bits each device receives and sends.
    """

    steps: np.ndarray
    samples: np.ndarray
    tested: np.ndarray
    down_bits: np.ndarray
    up_bits: np.ndarray


@dataclass(frozen=True)
class LocalResult(Amounts):
    """The work that K devices did in a round of local training.

    round: the trained round.
    scalars: notes of the algorithm with one number per device, and columns that the release adds, [K] each.
    after: column that the release adds -> the stage after which the column applies.
    not_finite: devices with an update that is not finite.
    """

    round: TrainedRound
    scalars: Mapping[str, np.ndarray]
    after: Mapping[str, str] = field(default_factory=dict)
    not_finite: tuple[int, ...] = ()


def parts(updates: Sequence[Update]) -> list[TrainedRound]:
    """Return copies of these updates, grouped into one partial round for each round that they come from."""
    places: dict[int, list[int]] = {}
    for update in updates:
        places.setdefault(id(update.round), []).append(update.position)
    rounds = {id(update.round): update.round for update in updates}
    return [rounds[key].part(positions) for key, positions in places.items()]
