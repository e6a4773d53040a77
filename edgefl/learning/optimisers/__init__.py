"""Local optimisers, which turn gradients into steps of the devices' models."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from edgefl.config.component import Component
from edgefl.learning.tensors import Tensor

__all__ = ["Optimiser", "Step"]


@dataclass(frozen=True)
class Step:
    """The settings of one step of local training.

    number: number of the step in the round, from 1; with kept state, [k, 1] counted from each device's first round.
    lr: learning rate of the round. momentum, weight_decay: the scenario's settings.
    """

    number: int | Tensor
    lr: float
    momentum: float
    weight_decay: float


class Optimiser(Component):
    """Base class of all local optimisers.

    A device's state starts as zeros in every round, as FedAvg's momentum does. With `state: kept`, the state and the
    number of steps continue from the device's last update that arrived, and follow the device from cell to cell as
    long as its data stay the same; the state is never sent. Learning rate, momentum and weight decay are settings of
    all optimisers (`learning.local.lr`, `momentum`, `weight_decay`). Each row of a tensor belongs to one device.
    """

    # number of vectors [M] in a device's optimiser state
    vectors: ClassVar[int] = 0

    state: Literal["fresh", "kept"] = Field(
        "fresh",
        description="a device's state when a round starts. fresh: zeros; kept: from its last update that arrived",
    )

    about_methods: ClassVar = {"step": ("weights",)}

    @abstractmethod
    def step(self, local: Tensor, grads: Tensor, state: Sequence[Tensor], step: Step) -> None:
        """Update local models and their optimiser state by one step, in place.

        Args:
            local: models [k, M].
            grads: gradients [k, M] as corrected by the algorithm, without weight decay; may be overwritten.
            state: the optimiser's state, `vectors` tensors [k, M].
        """

    def weights(self, steps: int, momentum: float) -> np.ndarray | None:
        """Return the weights [steps] of the steps' gradients in a model's change, from the last step to the first.

        Return None if the change is not a weighted sum of gradients (times lr); algorithms that need such a sum then
        raise an error.
        """
        return None
