"""Federated learning algorithms: one readable file each, state in and state out.

The verbs of `Algorithm` follow a round: what a device receives, how it corrects its steps, when it stops,
what it uploads and keeps, how the server aggregates, and with which model a device is tested.

All tensors hold parameters only, [M] or a row per device; what a model keeps beside its parameters (batch
statistics) is averaged by the learner and never reaches an algorithm. `OutputTerm`s, which run models, are
the exception.
"""

from collections.abc import Mapping
from typing import ClassVar

from edgefl.config.component import Component
from edgefl.learning.algorithms._exchanged import (
    Members,
    Notes,
    Received,
    Receivers,
    Sent,
    ServerState,
    Trained,
    Updates,
)
from edgefl.learning.chance import Chance
from edgefl.learning.models import OutputTerm
from edgefl.learning.tensors import Tensor

__all__ = [
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
]


class Algorithm(Component):
    """Base of all algorithms; each verb here does what federated averaging does.

    A device's own vectors follow it from session to session and from cell to cell, as long as it holds the same
    data: where a partition deals anew, devices begin without any. They change only with an update that reaches
    the server: a device that is cut off forgets the round.
    """

    # what the next model is made of. models: the mean of the devices' models, which receive it as it is; mean: the
    # server goes on from that mean, and knows no update by itself; updates: it looks at single ones
    uses: ClassVar[str] = "updates"
    # [M] vectors that each device keeps between rounds, zero at first
    device_vectors: ClassVar[tuple[str, ...]] = ()
    # whether each device keeps its last local model (for `term`)
    keeps_local_model: ClassVar[bool] = False
    # whether it is made for classes alone, and refused for other tasks
    of_classes: ClassVar[bool] = False
    # whether each device trains and keeps a personal model beside the local one, on the same mini-batches;
    # at first it is the model that the device receives
    trains_personal: ClassVar[bool] = False
    # whether a second model is trained on the data of the other concept: the learner needs a drift, and knows it
    knows_drift: ClassVar[bool] = False
    # whether each device receives several models and runs them forward to choose one
    chooses_model: ClassVar[bool] = False
    # whether its algebra needs that all updates of an aggregation began from the same model and server state: it is
    # then refused where rounds overlap
    one_round: ClassVar[bool] = False
    # whether updates have to count as they were sent where rounds overlap: a server that weighs them is refused
    as_sent: ClassVar[bool] = False
    # whether devices send differences to what they have sent before: what is lost of one is in the next, and needs no
    # memory of its own
    sends_differences: ClassVar[bool] = False
    # names of notes, one number per device, that each device remembers until it takes part again
    remembers: ClassVar[tuple[str, ...]] = ()
    # vectors of M numbers in a transfer to a device, and in one from it; none up: nothing is exchanged, and each
    # device keeps the statistics of its own model too
    vectors_down: ClassVar[int] = 1
    vectors_up: ClassVar[int] = 1
    # vectors that a device receives besides in a session, until an update of it has arrived
    vectors_at_start: ClassVar[int] = 0

    # ---- a session begins

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        """Make the server's state before the first round of a session.

        Args:
            start: [M] the session's opening model.
            last: the state as the last session left it; empty in the first.
            members: the devices that are present.
        """
        return {}

    def join(self, state: ServerState, members: Members, newcomers: Members) -> ServerState:
        """Take in devices that join a session under way, before their first round of it.

        A device that leaves stays a member until the session ends, like one that is not selected; if it comes back
        from another cell's session, it joins again. Asked again for the same newcomers, `join` has to give the
        same: an interrupted run may repeat it.

        Args:
            state: the server's.
            members: all devices of the session so far, the newcomers among them.
            newcomers: those that join.

        Returns:
            The server's state with which the round begins.
        """
        return state

    # ---- a round, on its way down

    def learning_rate(self, lr: float, state: ServerState) -> float:
        """Return the devices' learning rate in a round; `lr` is the one that the settings give for it."""
        return lr

    def receive(self, model: Tensor, state: ServerState, devices: Receivers) -> Received:
        """Make what the devices of a round receive and start from; `model` [M] is the global one."""
        return Received(model)

    def expected_down(self, state: ServerState) -> int:
        """Return how many vectors of M numbers a device will receive in a round, as far as the state says."""
        return self.vectors_down

    # ---- at the devices

    def term(self, start: Tensor, previous: Tensor | None) -> OutputTerm | None:
        """Make a further term of the local loss, which looks at the models' outputs; None: no such term.

        Args:
            start: [M + Q] or [k, M + Q] the received model with its statistics.
            previous: [k, M + Q] the devices' last local models, or the received one for a device without; given
                if the algorithm keeps them.
        """
        return None

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Mapping[str, Tensor]
    ) -> Tensor:
        """Correct the gradients for a local step.

        Args:
            grads: [k, M] gradients of the local loss; may be changed in place.
            local: [k, M] local models.
            start: [M] or [k, M] what the devices received.
            state: the server's.
            own: the devices' vectors, [k, M] each.

        Returns:
            [k, M], which the step then uses up.
        """
        return grads

    def needs_sgd(self) -> bool:
        """Return whether it counts on a device's change being lr times a weighted sum of gradients, as SGD's is.

        With another `learning.local.optimiser` it is then refused: one that reads `travel` needs it.
        """
        return False

    def personal_point(self, personal: Tensor, local: Tensor) -> Tensor:
        """Return the point [k, M] at which a step takes the personal models' gradients; both [k, M] as before it."""
        return personal

    def correct_personal(
        self, grads: Tensor, personal: Tensor, start: Tensor, state: ServerState, own: Mapping[str, Tensor]
    ) -> Tensor:
        """Correct the gradients [k, M] for a step of the personal models [k, M]; the rest as in `correct`."""
        return grads

    def keeps_apart(self) -> float:
        """Return the share of a device's samples, in [0, 1), that it only tests on, for `stop`; 0: none."""
        return 0.0

    def stop(self, epoch: Tensor, loss: Tensor, before: Tensor) -> Tensor:
        """Decide whether devices end local training after an epoch; asked if they keep data apart.

        Not asked for a device without a sample to keep apart, or one whose steps are done anyway.

        Args:
            epoch: [k] number of the epoch that each device has ended, from 1 on.
            loss: [k] mean loss of its local model on the samples kept apart.
            before: [k] likewise after the epoch before, or for the first epoch, of the received model.

        Returns:
            [k] bool.
        """
        return loss.new_zeros(loss.shape).bool()

    # ---- on the way up

    def upload(self, trained: Trained, state: ServerState, own: Mapping[str, Tensor]) -> Sent:
        """Make what k devices send.

        Not overridden, it needs no memory; an algorithm that overrides it needs a second [K, M] for what is
        sent beside the local models.

        Args:
            trained: the devices and their local models, not to be changed.
            state: the server's as the devices received it.
            own: the devices' vectors, [k, M] each; may be changed in place, and are not kept.
        """
        return Sent(trained.local)

    def keep(
        self, trained: Trained, sent: Tensor, state: ServerState, own: Mapping[str, Tensor]
    ) -> Mapping[str, Tensor]:
        """Return the devices' own vectors after a round, [k, M] each; `own` may be changed in place.

        Args:
            trained: the k devices whose update arrived, and their local models, not to be changed.
            sent: [k, M] what they sent.
            state: the server's as the devices received it.
        """
        return own

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        """Make the next global model [M] and the server's next state; `model` [M] is the present one."""
        return updates.mean(), state

    # ---- when devices are tested

    def deployed(self, model: Tensor, state: ServerState, devices: Receivers) -> Tensor:
        """Return the model with which the server would serve these devices now: [M], or [K, M] one for each.

        Args:
            model: [M] the global one.
            devices: K of them, as they would receive a round's model.
        """
        return model

    def personal(self, model: Tensor, personal: Tensor, own: Mapping[str, Tensor]) -> Tensor:
        """Make the models with which k devices are tested, if each has its own.

        Args:
            model: [M] the global one; or right after training, [k, M] the devices' local models, which are what
                they have of it.
            personal: [k, M] personal models if the algorithm trains them, else the global one for each device.
            own: the devices' vectors, [k, M] each.

        Returns:
            [k, M].
        """
        return personal

    @classmethod
    def changes_upload(cls) -> bool:
        """Return whether devices send something else than their local models."""
        return cls.upload is not Algorithm.upload

    @classmethod
    def has_personal(cls) -> bool:
        """Return whether devices are tested with models of their own."""
        return cls.trains_personal or cls.personal is not Algorithm.personal

    @classmethod
    def keeps_own_model(cls) -> bool:
        """Return whether a device that is cut off in a round goes on with the own model that it had before."""
        return cls.has_personal() or cls.vectors_up == 0
