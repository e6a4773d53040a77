"""Local optimisers: how devices' models move along their gradients, step by step."""

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
    """A step of local training, as the settings have it.

    number: in the round, from 1 on; where state is kept, [k, 1] of each device, counted from its first round on.
    lr: learning rate of the round. momentum, weight_decay: of the scenario.
    """

    number: int | Tensor
    lr: float
    momentum: float
    weight_decay: float


class Optimiser(Component):
    """Base of all local optimisers.

    A device's state begins with zeros in every round, as FedAvg's momentum does. With `state: kept` it begins with
    what the device's last update that arrived left, steps are counted on, and it follows the device from cell to cell
    while its data stay; nothing of it is ever sent. Learning rate, momentum and weight decay are settings of all
    optimisers (`learning.local.lr`, `momentum`, `weight_decay`). Devices are stacked, and none sees another: rows are
    independent.
    """

    # vectors [M] of each device's state
    vectors: ClassVar[int] = 0

    state: Literal["fresh", "kept"] = Field(
        "fresh", description="what a device's round begins with: zeros, or the state of its last one"
    )

    @abstractmethod
    def step(self, local: Tensor, grads: Tensor, state: Sequence[Tensor], step: Step) -> None:
        """Move local models by one step, in place, and bring their state up to date, in place.

        Args:
            local: [k, M] models.
            grads: [k, M] gradients as the algorithm corrected them, without weight decay; used up.
            state: [k, M] each of `vectors` vectors.
        """

    def weights(self, steps: int, momentum: float) -> np.ndarray | None:
        """Return [steps] the weight that the gradient of the last step, of the one before, ... has in the change.

        None: the change is no weighted sum of gradients (times lr), and algorithms that count on one are refused.
        """
        return None
