"""The rest of the contract of algorithms: what few need; each verb does what federated averaging does."""

from typing import ClassVar

from edgefl.learning.algorithms._exchanged import Members, Receivers, Sent, ServerState, Trained, Vectors
from edgefl.learning.models import OutputTerm
from edgefl.learning.tensors import Tensor


class RareVerbs:
    """The verbs and declarations of `Algorithm` that few override, in the order of a round."""

    # whether it is made for classes alone, and refused for other tasks
    of_classes: ClassVar[bool] = False
    # whether each device keeps its last local model (for `term`)
    keeps_local_model: ClassVar[bool] = False
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

    def learning_rate(self, lr: float, state: ServerState) -> float:
        """Return the devices' learning rate in a round; `lr` is the one that the settings give for it."""
        return lr

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

    def needs_sgd(self) -> bool:
        """Return whether it counts on a device's change being lr times a weighted sum of gradients, as SGD's is.

        With another `learning.local.optimiser` it is then refused: one that reads `travel` needs it.
        """
        return False

    def personal_point(self, personal: Tensor, local: Tensor) -> Tensor:
        """Return the point [k, M] at which a step takes the personal models' gradients; both [k, M] as before it."""
        return personal

    def correct_personal(
        self, grads: Tensor, personal: Tensor, start: Tensor, state: ServerState, own: Vectors
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

    def upload(self, trained: Trained, state: ServerState, own: Vectors) -> Sent:
        """Make what k devices send.

        Not overridden, it needs no memory; an algorithm that overrides it needs a second [K, M] for what is
        sent beside the local models.

        Args:
            trained: the devices and their local models, not to be changed.
            state: the server's as the devices received it.
            own: the devices' vectors; may be changed in place, and are not kept.
        """
        return Sent(trained.local)

    # ---- when devices are tested

    def deployed(self, model: Tensor, state: ServerState, devices: Receivers) -> Tensor:
        """Return the model with which the server would serve these devices now: [M], or [K, M] one for each.

        Args:
            model: [M] the global one.
            devices: K of them, as they would receive a round's model.
        """
        return model

    def personal(self, model: Tensor, personal: Tensor, own: Vectors) -> Tensor:
        """Make the models with which k devices are tested, if each has its own.

        Args:
            model: [M] the global one; or right after training, [k, M] the devices' local models, which are what
                they have of it.
            personal: [k, M] personal models if the algorithm trains them, else the global one for each device.
            own: the devices' vectors.

        Returns:
            [k, M].
        """
        return personal

    @classmethod
    def changes_upload(cls) -> bool:
        """Return whether devices send something else than their local models."""
        return cls.upload is not RareVerbs.upload

    @classmethod
    def has_personal(cls) -> bool:
        """Return whether devices are tested with models of their own."""
        return cls.trains_personal or cls.personal is not RareVerbs.personal

    @classmethod
    def keeps_own_model(cls) -> bool:
        """Return whether a device that is cut off in a round goes on with the own model that it had before."""
        return cls.has_personal() or cls.vectors_up == 0
