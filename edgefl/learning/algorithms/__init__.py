"""Federated learning algorithms, each in one readable file; an algorithm receives and returns its state.

All tensors contain parameters only, [M] or one row per device. The learner averages batch-norm statistics, which are
not parameters; an algorithm receives them only in an `OutputTerm`, which runs models.
"""

from typing import ClassVar

from edgefl.config.component import Component
from edgefl.learning.algorithms._exchanged import (
    RECEIVED_GRADIENT,
    Members,
    Notes,
    Received,
    Receivers,
    Sent,
    ServerState,
    Trained,
    Updates,
    Vectors,
)
from edgefl.learning.algorithms._rare import RareVerbs
from edgefl.learning.chance import Chance
from edgefl.learning.tensors import Tensor

__all__ = [
    "RECEIVED_GRADIENT",
    "Algorithm",
    "Chance",
    "Members",
    "Notes",
    "Received",
    "Receivers",
    "Sent",
    "ServerState",
    "Trained",
    "Updates",
    "Vectors",
]


class Algorithm(Component, RareVerbs):
    """Base class of all algorithms; each method defaults to federated averaging.

    The methods here, in the order of a round, are those that nearly all algorithms need. `_rare.py` has other
    methods: loss terms that use outputs, personal models, early stopping, other uploads, numbers of vectors sent.

    A device keeps its own vectors from session to session and from cell to cell, as long as it holds the same data.
    These vectors change only if the device's update reaches the server.
    """

    # input of the next global model. models: the mean of the devices' models, which is the next model; mean: the same
    # mean, from which the server computes the next model; updates: individual updates, or what devices keep of them
    uses: ClassVar[str] = "updates"
    # names of the vectors [M] that each device keeps between rounds, zero at first
    device_vectors: ClassVar[tuple[str, ...]] = ()

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        """Return the server's state at the beginning of a session's first round.

        Args:
            start: the session's opening model, [M].
            last: the state at the end of the last session; empty in the first session.
            members: the devices that are present.
        """
        return {}

    def receive(self, model: Tensor, state: ServerState, devices: Receivers) -> Received:
        """Return the models that a round's devices receive and train from; `model` [M] is the global model."""
        return Received(model)

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        """Correct the devices' gradients before a local step.

        Args:
            grads: gradients of the local loss, [k, M]; the method may change them in place.
            local: [k, M] local models.
            start: the models that the devices received, [M] or [k, M].
            state: the server's state.
            own: the vectors that the devices keep.

        Returns:
            The corrected gradients [k, M], which the step may overwrite.
        """
        return grads

    def keep(self, trained: Trained, sent: Tensor, state: ServerState, own: Vectors) -> Vectors:
        """Return the vectors that devices keep after a round; `own` may be changed in place.

        Args:
            trained: local models and ids of the k devices from which an update arrived; not to be changed.
            sent: the rows that these devices sent, [k, M].
            state: the server's state as the devices received it.
        """
        return own

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        """Return the next global model [M] and the server's next state; `model` [M] is the current global model."""
        return updates.mean(), state
