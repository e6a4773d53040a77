"""The input of a round's local training, and the resulting models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from edgefl.learning.algorithms import Algorithm, ServerState
from edgefl.learning.data.batches import Batches
from edgefl.learning.models import OutputTerm

# (epoch, loss, loss before) [k] each -> whether devices stop [k], as `Algorithm.stop`
Stop = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class LocalTask:
    """The input of the local training of a round's K devices; `positions` are 0 to K-1.

    start: the model that all devices received [M + Q], or one model per device [K, M + Q].
    own: function of positions that returns the devices' own vectors by name, [k, M] each.
    previous: function of positions that returns the devices' last local models, [k, M + Q].
    personal: function of positions that returns the personal models to train besides the local models, [k, M + Q].
    optimiser: function of positions that returns optimiser state and steps so far, [k, V M + 1]; None: zeros.
    terms: extra terms of the local loss.
    stop: early stopping that replaces the algorithm's early stopping.
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
        """Return the model that devices at these indices received, [M + Q] for all, or [k, M + Q] one each."""
        return self.start if self.start.dim() == 1 else self.start[list(positions)]

    def has_terms(self) -> bool:
        """Return whether the local loss has extra terms that use the models' outputs."""
        return bool(self.terms) or type(self.algorithm).term is not Algorithm.term

    def terms_of(self, positions: Sequence[int]) -> list[OutputTerm]:
        """Return all extra terms of the local loss, with reference models for the devices at these indices."""
        previous = self.previous(positions) if self.previous else None
        algorithms_term = self.algorithm.term(self.received(positions), previous)
        return [*self.terms, *([algorithms_term] if algorithms_term else [])]


@dataclass(frozen=True)
class LocalModels:
    """The models of K devices after local training.

    rows: local models [K, M + Q].
    personal: personal models [K, M + Q], or None if the algorithm trains none.
    steps: local steps of each device [K].
    tested: [K] number of samples for which each device ran only the forward pass, for early stopping.
    optimiser: state of the optimiser and steps so far [K, V M + 1], or None if devices do not keep this state.
    """

    rows: Tensor
    personal: Tensor | None
    steps: np.ndarray
    tested: np.ndarray
    optimiser: Tensor | None = None

    @property
    def not_finite(self) -> list[int]:
        """The positions of devices with a local or personal model that is not finite."""
        finite = self.rows.sum(1).isfinite()
        if self.personal is not None:
            finite &= self.personal.sum(1).isfinite()
        return (~finite).nonzero().squeeze(1).tolist()
