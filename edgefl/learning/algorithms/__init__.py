"""Federated learning algorithms: one readable file each, state in and state out.

All tensors hold parameters only, [M] or a row per device; what a model keeps beside its parameters (batch
statistics) is averaged by the learner and never reaches an algorithm. `OutputTerm`s, which run models, are
the exception.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from torch import Tensor

from edgefl.component import Component
from edgefl.learning.models import OutputTerm

ServerState = Mapping[str, Tensor]


@dataclass(frozen=True)
class Updates:
    """Local models that reached the server, K of them in order of device id, and how they were made.

    rows: [K, M] local models.
    start: [M] what the devices received, or [K, M] where each received its own.
    shares: [K] D_k over the data of these devices, sum 1.
    coverage: data of these devices over the data of all devices of the session, in (0, 1].
    iterations: [K] local steps that each did, at least 1.
    travel: [K] sum of the weights with which the steps' gradients g_s entered (start - row) / lr:
        a_k = sum_s (1 - rho^(e_k - s + 1)) / (1 - rho) with momentum rho, the number of steps without.
    lr: local learning rate.
    """

    rows: Tensor
    start: Tensor
    shares: Tensor
    coverage: float
    iterations: Tensor
    travel: Tensor
    lr: float

    def mean(self) -> Tensor:
        """[M] local models, averaged by data size (J 5)."""
        return self.shares @ self.rows

    def mean_change(self) -> Tensor:
        """[M] Delta: the mean of row - start."""
        return self.mean() - (self.start if self.start.dim() == 1 else self.shares @ self.start)

    def part(self, begin: int, end: int) -> "Updates":
        """The same of some of the devices; shares are not rescaled."""
        return replace(
            self,
            rows=self.rows[begin:end],
            start=self.start if self.start.dim() == 1 else self.start[begin:end],
            shares=self.shares[begin:end],
            iterations=self.iterations[begin:end],
            travel=self.travel[begin:end],
        )


class Members(Protocol):
    """The devices of a session, by the vectors that they keep."""

    def mean(self, name: str) -> Tensor:
        """[M] mean of a vector, by data size; a device that never kept one counts as 0."""

    def shift(self, name: str, by: Tensor) -> None:
        """Add [M] to the vector of each device."""


class Algorithm(Component):
    """Base of all algorithms; every method here does what federated averaging does.

    A device's own vectors follow it from session to session and from cell to cell. They change only with an
    update that reaches the server: a device that is cut off forgets the round.
    """

    # [M] vectors that each device keeps between rounds, zero at first
    device_vectors: ClassVar[tuple[str, ...]] = ()
    # whether each device keeps its last local model (for `term`)
    keeps_local_model: ClassVar[bool] = False
    # vectors of M numbers in a transfer, each way
    vectors_exchanged: ClassVar[int] = 1

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        """The server's state before the first round of a session.

        Args:
            start: [M] the session's opening model.
            last: the state as the last session left it; empty in the first.
            members: the devices that are there.
        """
        return {}

    def start_rows(self, model: Tensor, state: ServerState) -> Tensor:
        """What the devices receive and start from: [M]; model [M] is the global one."""
        return model

    def term(self, start: Tensor, previous: Tensor | None) -> OutputTerm | None:
        """A term of the local loss that looks at the models' outputs.

        Args:
            start: [M + Q] or [k, M + Q] the received model with its statistics.
            previous: [k, M + Q] the devices' last local models, the received one where there is none; given
                if the algorithm keeps them.
        """
        return None

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Mapping[str, Tensor]
    ) -> Tensor:
        """Gradients as used by a local step.

        Args:
            grads: [k, M] gradients of the local loss; may be changed in place.
            local: [k, M] local models.
            start: [M] or [k, M] what the devices received.
            state: the server's.
            own: the devices' vectors, [k, M] each.

        Returns:
            [k, M].
        """
        return grads

    def finish(self, updates: Updates, state: ServerState, own: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The devices' own vectors after local training, [k, M] each; may be changed in place.

        Args:
            updates: of the k devices whose update arrived.
            state: the server's as the devices received it.
        """
        return own

    @abstractmethod
    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        """The next global model [M] and the server's next state; model [M] is the present one."""
