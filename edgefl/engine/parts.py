"""What one device did in one round, as a value: the result of its SimPy process.

Named tuples: a run makes four of these per device and round, and a frozen dataclass takes three times as long.
"""

from collections.abc import Iterable, Sequence
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
    LOST = "lost"  # it arrived with errors
    UNUSABLE = "unusable"  # the update is not finite, and the server drops it


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
    LOST_UPLINK = "lost_uplink"
    UNUSABLE_UPLINK = "unusable_uplink"

    @classmethod
    def cut_off(cls, cause: Cause, activity: Activity) -> "Outcome":
        """Return the outcome of a part that a cause ended in the midst of an activity."""
        return cls(f"{cause}_{activity}")


class Stall(NamedTuple):
    """Time and energy of an activity that passed without a link that carries anything.

    failures: how often the link was given up.
    """

    time_s: float = 0.0
    energy_j: float = 0.0
    failures: int = 0


NO_STALL = Stall()


class Span(NamedTuple):
    """One activity from start to end, or until it was cut off.

    bits: moved by a transfer. share_done: of the work, in [0, 1]. cut: why it ended early; None: it did not.
    airtime_s: time for which a transfer's radio was on. stall: what of it passed without a link. pieces: of a
    transfer that went on over another link after a failure, the cell and the span of each.
    """

    start_s: float
    end_s: float
    energy_j: float
    bits: int = 0
    share_done: float = 1.0
    cut: Cause | None = None
    airtime_s: float = 0.0
    stall: Stall = NO_STALL
    pieces: tuple[tuple[int, "Span"], ...] = ()


def joined(pieces: Sequence[tuple[int, Span]], gaps: Sequence[Span]) -> Span:
    """Return one transfer that moved over several links, one after the other.

    Args:
        pieces: the cell and the transfer over each link.
        gaps: the searches for a link after each of them, but perhaps the last.
    """
    if not gaps and len(pieces) == 1:
        return pieces[0][1]
    moved = [span for _, span in pieces]
    # whichever came last says how it ended
    last = gaps[-1] if len(gaps) == len(pieces) else moved[-1]
    everything = [*moved, *gaps]
    return Span(
        moved[0].start_s,
        last.end_s,
        total(span.energy_j for span in everything),
        sum(span.bits for span in moved),
        cut=last.cut,
        airtime_s=total(span.airtime_s for span in moved),
        stall=Stall(
            total(span.stall.time_s for span in everything),
            total(span.stall.energy_j for span in everything),
            sum(span.stall.failures for span in everything),
        ),
        pieces=tuple(pieces),
    )


class DeviceTask(NamedTuple):
    """A device's work in a round: bits to receive and to send, iterations and samples of local training.

    patient: the round has a deadline, and until then a device that has lost its link looks for another.
    clock_hz: at which the processor runs; None: its highest. usable: whether the update is finite.
    """

    down_bits: int
    up_bits: int
    iterations: int
    samples: int
    patient: bool = False
    clock_hz: float | None = None
    usable: bool = True

    def seen(self, upload: Span) -> Span:
        """Return an upload as the server sees it once it has ended: one that is not usable is dropped."""
        return upload if self.usable or upload.cut is not None else upload._replace(cut=Cause.UNUSABLE)


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
    def has_trained(self) -> bool:
        """Whether the device's local training ended."""
        return self.compute is not None and self.compute.cut is None

    @property
    def has_uploaded(self) -> bool:
        """Whether the device's upload began, whatever became of it."""
        return self.uplink is not None

    @property
    def completed(self) -> bool:
        """Whether the device's update arrived."""
        return self.outcome is Outcome.COMPLETED


def total(values: Iterable[float]) -> float:
    """Sum values from first to last; the built-in sum rounds otherwise from Python 3.12 on."""
    result = 0.0
    for value in values:
        result += value
    return result
