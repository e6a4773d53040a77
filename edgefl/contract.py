"""Where engine and learning meet: payload bits, iterations, device ids. No clock, no tensor passes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Phase = Literal["pilot", "probe", "train"]


@dataclass(frozen=True)
class Opening:
    """How a session opens: the phase of its rounds, and the probe rounds that come before them."""

    phase: Phase
    probe_rounds: int = 0
    probe_share: float = 1.0


@dataclass(frozen=True)
class Start:
    """The model with which a session's training begins."""

    warm_start: str = ""
    weights: Mapping[int, float] = field(default_factory=dict)  # saved session -> weight in the model
    labels: Sequence[int] = ()
    accuracy: float | None = None  # before any training, on the test data of the session's labels
    loss: float | None = None


@dataclass(frozen=True)
class Evaluation:
    """Accuracy (0 to 1) and loss of the global model on the test data of the session's labels."""

    accuracy: float
    loss: float


class Learner(Protocol):
    """Training as the server sees it: by payload bits, iterations and device ids."""

    payload_bits: int
    flops_per_sample: float
    batch: int
    version: int  # counts the global models made so far

    def open_session(self, session: int, ids: Sequence[int], longest: int) -> Opening:
        """A session of at most `longest` rounds begins with these devices."""

    def begin_training(self) -> Start:
        """Probe rounds are over; the session's opening model is made."""

    def local_update(self, ids: Sequence[int], phase: Phase, round_: int) -> Mapping[int, int]:
        """Train on these devices; returns the iterations each has done."""

    def reported_loss(self, ids: Sequence[int]) -> float:
        """Mean loss, over these participants of the last local_update, of the model they received."""

    def aggregate(self, ids: Sequence[int]) -> None:
        """Aggregate the updates of the devices that made it; never called without one."""

    def evaluate(self) -> Evaluation | None:
        """Test the global model; None where nothing is trained."""

    def close_session(self) -> None:
        """The session is over; its last model may be saved."""
