"""A round of local training as a value: what the devices did, and the local models that await upload."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from edgefl.learning.algorithms import Notes
from edgefl.learning.batches import Batches
from edgefl.learning.local_task import LocalModels


@dataclass(frozen=True)
class LocalResult:
    """What each of K devices did in a round of local training, in order of id.

    steps: [K] local steps that it did.
    samples: [K] samples in the mini-batches of these steps, without padding.
    tested: [K] samples run forward only, for `stop` and `receive`.
    down_bits, up_bits: [K] bits that it received and sends.
    scalars: those notes of the algorithm that are one number per device, [K] each.
    """

    steps: np.ndarray
    samples: np.ndarray
    tested: np.ndarray
    down_bits: np.ndarray
    up_bits: np.ndarray
    scalars: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class WaitingRound:
    """A round whose local models await the server's aggregation.

    start: [M + Q] or [K, M + Q] what the devices received.
    models: local models of the K devices, in order of id.
    sent: [K, M] what they upload; None: their local models.
    notes: those of `Received` and those of `Sent`.
    """

    ids: Sequence[int]
    batches: Batches
    lr: float
    start: Tensor
    models: LocalModels
    sent: Tensor | None
    notes: tuple[Notes, Notes]

    @property
    def rows(self) -> Tensor:
        """[K, M + Q] local models."""
        return self.models.rows

    def received_by(self, positions: Sequence[int]) -> Tensor:
        """Return what the devices at these positions received: [M + Q], or [n, M + Q]."""
        return self.start if self.start.dim() == 1 else self.start[list(positions)]
