"""Warm starts: how the model that opens a session is made."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from edgefl.component import Component


@dataclass(frozen=True)
class Saved:
    """What is kept of an ended session z > P: its last model, and its computed gradient G_z if any."""

    session: int
    model: Tensor  # [M] w^(z, T+1)
    gradient: Tensor | None  # [M] G_z


@dataclass(frozen=True)
class OpeningModel:
    """[M] the model a session begins with, and the weight of each saved session in it."""

    model: Tensor
    weights: dict[int, float]


class WarmStart(Component):
    """Base of all warm starts. Sessions 1 to P are plain, whatever the warm start."""

    @property
    def probes(self) -> int:
        """V: gradient rounds at the start of each session after the pilot ones."""
        return 0

    @property
    def probe_participants(self) -> float:
        """Share of a round's participants that a probe round samples, in (0, 1]."""
        return 1.0

    def pilot(self, finals: Sequence[Tensor]) -> Tensor:
        """[M] w_pilot, from the last models of the P pilot sessions; only asked if there are probes."""
        raise NotImplementedError

    @abstractmethod
    def opening(self, current: Tensor, saved: Sequence[Saved], gradient: Tensor | None) -> OpeningModel:
        """The model that opens a session s > P.

        Args:
            current: [M] the global model as the last session left it.
            saved: sessions P+1 .. s-1, oldest first; may be empty.
            gradient: [M] G_s, if this warm start probes.
        """
