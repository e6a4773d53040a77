"""Codecs, which encode a model's change for transfer and count its bits.

A codec is called once per round for all devices together. It returns the decoded changes, their bits, and the vectors
that each device keeps for its next round. It also states a bound on the decoding error, by which decoded changes are
damped, so that errors that are fed back (on the downlink, or as a residual) shrink from round to round.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real

from pydantic import Field

from edgefl.config.answers import must_be_shaped, wrong
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
    """The sizes of a model's change that a codec encodes.

    shapes: shapes of the model's tensors, in their order within a change.
    bits: bits of an uncompressed number (`learning.cost.bits_per_parameter`).
    """

    shapes: tuple[tuple[int, ...], ...]
    bits: int = 32

    @property
    def count(self) -> int:
        """The number M of values in a change."""
        return sum(math.prod(shape) for shape in self.shapes)


@dataclass(frozen=True)
class Coded:
    """The encoded changes of k devices, as the receiver decodes them.

    rows: decoded changes [k, M].
    bits: how many bits each device's message has, [k] integers.
    memory: vectors that each device keeps if its message arrives: name in `Codec.memory` -> [k, n].
    """

    rows: Tensor
    bits: Tensor
    memory: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Unbiased:
    """An error bound of unbiased codecs: E C(v) = v and E |C(v) - v|^2 <= omega |v|^2 for every change v.

    Fed back unchanged, an error grows from round to round if omega exceeds 1. A codec whose output is divided by 1 +
    omega is a contraction with delta 1 / (1 + omega): E |C(v) / (1 + omega) - v|^2 <= omega / (1 + omega) |v|^2.
    Mishchenko et al., DIANA, 2019; Richtarik et al., EF21, NeurIPS 2021.
    """

    omega: float

    @property
    def damping(self) -> float:
        """The factor by which decoded changes are multiplied when their error is fed back, 1 / (1 + omega)."""
        return 1 / (1 + self.omega)


@dataclass(frozen=True)
class Contraction:
    """An error bound of contractive codecs: E |C(v) - v|^2 <= (1 - delta) |v|^2 for every change v.

    The error of a contractive codec may be fed back unchanged.
    """

    delta: float

    @property
    def damping(self) -> float:
        """The factor by which decoded changes are multiplied when their error is fed back, always 1."""
        return 1.0


def damping_of(change: Tensor, variance: Tensor) -> Tensor:
    """Return the damping [k, 1] that gives each change v the smallest error, 1 / (1 + variance / |v|^2).

    The error is at most omega / (1 + omega) |v|^2, which the worst change attains; most errors are far smaller.

    Args:
        change: the changes v, [k, M]. variance: E |C(v) - v|^2, [k, 1].
    """
    square = change.square().sum(1, keepdim=True)
    return (square / (square + variance)).where(square > 0, 1.0)


class Codec(Component):
    """Base class of all codecs.

    On the uplink the change is the model that a device would send, minus the model that the device received. A
    device's memory follows the device through sessions and handovers, and changes only when the device's update is
    aggregated. On the downlink the change is the model minus the model from which the device's last aggregated update
    was trained, so that anything not sent immediately is sent later. On the downlink, codecs have no memory, and
    decoded changes are damped according to the codec's distortion; without an aggregated update, a device gets the
    whole model.

    A codec with a memory must itself ensure that its decoded changes are contractions.
    """

    def memory(self, sizes: Sizes) -> Mapping[str, int]:
        """Return the vectors that each device keeps for the codec, name -> length; all start as zeros."""
        return {}

    @abstractmethod
    def encode(self, change: Tensor, memory: Mapping[str, Tensor], rng: Chance, sizes: Sizes) -> Coded:
        """Encode the changes of k devices, each independently.

        Args:
            change: the devices' changes, [k, M]; do not modify them.
            memory: the devices' memory, name -> [k, n]; do not modify it.
            rng: random numbers of these devices.
            sizes: sizes of the model.
        """

    def distortion(self, sizes: Sizes) -> Unbiased | Contraction:
        """Return the codec's bound on the error of `encode` without a memory.

        The bound is used where errors are fed back: on the downlink, and with error feedback.

        Raises:
            EdgeflError: the codec states no bound.
        """
        raise EdgeflError(
            f"{type(self).__name__} states no bound on its decoding error, so its errors cannot be fed back: let"
            " distortion() return Unbiased(omega) or Contraction(delta)"
        )

    def damping(self, change: Tensor, sizes: Sizes) -> Tensor | float:
        """Return the factor by which decoded changes [k, M] are damped when errors are fed back, [k, 1] or a number.

        The default is the distortion's factor, which both ends know. A codec that sends a scale, such as a norm, may
        multiply the scale by the best factor for each change: see `damping_of`.
        """
        return self.distortion(sizes).damping

    def damped(self, rows: Tensor, change: Tensor, sizes: Sizes) -> Tensor:
        """Return decoded changes [k, M] multiplied by their damping, as used when errors are fed back."""
        by = self.damping(change, sizes)
        if not isinstance(by, Real):
            must_be_shaped(self.damping, by, ((len(change), 1),), "a number, or one number for each device,")
        return rows if isinstance(by, float) and by == 1 else rows * by


class FeedbackCodec(Codec):
    """Base class of codecs with optional error feedback, which adds a message's error to the next change.

    A device compresses w = change + residual, and keeps w minus the decoded message as the new residual, so messages
    and residual add up to the sum of all changes. Seide et al., Interspeech 2014; Stich et al., NeurIPS 2018. With
    error feedback, both ends damp the output of an unbiased compress(), at no cost in bits. `distortion` states the
    bound of compress().
    """

    error_feedback: bool = Field(True, description="add the errors of earlier messages to the next change")

    def memory(self, sizes: Sizes) -> Mapping[str, int]:
        return {RESIDUAL: sizes.count} if self.error_feedback else {}

    def encode(self, change: Tensor, memory: Mapping[str, Tensor], rng: Chance, sizes: Sizes) -> Coded:
        wanted = change + memory[RESIDUAL] if self.error_feedback else change
        compressed = self.compress(wanted, rng, sizes)
        if not (isinstance(compressed, tuple) and len(compressed) == 2):
            raise wrong(
                self.compress, compressed, "two values, the decoded vectors and the bits of each message"
            )
        rows, bits = compressed
        shape = tuple(wanted.shape)
        must_be_shaped(self.compress, rows, (shape,), "first the decoded vectors, a tensor", like=wanted)
        must_be_shaped(self.compress, bits, (shape[:1],), "then each message's bits, a tensor")
        if not self.error_feedback:
            return Coded(rows, bits)
        rows = self.damped(rows, wanted, sizes)
        return Coded(rows, bits, {RESIDUAL: wanted - rows})

    @abstractmethod
    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        """Compress vectors [k, M]; return the decoded vectors [k, M] and the bits of each message, [k] integers."""


@dataclass(frozen=True)
class _FedBack:
    """A codec with feedback of its decoding errors.

    key: the codec's key in `learning`. otherwise: how to avoid feeding errors back, for error messages.
    """

    key: str
    codec: Codec
    otherwise: str

    @property
    def is_silent(self) -> bool:
        """Whether the codec states no distortion for any model."""
        return type(self.codec).distortion is Codec.distortion

    def check(self, sizes: Sizes) -> None:
        """Check that the codec states its distortion, and that damping makes it a contraction.

        Raises:
            EdgeflError: the check fails; the error names the key and the remedy.
        """
        with about("learning", self.key):
            try:
                distortion = self.codec.distortion(sizes)
            except EdgeflError as error:
                raise EdgeflError(f"{error}, or {self.otherwise}") from error
            if not isinstance(distortion, Unbiased | Contraction):
                raise wrong(self.codec.distortion, distortion, "Unbiased(omega) or Contraction(delta)")
            if isinstance(distortion, Contraction):
                bounded = 0 < distortion.delta <= 1
            else:
                bounded = 0 <= distortion.omega < math.inf
            if not bounded:
                raise EdgeflError(
                    f"no damping factor can bound an error of {distortion}: state an omega of at least 0, or "
                    f"a delta above 0 and at most 1, or {self.otherwise}"
                )


def fed_back(uplink: Codec | None, downlink: Codec | None, *, differences: bool) -> list[_FedBack]:
    """Return the scenario's codecs with feedback of their decoding errors.

    Args:
        differences: whether devices send differences from earlier vectors, as in `Algorithm.sends_differences`.
    """
    found = [] if downlink is None else [_FedBack("downlink_codec", downlink, "leave the codec out")]
    if uplink is not None and differences:
        found.append(_FedBack("uplink_codec", uplink, "leave the codec out"))
    elif isinstance(uplink, FeedbackCodec) and uplink.error_feedback:
        found.append(_FedBack("uplink_codec", uplink, "set error_feedback: false"))
    return found


def index_bits(chosen: Tensor, sizes: Sizes) -> Tensor:
    """Count the bits of the indices of the values sent, [k] integers: ceil(log2 M) per value, 0 if all are sent.

    Args:
        chosen: whether each value is sent, [k, M] bool.
    """
    many, count = chosen.sum(1), sizes.count
    bits = many * math.ceil(math.log2(count))
    return bits.masked_fill(many == count, 0)
