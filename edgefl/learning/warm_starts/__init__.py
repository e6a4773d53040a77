"""Warm starts, which make the model that opens a session."""

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
    """The last model of a pilot session, with its accuracy (or task score) on the session's test data."""

    model: Tensor  # [M + Q]
    accuracy: float


@dataclass(frozen=True)
class Saved:
    """A saved session z > P, with its last model, and with its gradient G_z if an update of its probes arrived."""

    session: int
    model: Tensor  # [M + Q] w^(z, T+1)
    gradient: Tensor | None  # [M] G_z


@dataclass(frozen=True)
class OpeningModel:
    """The model [M + Q] that a session starts with, and the weight of each saved session in it."""

    model: Tensor
    weights: dict[int, float]


class WarmStart(Component):
    """Base class of all warm starts. Pilot sessions 1 to P always start with the last session's model."""

    # whether the warm start needs classes; with a task without classes, such a warm start is an error
    of_classes: ClassVar[bool] = False

    # whether sessions P + 1 and P + 2 train as with `previous`: there is no saved model before the first session and
    # one before the second, and the local loss has no extra term
    first_two_as_previous: ClassVar[bool] = False

    @property
    def keeps_first_two(self) -> bool:
        """Whether the warm start keeps both sessions P + 1 and P + 2 after session P + 2 has ended."""
        return False

    def of_model(self, layout: TensorLayout) -> Self:
        """Return the warm start adapted to a model's parameter layout [M]; called once, before all other methods."""
        return self

    @property
    def probes(self) -> int:
        """The number V of probe rounds at the start of each session after the pilot sessions."""
        return 0

    @property
    def probe_participants(self) -> float:
        """The share of present devices, in (0, 1], that each session samples once for its probe rounds."""
        return 1.0

    def pilot(self, finals: Sequence[Final], initial: Tensor) -> Tensor:
        """Make the pilot model w_pilot [M + Q] from the P pilot sessions; called once, and only if probes run.

        Args:
            finals: final models of sessions 1 to P.
            initial: the run's first, untrained model [M + Q].
        """
        raise NotImplementedError

    def checks(self, saved: Sequence[Saved]) -> bool:
        """Return whether one more probe round compares the opening model with the last session's last model."""
        return False

    @abstractmethod
    def opening(self, current: Tensor, saved: Sequence[Saved], gradient: Tensor | None) -> OpeningModel:
        """Make the model that opens a session s > P.

        Args:
            current: the global model at the end of the previous session, [M + Q].
            saved: the sessions among P+1 .. s-1 that `retain` kept, oldest first; may be empty.
            gradient: G_s [M], if this warm start probes and a probe's update has arrived.
        """

    def retain(self, saved: Sequence[Saved]) -> list[Saved]:
        """Return which of the saved sessions to keep; the newest session has been added at the end."""
        return list(saved)

    def anchor(self, previous: Tensor, known: Tensor) -> OutputTerm | None:
        """Return an extra term of the local loss for training in a session s > P, or None for no term.

        Args:
            previous: the last model of session s - 1 [M + Q]; zeros if `learning.after_pilot: restart` starts the
                session without a previous model.
            known: classes of session s - 1 [C] bool; all False after such a restart.
        """
        return None
