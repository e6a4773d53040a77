"""Methods that few algorithms need; each defaults to federated averaging."""

from collections.abc import Mapping
from typing import ClassVar

from edgefl.learning.algorithms._exchanged import Members, Receivers, Sent, ServerState, Trained, Vectors
from edgefl.learning.models import OutputTerm
from edgefl.learning.tensors import Tensor

# cost of `whole_gradients` in forward passes over all samples: two gradients, and a backward pass counts as two
GRADIENT_PASSES = 2 * 3


class RareVerbs:
    """Base class of `Algorithm` with the methods and declarations that few algorithms override, in call order."""

    about_methods: ClassVar[Mapping[str, tuple[str, ...]]] = {"aggregate": ("uses",)}
    # whether the algorithm needs classes; with a task without classes, such an algorithm is an error
    of_classes: ClassVar[bool] = False
    # whether each device keeps its last local model (for `term`)
    keeps_local_model: ClassVar[bool] = False
    # whether each device trains and keeps a personal model besides the local model, on the same mini-batches;
    # the personal model begins as the model that the device receives
    trains_personal: ClassVar[bool] = False
    # whether a second model is trained on the data of the other concept, which requires a drift known in advance
    knows_drift: ClassVar[bool] = False
    # whether each device receives several models, and chooses one by forward passes
    chooses_model: ClassVar[bool] = False
    # whether each device computes the gradient of its loss on all its samples, at the model that it receives (for
    # `correct`: RECEIVED_GRADIENT among its vectors) and at its local model after training (for `upload`)
    whole_gradients: ClassVar[bool] = False
    # whether all updates of an aggregation must start from the same model and state, so that overlapping rounds are
    # errors
    one_round: ClassVar[bool] = False
    # whether updates must count in full, so that using a server that weights updates is an error
    as_sent: ClassVar[bool] = False
    # whether a device sends the difference from what the server has decoded so far, so that the next difference
    # includes the coding error, and error feedback needs no memory
    sends_differences: ClassVar[bool] = False
    # names of notes, one number per device, that each device remembers until it takes part again
    remembers: ClassVar[tuple[str, ...]] = ()
    # number of vectors [M] in a transfer to a device, and in a transfer from a device; with 0 uploaded vectors
    # nothing is exchanged, and each device also keeps the statistics of its own model
    vectors_down: ClassVar[int] = 1
    vectors_up: ClassVar[int] = 1
    # number of extra vectors that a device receives in a session until its first update has arrived
    vectors_at_start: ClassVar[int] = 0

    def join(self, state: ServerState, members: Members, newcomers: Members) -> ServerState:
        """Return the server's state after devices have joined a running session, before their first round.

        A device that leaves stays a member until the session ends, as does a device that is not selected; a device
        that comes back from another cell's session joins again. Called again for the same newcomers, `join` must
        return the same state: an interrupted run may repeat the call.

        Args:
            state: the server's state.
            members: all devices of the session so far, newcomers included.
            newcomers: the devices that join.

        Returns:
            The server's state with which the round begins.
        """
        return state

    def learning_rate(self, lr: float, state: ServerState) -> float:
        """Return the devices' learning rate in a round; `lr` is the rate according to the settings."""
        return lr

    def expected_down(self, state: ServerState) -> int:
        """Return the expected number of vectors [M] that a device receives in a round."""
        return self.vectors_down

    def weighs_equally(self) -> bool:
        """Return whether all devices with data have equal shares in an aggregation, not shares by data size."""
        return False

    # ---- on devices

    def term(self, start: Tensor, previous: Tensor | None) -> OutputTerm | None:
        """Return an extra term of the local loss that uses the models' outputs, or None.

        Args:
            start: the received model with its statistics, [M + Q], or one per device [k, M + Q].
            previous: [k, M + Q] the devices' last local models, or the received model for a device without a last
                local model; None unless the algorithm keeps local models.
        """
        return None

    def needs_sgd(self) -> bool:
        """Return whether a device's change must be lr times a weighted sum of gradients, as with SGD.

        If so, any other `learning.local.optimiser` is an error. An algorithm that reads `travel` needs SGD.
        """
        return False

    def personal_point(self, personal: Tensor, local: Tensor) -> Tensor:
        """Return the points [k, M] at which a step computes the gradients of personal models [k, M]."""
        return personal

    def correct_personal(
        self, grads: Tensor, personal: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        """Correct the gradients [k, M] of personal models [k, M] before a step; other arguments as in `correct`."""
        return grads

    def keeps_apart(self) -> float:
        """Return the share, in [0, 1), of a device's samples that the device holds out for `stop`."""
        return 0.0

    def stop(self, epoch: Tensor, loss: Tensor, before: Tensor) -> Tensor:
        """Return whether each device ends local training after an epoch; called if devices hold out data.

        It is not called for devices without held-out samples or without remaining steps.

        Args:
            epoch: number of the epoch that each device has just completed, [k], counted from 1.
            loss: mean loss of each device's local model on the device's held-out samples, [k].
            before: the same loss after the previous epoch, [k]; in the first epoch, the loss of the received model.

        Returns:
            Whether each device stops, [k] bool.
        """
        return loss.new_zeros(loss.shape).bool()

    def upload(self, trained: Trained, state: ServerState, own: Vectors) -> Sent:
        """Return the uploads of k devices after local training.

        The default needs no memory; an algorithm that overrides this method needs a tensor [K, M] for uploads,
        besides the local models.

        Args:
            trained: the devices and their local models, not to be changed.
            state: the server's state as the devices received it.
            own: the devices' vectors; may be changed in place, but changes are not kept.
        """
        return Sent(trained.local)

    # ---- tests of devices

    def deployed(self, model: Tensor, state: ServerState, devices: Receivers) -> Tensor:
        """Return the model that serves these devices now: [M] for all, or [K, M] one for each device.

        Args:
            model: the global model, [M].
            devices: the K devices, as passed to `receive` in a round.
        """
        return model

    def personal(self, model: Tensor, personal: Tensor, own: Vectors) -> Tensor:
        """Return the personal models with which k devices are tested.

        Args:
            model: the global model [M]; or right after training, the devices' local models [k, M].
            personal: [k, M] personal models if the algorithm trains them, otherwise the global model in each row.
            own: the devices' vectors.

        Returns:
            The personal models, [k, M].
        """
        return personal

    @classmethod
    def changes_upload(cls) -> bool:
        """Return whether devices send something other than their local models."""
        return cls.upload is not RareVerbs.upload

    @classmethod
    def has_personal(cls) -> bool:
        """Return whether devices have personal models with which they are tested."""
        return cls.trains_personal or cls.personal is not RareVerbs.personal

    @classmethod
    def keeps_own_model(cls) -> bool:
        """Return whether a device that is cut off in a round keeps its personal model from before the round."""
        return cls.has_personal() or cls.vectors_up == 0
