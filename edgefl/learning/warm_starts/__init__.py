"""Warm starts: how the model that opens a session is made."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from edgefl.config.component import Component
from edgefl.learning.models import OutputTerm

if TYPE_CHECKING:
    from torch import Tensor

    from edgefl.learning.modules.parameters import TensorLayout

__all__ = ["Final", "OpeningModel", "Saved", "WarmStart"]


@dataclass(frozen=True)
class Final:
    """The last model of a pilot session, and its accuracy, or its task's score, on the test data of that session."""

    model: Tensor  # [M + Q]
    accuracy: float


@dataclass(frozen=True)
class Saved:
    """What is kept of an ended session z > P: its last model, and its gradient G_z if it has one."""

    session: int
    model: Tensor  # [M + Q] w^(z, T+1)
    gradient: Tensor | None  # [M] G_z


@dataclass(frozen=True)
class OpeningModel:
    """The model [M + Q] that a session begins with, and the weight of each saved session in it."""

    model: Tensor
    weights: dict[int, float]


class WarmStart(Component):
    """Base of all warm starts. Sessions 1 to P, the pilot, begin with the last model, whatever the warm start."""

    # whether it is made for classes alone, and refused for other tasks
    of_classes: ClassVar[bool] = False

    # whether sessions P + 1 and P + 2 are trained as by `previous`: there is no model to choose from, then one, and
    # the local loss has no further term
    first_two_as_previous: ClassVar[bool] = False

    @property
    def keeps_first_two(self) -> bool:
        """Whether sessions P + 1 and P + 2 are both kept, once the latter has ended."""
        return False

    def of_model(self, layout: TensorLayout) -> Self:
        """Return the warm start of a model whose parameters [M] lie so; asked once, before any other verb."""
        return self

    @property
    def probes(self) -> int:
        """V, the number of gradient rounds at the start of each session after the pilot ones."""
        return 0

    @property
    def probe_participants(self) -> float:
        """The share of the devices present that are sampled, once per session, for its probe rounds, in (0, 1]."""
        return 1.0

    def pilot(self, finals: Sequence[Final], initial: Tensor) -> Tensor:
        """Make w_pilot [M + Q] from the P pilot sessions; asked once, and only if there are probes.

        Args:
            finals: of sessions 1 to P.
            initial: [M + Q] the run's first, untrained model.
        """
        raise NotImplementedError

    def checks(self, saved: Sequence[Saved]) -> bool:
        """Return whether a further probe round compares the opening model with the last session's."""
        return False

    @abstractmethod
    def opening(self, current: Tensor, saved: Sequence[Saved], gradient: Tensor | None) -> OpeningModel:
        """Make the model that opens a session s > P.

        Args:
            current: [M + Q] the global model as the last session left it.
            saved: those of sessions P+1 .. s-1 that `retain` kept, oldest first; may be empty.
            gradient: [M] G_s, if this warm start probes and a probe's update has arrived.
        """

    def retain(self, saved: Sequence[Saved]) -> list[Saved]:
        """Return the saved sessions to keep, after the newest has been added as the last."""
        return list(saved)

    def anchor(self, previous: Tensor, known: Tensor) -> OutputTerm | None:
        """Make a further term of the local loss in the training rounds of a session s > P; None: no such term.

        Args:
            previous: [M + Q] the last model of session s - 1; zeros in a session that `learning.after_pilot: restart`
                begins, which has none.
            known: [C] bool, the classes of session s - 1; then all False.
        """
        return None
