"""A round of local training as a value: what the devices did, and what waits for its upload."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from edgefl.learning.algorithms import Notes
from edgefl.learning.batches import Batches
from edgefl.learning.local_task import LocalModels
from edgefl.learning.parameters import ModelLayout


@dataclass(frozen=True)
class Payload:
    """Bits of a transfer.

    bits_per_parameter: of each number.
    exchanged: whether a transfer carries all vectors that the algorithm exchanges; else one model (J).
    """

    bits_per_parameter: int = 32
    exchanged: bool = False

    def bits(self, layout: ModelLayout, vectors: int) -> int:
        """Bits of a transfer of so many vectors, statistics on top."""
        parameters = (vectors if self.exchanged else 1) * layout.parameters.size
        return self.bits_per_parameter * (parameters + layout.statistics.size)


@dataclass(frozen=True)
class LocalResult:
    """What each of K devices did in a round, in order of id.

    steps: [K] local steps really done.
    samples: [K] in the mini-batches of these steps, padding left out.
    tested: [K] samples run forward only, for `stop` and `receive`.
    down_bits, up_bits: [K] that each received and sends.
    scalars: the algorithm's notes of one number per device, [K] each.
    """

    steps: np.ndarray
    samples: np.ndarray
    tested: np.ndarray
    down_bits: np.ndarray
    up_bits: np.ndarray
    scalars: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class WaitingRound:
    """Local models that wait for their uploads.

    start: [M + Q] or [K, M + Q] what the devices received.
    models: of the K devices, in order of id.
    sent: [K, M] what they upload; None: their local models.
    notes: of `Received` and of `Sent`, in this order.
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
        """What the devices at these positions received: [M + Q], or [n, M + Q]."""
        return self.start if self.start.dim() == 1 else self.start[list(positions)]
