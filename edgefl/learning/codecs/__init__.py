"""Codecs: what travels in place of a whole change of a model, and how many bits that is.

A codec is asked once in a round for all devices together. It gives back what the receiver decodes, its bits, and what
each device remembers for its next round. It states how far what is decoded may be from the change, so that an error
that is fed back, on the way down or as a residual, shrinks from round to round.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field

from edgefl.config.component import Component
from edgefl.errors import EdgeflError, about
from edgefl.learning.chance import Chance
from edgefl.learning.tensors import Tensor

__all__ = [
    "Chance",
    "Codec",
    "Coded",
    "Contraction",
    "FeedbackCodec",
    "Sizes",
    "Unbiased",
    "damping_of",
    "index_bits",
]

RESIDUAL = "residual"


@dataclass(frozen=True)
class Sizes:
    """What a change consists of.

    shapes: of the model's tensors, which lie one behind the other in a change.
    bits: of a number that is sent whole (`learning.cost.bits_per_parameter`).
    """

    shapes: tuple[tuple[int, ...], ...]
    bits: int = 32

    @property
    def count(self) -> int:
        """M, numbers in a change."""
        return sum(math.prod(shape) for shape in self.shapes)


@dataclass(frozen=True)
class Coded:
    """What k devices send, as the receiver decodes it.

    rows: [k, M] decoded changes.
    bits: [k] integers, bits of each device's message.
    memory: what each device remembers if its message arrives, [k, n] by the names of `Codec.memory`.
    """

    rows: Tensor
    bits: Tensor
    memory: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Unbiased:
    """What is decoded of a change v is v on average: E C(v) = v and E |C(v) - v|^2 <= omega |v|^2 for every v.

    Fed back as it is, its error grows from round to round where omega is above 1. Divided by 1 + omega it is a
    contraction of delta 1 / (1 + omega): E |C(v) / (1 + omega) - v|^2 <= omega / (1 + omega) |v|^2. Mishchenko et
    al., DIANA, 2019; Richtarik et al., EF21, NeurIPS 2021.
    """

    omega: float

    @property
    def damping(self) -> float:
        """What is decoded is multiplied by this where its error is fed back."""
        return 1 / (1 + self.omega)


@dataclass(frozen=True)
class Contraction:
    """What is decoded of a change v is nearer to v than 0 is: E |C(v) - v|^2 <= (1 - delta) |v|^2 for every v.

    Its error may be fed back as it is.
    """

    delta: float

    @property
    def damping(self) -> float:
        """What is decoded is multiplied by this where its error is fed back: by 1."""
        return 1.0


def damping_of(change: Tensor, variance: Tensor) -> Tensor:
    """Return 1 / (1 + variance / |v|^2) of each change v, [k, 1]: the damping that leaves the least error.

    At most omega / (1 + omega) of |v|^2 is left, as by the distortion of the worst change, and mostly much less.

    Args:
        change: [k, M]. variance: [k, 1] E |C(v) - v|^2.
    """
    square = change.square().sum(1, keepdim=True)
    return (square / (square + variance)).where(square > 0, 1.0)


class Codec(Component):
    """Base of all codecs.

    On the way up the change is what a device would send, less what it received; what it remembers follows it through
    sessions and handovers like all that devices keep, and changes only with an update that is aggregated. On the
    way down the change is the model less the one that the device received last, of which an update was aggregated, so
    that nothing is lost that is not sent at once; there codecs have no memory, and what is decoded is damped by the
    codec's distortion. A device that has none receives the whole model.

    A codec with a memory sees to it itself that what it makes of a change is a contraction.
    """

    def memory(self, sizes: Sizes) -> Mapping[str, int]:
        """Return the names of the vectors that each device remembers, and how long they are; they begin as zeros."""
        return {}

    @abstractmethod
    def encode(self, change: Tensor, memory: Mapping[str, Tensor], rng: Chance, sizes: Sizes) -> Coded:
        """Code the changes of k devices, each by itself.

        Args:
            change: [k, M], not to be changed in place.
            memory: what the devices remember, [k, n] each, likewise.
            rng: of these devices, for what is left to chance.
            sizes: of the model.
        """

    def distortion(self, sizes: Sizes) -> Unbiased | Contraction:
        """Return how far what is decoded may be from a change, of encode() without a memory.

        Asked where errors are fed back: on the way down, and with error feedback.

        Raises:
            EdgeflError: the codec does not state it.
        """
        raise EdgeflError(
            f"{type(self).__name__} does not state how far what is decoded may be from a change, so its errors"
            " cannot be fed back: let distortion() return Unbiased(omega) or Contraction(delta)"
        )

    def damping(self, change: Tensor, sizes: Sizes) -> Tensor | float:
        """Return the factor of what is decoded of changes [k, M] where errors are fed back: [k, 1], or one of all.

        By default by the distortion's, which both ends know. A codec whose message has numbers that scale all others,
        as a norm, may send them multiplied by what suits the change at hand: see `damping_of`.
        """
        return self.distortion(sizes).damping

    def damped(self, rows: Tensor, change: Tensor, sizes: Sizes) -> Tensor:
        """Return decoded changes [k, M] as the receiver takes them where what they leave out is fed back."""
        by = self.damping(change, sizes)
        return rows if isinstance(by, float) and by == 1 else rows * by


class FeedbackCodec(Codec):
    """Base of codecs that may add to a change what earlier messages have left out (error feedback).

    What a device wants to send is w = change + residual; what the codec makes of it is sent, and the residual becomes
    w less that. So all that was sent and the residual add up to all changes. Seide et al., Interspeech 2014; Stich et
    al., NeurIPS 2018. With feedback both ends damp what compress() gave if that is unbiased; its bits are the same.
    `distortion` is that of compress().
    """

    error_feedback: bool = Field(
        True, description="add what earlier messages have left out to the next change"
    )

    def memory(self, sizes: Sizes) -> Mapping[str, int]:
        return {RESIDUAL: sizes.count} if self.error_feedback else {}

    def encode(self, change: Tensor, memory: Mapping[str, Tensor], rng: Chance, sizes: Sizes) -> Coded:
        wanted = change + memory[RESIDUAL] if self.error_feedback else change
        rows, bits = self.compress(wanted, rng, sizes)
        if not self.error_feedback:
            return Coded(rows, bits)
        rows = self.damped(rows, wanted, sizes)
        return Coded(rows, bits, {RESIDUAL: wanted - rows})

    @abstractmethod
    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        """Return what is decoded [k, M] of what devices want to send [k, M], and the bits of that, [k] integers."""


@dataclass(frozen=True)
class _FedBack:
    """A codec whose errors are fed back.

    key: of `learning`. otherwise: what does without.
    """

    key: str
    codec: Codec
    otherwise: str

    @property
    def is_silent(self) -> bool:
        """Whether the codec states no distortion, whatever the model's sizes."""
        return type(self.codec).distortion is Codec.distortion

    def check(self, sizes: Sizes) -> None:
        """Check that the codec states its distortion, and that damping makes it a contraction.

        Raises:
            EdgeflError: names the key and the remedy.
        """
        with about("learning", self.key):
            try:
                distortion = self.codec.distortion(sizes)
            except EdgeflError as error:
                raise EdgeflError(f"{error}, or {self.otherwise}") from error
            if isinstance(distortion, Contraction):
                bounded = 0 < distortion.delta <= 1
            else:
                bounded = 0 <= distortion.omega < math.inf
            if not bounded:
                raise EdgeflError(
                    f"no damping bounds an error of {distortion}: state an omega from 0 on, or a delta above 0 and at"
                    f" most 1, or {self.otherwise}"
                )


def fed_back(uplink: Codec | None, downlink: Codec | None, *, differences: bool) -> list[_FedBack]:
    """Return which codecs' errors are fed back; differences: devices send these, as `Algorithm.sends_differences`."""
    found = [] if downlink is None else [_FedBack("downlink_codec", downlink, "leave it out")]
    if uplink is not None and differences:
        found.append(_FedBack("uplink_codec", uplink, "leave it out"))
    elif isinstance(uplink, FeedbackCodec) and uplink.error_feedback:
        found.append(_FedBack("uplink_codec", uplink, "set error_feedback: false"))
    return found


def index_bits(chosen: Tensor, sizes: Sizes) -> Tensor:
    """Count the bits that tell which numbers are sent, [k] integers: ceil(log2 M) each, none where all are.

    Args:
        chosen: [k, M] bool, the numbers that are sent.
    """
    many, count = chosen.sum(1), sizes.count
    bits = many * math.ceil(math.log2(count))
    return bits.masked_fill(many == count, 0)
