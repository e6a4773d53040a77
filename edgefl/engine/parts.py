"""Define a device's part in one round, which is the result of the device's SimPy process.

These values are named tuples because a run creates four per device and round, and a frozen dataclass takes three
times as long to create.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple


class Activity(StrEnum):
    """The activities of a device in a round, in chronological order."""

    DOWNLINK = "downlink"
    COMPUTE = "compute"
    UPLINK = "uplink"


class Cause(StrEnum):
    """The reason why a device is cut off during its part of a round."""

    LEFT = "left"  # the device left the cell
    OFF = "off"  # the device was switched off
    EMPTY = "empty"  # the device's battery ran empty
    LATE = "late"  # the round's deadline passed
    SURPLUS = "surplus"  # enough updates of other devices had arrived
    RADIO_LINK_FAILURE = "failed"  # the device's link was too weak for too long
    LOST = "lost"  # the upload arrived with errors
    UNUSABLE = "unusable"  # the update is not finite, and the server drops it


class Outcome(StrEnum):
    """The outcome of a device's part of a round: completed, or cut off by a cause during an activity."""

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
        """Return the outcome of a part that a cause ended during an activity."""
        return cls(f"{cause}_{activity}")


class Stall(NamedTuple):
    """Time and energy that an activity spends while its link carries no data.

    failures: number of link failures.
    """

    time_s: float = 0.0
    energy_j: float = 0.0
    failures: int = 0


NO_STALL = Stall()


class Access(NamedTuple):
    """Time and energy between a device's readiness for a transfer and the transfer's first slot.

    listened_s: the last part of this time, during which the radio was connected and listening.
    """

    time_s: float = 0.0
    listened_s: float = 0.0
    energy_j: float = 0.0


NO_ACCESS = Access()


class Span(NamedTuple):
    """One activity of a device, from its start to its end or cut-off.

    bits: bits that a transfer sent. share_done: share of the work done, in [0, 1]. cut: why the activity ended early,
    or None. airtime_s: time for which a transfer's radio was on. stall: time and energy without a usable link.
    pieces: cell and span of each link of a transfer that continued after a failure. access: time and energy before a
    transfer's start; energy_j includes this energy. arrives: probability that a finished upload has no errors.
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
    access: Access = NO_ACCESS
    arrives: float = 1.0

    def after(self, access: Access) -> "Span":
        """Return the transfer with its preceding access."""
        return self._replace(energy_j=self.energy_j + access.energy_j, access=access)


def joined(pieces: Sequence[tuple[int, Span]], gaps: Sequence[Span]) -> Span:
    """Join a transfer over several links, one after the other.

    Args:
        pieces: the cell and the transfer over each link.
        gaps: the search for a new link after each piece; there may be none after the last piece.
    """
    if not gaps and len(pieces) == 1:
        return pieces[0][1]
    moved = [span for _, span in pieces]
    # the last piece determines how the transfer ended
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
    """A device's work in a round: bits to receive and to send, and iterations and samples of local training.

    patient: whether the round has a deadline, until which a device that has lost its link looks for another link.
    clock_hz: clock of the processor, or None for the highest. usable: whether the update is finite. slowness: factor
    on the device's computing time.
    """

    down_bits: int
    up_bits: int
    iterations: int
    samples: int
    patient: bool = False
    clock_hz: float | None = None
    usable: bool = True
    slowness: float = 1.0

    def seen(self, upload: Span) -> Span:
        """Return a completed upload as the server sees it, marked as dropped if the update is not usable."""
        return upload if self.usable or upload.cut is not None else upload._replace(cut=Cause.UNUSABLE)


class Part(NamedTuple):
    """The part of one device in one round; an activity that the device did not reach is None."""

    device: int
    outcome: Outcome
    iterations: int
    downlink: Span
    compute: Span | None = None
    uplink: Span | None = None

    @classmethod
    def of(cls, device: int, iterations: int, spans: list[Span]) -> "Part":
        """Build a device's part of a round from its activities, in order; the last one determines the outcome."""
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
        """Whether the device's upload began, complete or not."""
        return self.uplink is not None

    @property
    def completed(self) -> bool:
        """Whether the device's update arrived."""
        return self.outcome is Outcome.COMPLETED


def total(values: Iterable[float]) -> float:
    """Sum values from first to last; the built-in sum rounds differently from Python 3.12 on."""
    result = 0.0
    for value in values:
        result += value
    return result
