"""Selectors, which choose a round's participants and, optionally, their shares, powers and clocks."""

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from edgefl.channel.carrier import Carrier
from edgefl.channel.packet_errors import PacketErrors
from edgefl.channel.units import FloatArray
from edgefl.config.component import Component

__all__ = ["Candidates", "CountedDecider", "CountedSelector", "Decider", "Decision", "Memory", "Selector"]

TOLERANCE = 1e-9  # rounding error allowed: absolute for the sum of shares, relative for clocks
# memory of a decider: numbers, arrays and lists of them by name; empty at first
Memory = Mapping[str, Any]


def _none() -> Any:
    return np.empty(0)


@dataclass(frozen=True)
class Candidates:
    """The devices present in a cell, with the information that a selector may use.

    Arrays are [ids] and read-only. A plain `Selector` sees only ids, gains_db, turn and last; a `Decider` sees all
    others.
    Seconds and joules are expected values for a round with the wanted number of participants, each with an equal
    share of the band (or as much of it as its radio can use), full power (or power control), full clock, and the
    link's mean rate over fading. Interference from other cells counts as noise with its mean, so if `neighbour_load`
    is between 0 and 1, transfers are somewhat faster than expected. Downloads are treated as unicast even if they are
    broadcast, and traffic of other users (`radio.background`) is left out.

    Args:
        ids: ids of the devices, sorted, at least one.
        gains_db: large-scale gain of each device's link in the coming round.
        turn: number of rounds that this cell's server has run so far.
        last: when the cell's server last selected each device: numbers ascend in the order in which devices were
            selected; 0 if it never has. Devices that are selected together keep their order, or the order of ids.
        busy: ids of the other devices present, which are at work or whose update waits, if rounds overlap.
        deadline_s: deadline of the round (`rounds.deadline_s`); inf without one.
        held: number of training samples of each device. samples: number of samples per device and round.
        cycles: processor cycles for a round's samples. clock_hz: highest clock of the processor. capacitance: xi;
            computing takes xi x cycles x clock^2 joules.
        down_bits, up_bits: bits received and sent in each device's last round, or the bits that the learner expects.
        downlink, uplink: the carrier in each direction.
        snr_down, snr_up: mean SNR on the whole band with full power; the constant SNR of a static link.
        widest: largest share of the band that each device's radio can use; see `widest_shares`.
        static: whether each device's link does not fade.
        radiated: fraction of its power that each device radiates on an equal share of the band under power control.
        lowest_snr: SNR on an uplink's share of the band below which the uplink carries no data.
        receive_w: power that a device draws while it receives. amplifier_w: power of the amplifier at full transmit
            power. send_w: other power that a device draws while it sends. All three are averaged over a TDD frame.
        down_s, compute_s, up_s: seconds of download, computing and upload. down_j, compute_j, up_j: joules of these.
            tail_j: joules of the radio after the two transfers, to the end of the second tail; empty if no radio has
            a tail. Seconds and joules of a transfer include the access before it; up_access_s: access time of the
            upload. up_alone_s: seconds of the upload, without access, if the device has the band to itself.
        charge_j: joules left in the device's battery; inf on mains.
        packet_errors: model of lost uploads, or None if all uploads arrive; its `arrives(snr, static)` takes the SNR
            on the uploads' shares.
        loss, norm: each device's last reports; nan without a report, or if `asks_loss` or `asks_norm` is false.
        duration_s, joules: duration and joules of each device's last part of a round, without tails, which end later;
            nan for a device without earlier parts.
        age: number of rounds since each device last took part, 1 for the previous round; inf if it never has.
        taken, completed: number of rounds in which each device has taken part, and in which its update arrived.
        fading: fading power of each link in the next slot relative to its mean; only with `sees_fading`.
    """

    ids: Sequence[int]
    gains_db: FloatArray
    turn: int
    last: FloatArray = field(default_factory=_none)
    busy: Sequence[int] = ()
    deadline_s: float = math.inf
    downlink: Carrier | None = None
    uplink: Carrier | None = None
    lowest_snr: float = 0.0
    held: FloatArray = field(default_factory=_none)
    samples: FloatArray = field(default_factory=_none)
    cycles: FloatArray = field(default_factory=_none)
    clock_hz: FloatArray = field(default_factory=_none)
    capacitance: FloatArray = field(default_factory=_none)
    down_bits: FloatArray = field(default_factory=_none)
    up_bits: FloatArray = field(default_factory=_none)
    snr_down: FloatArray = field(default_factory=_none)
    snr_up: FloatArray = field(default_factory=_none)
    static: npt.NDArray[np.bool_] = field(default_factory=_none)
    radiated: FloatArray = field(default_factory=_none)
    receive_w: FloatArray = field(default_factory=_none)
    amplifier_w: FloatArray = field(default_factory=_none)
    send_w: FloatArray = field(default_factory=_none)
    down_s: FloatArray = field(default_factory=_none)
    compute_s: FloatArray = field(default_factory=_none)
    up_s: FloatArray = field(default_factory=_none)
    up_access_s: FloatArray = field(default_factory=_none)
    up_alone_s: FloatArray = field(default_factory=_none)
    widest: FloatArray = field(default_factory=_none)
    down_j: FloatArray = field(default_factory=_none)
    compute_j: FloatArray = field(default_factory=_none)
    up_j: FloatArray = field(default_factory=_none)
    tail_j: FloatArray = field(default_factory=_none)
    charge_j: FloatArray = field(default_factory=_none)
    packet_errors: PacketErrors | None = None
    loss: FloatArray = field(default_factory=_none)
    norm: FloatArray = field(default_factory=_none)
    duration_s: FloatArray = field(default_factory=_none)
    joules: FloatArray = field(default_factory=_none)
    age: FloatArray = field(default_factory=_none)
    taken: FloatArray = field(default_factory=_none)
    completed: FloatArray = field(default_factory=_none)
    fading: FloatArray = field(default_factory=_none)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                view = value.view()
                view.flags.writeable = False  # some are the engine's own, such as the gains of the links
                vars(self)[name] = view

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def total_s(self) -> FloatArray:
        """Seconds [ids] of download, computing and upload together."""
        return self.down_s + self.compute_s + self.up_s

    @property
    def widest_shares(self) -> FloatArray:
        """Largest share [ids] of the band that each device's radio can use; 1 for all if `widest` is empty."""
        return self.widest if len(self.widest) else np.ones(len(self))

    @property
    def before_work_s(self) -> FloatArray:
        """Seconds [ids] of download, and of access before the upload's first bit; without computing."""
        return self.down_s + self.up_access_s if len(self.up_access_s) else self.down_s

    @property
    def total_j(self) -> FloatArray:
        """Joules [ids] of download, computing, upload, and tails after both transfers, as drawn from a battery."""
        stages_j = self.down_j + self.compute_j + self.up_j
        return stages_j + self.tail_j if len(self.tail_j) else stages_j

    def presumed(self, reports: FloatArray) -> FloatArray:
        """Return last reports [ids], such as `loss`, with a value for devices without a report.

        The value is inf for a device that has never taken part. A device whose updates were all lost has the mean of
        the reports; otherwise, a device that is always late would always be chosen.
        """
        known = np.isfinite(reports)
        lost = self.taken > 0 if len(self.taken) else np.zeros(len(self), dtype=bool)
        mean = float(reports[known].mean()) if known.any() else math.inf
        return np.where(known, reports, np.where(lost, mean, math.inf))

    def at(self, rows: npt.ArrayLike) -> "Candidates":
        """Return the candidates in these rows, which must ascend."""
        places = np.asarray(rows, dtype=np.intp)
        arrays = {one.name: getattr(self, one.name) for one in fields(self)}
        some: dict[str, Any] = {
            name: value[places]
            for name, value in arrays.items()
            if isinstance(value, np.ndarray) and len(value) and name != "ids"
        }
        return replace(self, ids=[self.ids[place] for place in places.tolist()], **some)

    def ids_at(self, rows: npt.ArrayLike) -> list[int]:
        """Return the sorted ids of the candidates in these rows, which may be in any order."""
        return sorted(self.ids[place] for place in np.asarray(rows, dtype=np.intp).tolist())


@dataclass(frozen=True)
class Decision:
    """Participants of a round and, optionally, their resources, as arrays in the order of ids.

    Args:
        ids: ids of the participants, sorted, at least one.
        down_shares, up_shares: shares of the band, above 0, with a sum of at most 1; by default set by the scheduler.
        power: fraction of its maximum power that each participant radiates in the uplink, in (0, 1]; by default as
            set by power control, or 1 without power control.
        clock_hz: clock of each processor, above 0; at most, and by default, the processor's highest clock.
        memory: data for the decider's next decision.
    """

    ids: Sequence[int]
    down_shares: FloatArray | None = None
    up_shares: FloatArray | None = None
    power: FloatArray | None = None
    clock_hz: FloatArray | None = None
    memory: Memory = field(default_factory=dict)

    def fault(self, sets: Collection[str], candidates: Candidates, number: int) -> str:
        """Return what is wrong with the decision, to follow the decider's name in a message; empty if it is valid.

        Args:
            sets: the resources that the decider declares to set. number: maximum number of participants.
        """
        ids, among = self.ids, candidates.ids
        try:
            places = [bisect_left(among, id_) for id_ in ids]
            found = [among[place] for place in places if place < len(among)]
            valid = found == list(ids) and 1 <= len(ids) <= number and places == sorted(set(places))
        except TypeError:  # the ids are not a sequence of numbers
            valid = False
        if not valid:
            return f"chose {ids!r:.200}: return 1 to {number} of the candidates' ids, in ascending order"
        own_hz = math.inf if self.clock_hz is None else candidates.clock_hz[places]
        for name, key, most in (
            ("down_shares", "shares", 1.0),
            ("up_shares", "shares", 1.0),
            ("power", "power", 1.0),
            ("clock_hz", "clock", own_hz * (1 + TOLERANCE)),
        ):
            values = getattr(self, name)
            if values is None:
                continue
            if key not in sets:
                return f"returned {name}: add {key!r} to its `sets`"
            if np.shape(values) != (len(ids),) or not np.all((values > 0) & (values <= most)):
                many = f"one for each of {len(ids)} devices"
                return f"returned {name} {values}: return {many}, above 0 and up to {most}"
            if key == "shares" and np.sum(values) > 1 + TOLERANCE:
                return f"returned {name} that sum to {np.sum(values):g}: the sum may be at most 1"
        return ""


class Selector(Component):
    """Base class of all selectors."""

    # whether the selector can choose single devices while other devices work
    fills_places: ClassVar[bool] = False
    # whether each participant adds 32 bits to its upload: for the received model's loss on its first mini-batch, or
    # for the norm of its update
    asks_loss: ClassVar[bool] = False
    asks_norm: ClassVar[bool] = False

    def wanted(self, present: int) -> int:
        """Return the number of updates that a round waits for, given the number of devices present."""
        return present

    @abstractmethod
    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        """Select `number` participants, 1 <= number <= len(candidates.ids); return their sorted ids."""


class CountedSelector(Selector):
    """Base class of selectors that choose a fixed number of devices, or all if fewer are present."""

    fills_places: ClassVar[bool] = True

    count: int = Field(ge=1, le=1_000_000, description="participants per round")

    def wanted(self, present: int) -> int:
        return min(self.count, present)


RESOURCES = frozenset({"shares", "power", "clock"})  # what a decider can set


class Decider(Selector):
    """Base class of selectors that see all of `Candidates`, have a memory, and may set shares, powers and clocks.

    Each cell has its own memory, which is passed in and returned with the decision. A resumed run repeats all
    decisions from the first round on, so a decider must be deterministic given its arguments.
    """

    # whether candidates include the fading of the next slot
    sees_fading: ClassVar[bool] = False
    # the resources that the decider sets in addition to the participants: any of RESOURCES
    sets: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        given: Any = cls.sets
        if isinstance(given, str) or not (isinstance(given, Iterable) and set(given) <= RESOURCES):
            raise ValueError(
                f"{cls.__name__}.sets is {given!r}: write a set of names from {', '.join(sorted(RESOURCES))}, such as"
                ' sets = {"shares"}'
            )
        cls.sets = frozenset(given)

    @abstractmethod
    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        """Return the participants of a round and, optionally, their resources.

        Args:
            number: maximum number of participants; if the decision has fewer, the round waits for all of them.
            memory: memory that the previous decision returned; empty at first.
        """

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        return list(self.decide(candidates, number, rng, {}).ids)


class CountedDecider(Decider, CountedSelector):
    """Base class of deciders that choose at most a fixed number of devices."""


def with_surplus(number: int, factor: float, present: int) -> int:
    """Return the number of devices to select so that `number` updates arrive even if some devices fail."""
    return min(present, math.ceil(number * factor))
