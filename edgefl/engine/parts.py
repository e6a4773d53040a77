"""What one device did in one round, as a value: the result of its SimPy process.

Named tuples: a run makes four of these per device and round, and a frozen dataclass takes three times as long.
"""

from enum import StrEnum
from typing import NamedTuple


class Activity(StrEnum):
    """What a device does in a round, in this order."""

    DOWNLINK = "downlink"
    COMPUTE = "compute"
    UPLINK = "uplink"


class Cause(StrEnum):
    """Why a device is cut off from what it is doing."""

    LEFT = "left"  # it left the cell
    OFF = "off"  # it was switched off
    EMPTY = "empty"  # its battery ran empty
    LATE = "late"  # the round's deadline came
    SURPLUS = "surplus"  # enough updates of others had arrived
    RADIO_LINK_FAILURE = "failed"  # its link was too weak for too long


class Outcome(StrEnum):
    """How a device's part of a round ended: completed, or cut off by a cause in an activity."""

    COMPLETED = "completed"
    LEFT_DOWNLINK = "left_downlink"
    LEFT_COMPUTE = "left_compute"
    LEFT_UPLINK = "left_uplink"
    OFF_DOWNLINK = "off_downlink"
    OFF_COMPUTE = "off_compute"
    OFF_UPLINK = "off_uplink"
    EMPTY_DOWNLINK = "empty_downlink"
    EMPTY_COMPUTE = "empty_compute"
    EMPTY_UPLINK = "empty_uplink"
    LATE_DOWNLINK = "late_downlink"
    LATE_COMPUTE = "late_compute"
    LATE_UPLINK = "late_uplink"
    SURPLUS_DOWNLINK = "surplus_downlink"
    SURPLUS_COMPUTE = "surplus_compute"
    SURPLUS_UPLINK = "surplus_uplink"
    FAILED_DOWNLINK = "failed_downlink"
    FAILED_UPLINK = "failed_uplink"

    @classmethod
    def cut_off(cls, cause: Cause, activity: Activity) -> "Outcome":
        """Return the outcome of a part that a cause ended in the midst of an activity."""
        return cls(f"{cause}_{activity}")


class Span(NamedTuple):
    """One activity from start to end, or until it was cut off.

    bits: moved by a transfer. share_done: of the work, in [0, 1]. cut: why it ended early; None: it did not.
    airtime_s: time for which a transfer's radio was on.
    """

    start_s: float
    end_s: float
    energy_j: float
    bits: int = 0
    share_done: float = 1.0
    cut: Cause | None = None
    airtime_s: float = 0.0


class Task(NamedTuple):
    """A device's work in a round: bits to receive and to send, iterations and samples of local training."""

    down_bits: int
    up_bits: int
    iterations: int
    samples: int


class Part(NamedTuple):
    """What one device did in a round; None: an activity that it never reached."""

    device: int
    outcome: Outcome
    iterations: int
    downlink: Span
    compute: Span | None = None
    uplink: Span | None = None

    @classmethod
    def of(cls, device: int, iterations: int, spans: list[Span]) -> "Part":
        """Build the part from its activities, in order; the last one says how it ended."""
        last = spans[-1]
        outcome = Outcome.COMPLETED
        if last.cut is not None:
            outcome = Outcome.cut_off(last.cut, list(Activity)[len(spans) - 1])
        done = int(spans[1].share_done * iterations) if len(spans) > 1 else 0
        return cls(device, outcome, done, *spans)

    @property
    def completed(self) -> bool:
        """Whether the device's update arrived."""
        return self.outcome is Outcome.COMPLETED
