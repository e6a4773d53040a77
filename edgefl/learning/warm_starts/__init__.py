"""Warm starts: make the model that opens a session."""

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
    """A saved session z > P: its last model, and its gradient G_z if it has one."""

    session: int
    model: Tensor  # [M + Q] w^(z, T+1)
    gradient: Tensor | None  # [M] G_z


@dataclass(frozen=True)
class OpeningModel:
    """The model [M + Q] that a session starts with, and the weight of each saved session in it."""

    model: Tensor
    weights: dict[int, float]


class WarmStart(Component):
    """Base of all warm starts. The pilot sessions 1 to P start with the last model, whatever the warm start."""

    # whether it needs classes, and is refused for other tasks
    of_classes: ClassVar[bool] = False

    # whether sessions P + 1 and P + 2 are the same as with `previous`: there are no saved models, then one, and the
    # local loss has no further term
    first_two_as_previous: ClassVar[bool] = False

    @property
    def keeps_first_two(self) -> bool:
        """Whether sessions P + 1 and P + 2 are both kept after the latter has ended."""
        return False

    def of_model(self, layout: TensorLayout) -> Self:
        """Return the warm start for a model with this layout of parameters [M]; called once, before other methods."""
        return self

    @property
    def probes(self) -> int:
        """V, the number of probe rounds at the start of each session after the pilot sessions."""
        return 0

    @property
    def probe_participants(self) -> float:
        """Share of the present devices sampled once per session for its probe rounds, in (0, 1]."""
        return 1.0

    def pilot(self, finals: Sequence[Final], initial: Tensor) -> Tensor:
        """Make w_pilot [M + Q] from the P pilot sessions; called once, and only with probes.

        Args:
            finals: final models of sessions 1 to P.
            initial: the run's first, untrained model [M + Q].
        """
        raise NotImplementedError

    def checks(self, saved: Sequence[Saved]) -> bool:
        """Return whether a further probe round compares the opening model with the last session's."""
        return False

    @abstractmethod
    def opening(self, current: Tensor, saved: Sequence[Saved], gradient: Tensor | None) -> OpeningModel:
        """Make the model that opens a session s > P.

        Args:
            current: the global model at the end of the last session [M + Q].
            saved: sessions among P+1 .. s-1 that `retain` kept, oldest first; may be empty.
            gradient: G_s [M], if this warm start probes and a probe's update has arrived.
        """

    def retain(self, saved: Sequence[Saved]) -> list[Saved]:
        """Return the saved sessions to keep, after the newest has been added as the last."""
        return list(saved)

    def anchor(self, previous: Tensor, known: Tensor) -> OutputTerm | None:
        """Make a further term of the local loss in the training rounds of a session s > P, or return None.

        Args:
            previous: the last model of session s - 1 [M + Q]; zeros if `learning.after_pilot: restart` starts the
                session without one.
            known: classes of session s - 1 [C] bool; all False after such a restart.
        """
        return None
