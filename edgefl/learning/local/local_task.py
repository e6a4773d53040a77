"""The task of local training in a round, and its result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from edgefl.learning.algorithms import Algorithm, ServerState
from edgefl.learning.data.batches import Batches
from edgefl.learning.models import OutputTerm

# (epoch, loss, loss before) [k] each -> [k] whether devices stop, as `Algorithm.stop`
Stop = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class LocalTask:
    """The local training that a round asks of its K devices. `positions` are theirs in the round, 0 to K-1.

    start: [M + Q] the model that all received, or [K, M + Q] where each received its own.
    own: positions -> the devices' own vectors by name, [k, M] each.
    previous: positions -> the devices' last local models, [k, M + Q].
    personal: positions -> the personal models trained beside the local ones, [k, M + Q].
    optimiser: positions -> state of the optimiser and steps so far, [k, V M + 1]; None: both begin anew.
    terms: further terms of the local loss.
    stop: when devices stop early, in place of the algorithm's verb.
    """

    start: Tensor
    batches: Batches
    lr: float
    algorithm: Algorithm
    state: ServerState = field(default_factory=dict)
    own: Callable[[Sequence[int]], Mapping[str, Tensor]] = lambda positions: {}
    previous: Callable[[Sequence[int]], Tensor] | None = None
    personal: Callable[[Sequence[int]], Tensor] | None = None
    optimiser: Callable[[Sequence[int]], Tensor] | None = None
    terms: Sequence[OutputTerm] = ()
    stop: Stop | None = None

    def received(self, positions: Sequence[int]) -> Tensor:
        """Return what these devices received: [M + Q] for all, or [k, M + Q]."""
        return self.start if self.start.dim() == 1 else self.start[list(positions)]

    def has_terms(self) -> bool:
        """Return whether the local loss has further terms, which look at the models' outputs."""
        return bool(self.terms) or type(self.algorithm).term is not Algorithm.term

    def terms_of(self, positions: Sequence[int]) -> list[OutputTerm]:
        """Return all further terms of the local loss, with reference models for these devices."""
        previous = self.previous(positions) if self.previous else None
        algorithms_term = self.algorithm.term(self.received(positions), previous)
        return [*self.terms, *([algorithms_term] if algorithms_term else [])]


@dataclass(frozen=True)
class LocalModels:
    """The models of K devices after local training.

    rows: [K, M + Q] local models.
    personal: [K, M + Q] personal models; None: the algorithm trains none.
    steps: [K] local steps that each device did.
    tested: [K] samples that each device ran forward only, to see when to stop.
    optimiser: [K, V M + 1] state of the optimiser and steps so far; None: nobody keeps it.
    """

    rows: Tensor
    personal: Tensor | None
    steps: np.ndarray
    tested: np.ndarray
    optimiser: Tensor | None = None

    @property
    def not_finite(self) -> list[int]:
        """Return the positions of devices whose local or personal model is not finite."""
        finite = self.rows.sum(1).isfinite()
        if self.personal is not None:
            finite &= self.personal.sum(1).isfinite()
        return (~finite).nonzero().squeeze(1).tolist()
