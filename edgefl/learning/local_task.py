"""What a round asks of its devices in local training, and what comes back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from edgefl.learning.algorithms import Algorithm, ServerState
from edgefl.learning.batches import Batches
from edgefl.learning.models import OutputTerm


@dataclass(frozen=True)
class LocalTask:
    """Local training of a round's K devices; they are meant by their positions 0 to K-1.

    start: [M + Q] the model that all received, or [K, M + Q].
    own: of some devices, their own vectors, [k, M] each.
    previous: of some devices, their last local models, [k, M + Q].
    personal: of some devices, the personal models that they train beside the local ones, [k, M + Q].
    terms: further terms of the local loss.
    """

    start: Tensor
    batches: Batches
    lr: float
    algorithm: Algorithm
    state: ServerState = field(default_factory=dict)
    own: Callable[[Sequence[int]], Mapping[str, Tensor]] = lambda positions: {}
    previous: Callable[[Sequence[int]], Tensor] | None = None
    personal: Callable[[Sequence[int]], Tensor] | None = None
    terms: Sequence[OutputTerm] = ()

    def received(self, positions: Sequence[int]) -> Tensor:
        """[M + Q], or [k, M + Q] where they differ."""
        return self.start if self.start.dim() == 1 else self.start[list(positions)]

    def has_terms(self) -> bool:
        """Whether the local loss has terms of the outputs."""
        return bool(self.terms) or type(self.algorithm).term is not Algorithm.term

    def terms_of(self, positions: Sequence[int]) -> list[OutputTerm]:
        """All terms of the outputs, with references for these devices."""
        previous = self.previous(positions) if self.previous else None
        algorithms_term = self.algorithm.term(self.received(positions), previous)
        return [*self.terms, *([algorithms_term] if algorithms_term else [])]


@dataclass(frozen=True)
class LocalModels:
    """What K devices have come to; the next round overwrites it.

    rows: [K, M + Q] local models.
    personal: [K, M + Q] personal models; None: they train none.
    steps: [K] local steps that each really did.
    tested: [K] samples that each ran forward only, to see when to stop.
    """

    rows: Tensor
    personal: Tensor | None
    steps: np.ndarray
    tested: np.ndarray
