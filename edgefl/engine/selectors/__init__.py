"""Selectors: which of the devices present take part in a round, and with which share, power and clock."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
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

# what a decider remembers: numbers, arrays, lists of them, by name; empty at first
Memory = Mapping[str, Any]


def _none() -> Any:
    return np.empty(0)


@dataclass(frozen=True)
class Candidates:
    """The devices present in a cell, with what a selector may know about them.

    Arrays are [ids] and only lent. All but ids, gains_db and turn are there for `Decider`s only. Of seconds and
    joules: what is expected of a round in which as many take part as are wanted, each on an equal share of the band,
    with full power (or what power control leaves of it) and full clock, at the link's mean rate over fading;
    downloads by unicast, also where they are broadcast.

    Args:
        ids: sorted, at least one.
        gains_db: large-scale gain of the coming round.
        turn: rounds this cell's server has run before.
        deadline_s: of the round (`rounds.deadline_s`); inf: none.
        held: training samples that each holds. samples: that each processes in a round.
        cycles: of its processor for that. clock_hz: its highest. capacitance: xi, joules are xi cycles clock^2.
        down_bits, up_bits: that it receives and sends: those of its last round, or what the learner expects.
        downlink, uplink: the band in each direction, and the rules of its rates.
        snr_down, snr_up: mean SNR on the whole band with full power; of a static link its constant one.
        static: True for a link that does not fade.
        radiated: share of its power that it radiates on an equal share of the band, by power control.
        lowest_snr: below which an uplink carries nothing, on its share.
        receive_w: what it draws while it receives. amplifier_w: what its amplifier draws at full power. send_w:
            what it draws beside that while it sends. In the mean over a TDD frame.
        down_s, compute_s, up_s: seconds of each stage. down_j, compute_j, up_j: its joules. tail_j: what the radio
            draws after the two transfers, to the end of the second tail; empty: no radio has a tail.
        charge_j: left in its battery; inf on mains.
        packet_errors: what loses uploads: `arrives(snr, static)` by the SNR on their shares; None: nothing does.
        loss, norm: that it reported last; nan: none yet, or not asked for (`Decider.asks_loss`, `asks_norm`).
        duration_s, joules: of its last part of a round, without tails, which end later; nan: none yet.
        age: rounds since its last part, 1 for the one before this; inf: it had none.
        taken, completed: parts it had, and how many of these ended with an update that arrived.
        fading: power of the slot that comes, over its mean; there for those with `sees_fading`.
    """

    ids: Sequence[int]
    gains_db: FloatArray
    turn: int
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

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def total_s(self) -> FloatArray:
        """[ids] seconds of all three stages."""
        return self.down_s + self.compute_s + self.up_s

    @property
    def total_j(self) -> FloatArray:
        """[ids] joules of the three stages and of the tails after transfers; a battery pays them all."""
        stages_j = self.down_j + self.compute_j + self.up_j
        return stages_j + self.tail_j if len(self.tail_j) else stages_j

    def at(self, rows: npt.ArrayLike) -> "Candidates":
        """Return some of the candidates, by their ascending places here."""
        places = np.asarray(rows, dtype=np.intp)
        arrays = {one.name: getattr(self, one.name) for one in fields(self)}
        some: dict[str, Any] = {
            name: value[places]
            for name, value in arrays.items()
            if isinstance(value, np.ndarray) and len(value) and name != "ids"
        }
        return replace(self, ids=[self.ids[place] for place in places.tolist()], **some)

    def ids_at(self, rows: npt.ArrayLike) -> list[int]:
        """Return the sorted ids of the candidates at these places, in whatever order they are given."""
        return sorted(self.ids[place] for place in np.asarray(rows, dtype=np.intp).tolist())


@dataclass(frozen=True)
class Decision:
    """Who takes part in a round, and on request with what; [ids] each, in the order of ids.

    Args:
        ids: the participants, sorted, at least one.
        down_shares, up_shares: of the band, above 0, with a sum of at most 1; None: the scheduler's.
        power: share of its largest power that each radiates in the uplink, above 0 to 1; None: all of it, or what
            power control leaves of it.
        clock_hz: of its processor, above 0 and up to its own; None: its own.
        memory: what the decider wants to be told when it decides next.
    """

    ids: Sequence[int]
    down_shares: FloatArray | None = None
    up_shares: FloatArray | None = None
    power: FloatArray | None = None
    clock_hz: FloatArray | None = None
    memory: Memory = field(default_factory=dict)


class Selector(Component):
    """Base of all selectors."""

    # whether it can fill single places while other devices are at work
    fills_places: ClassVar[bool] = False
    # whether each participant adds a number of 32 bits to its upload: the loss of the model it received on its first
    # mini-batch; the length of its update
    asks_loss: ClassVar[bool] = False
    asks_norm: ClassVar[bool] = False

    def wanted(self, present: int) -> int:
        """Return how many updates a round asks for, given the number of devices present."""
        return present

    @abstractmethod
    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        """Select `number` participants, 1 <= number <= len(candidates.ids); return their sorted ids."""


class CountedSelector(Selector):
    """Base of selectors that take a fixed number of devices; all of them when fewer are present."""

    fills_places: ClassVar[bool] = True

    count: int = Field(ge=1, le=1_000_000, description="participants per round")

    def wanted(self, present: int) -> int:
        return min(self.count, present)


class Decider(Selector):
    """Base of selectors that see all of `Candidates`, remember, and may say who has which share, power and clock.

    What it remembers is passed in and handed back, one memory for each cell. A run that goes on asks it again from
    its first round on, with the same questions: it has to give the same answers.
    """

    # whether it wants to know the fading of the slot that comes
    sees_fading: ClassVar[bool] = False
    # what it sets beside who takes part: some of shares, power, clock
    sets: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        """Decide on a round.

        Args:
            number: the most who may take part; with fewer, a round waits for these.
            memory: that of the last decision; empty at first.
        """

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        return list(self.decide(candidates, number, rng, {}).ids)


class CountedDecider(Decider, CountedSelector):
    """Base of deciders that take a fixed number of devices, or fewer."""


def with_surplus(number: int, factor: float, present: int) -> int:
    """Return how many devices to select so that `number` updates arrive although some devices fail."""
    return min(present, math.ceil(number * factor))
