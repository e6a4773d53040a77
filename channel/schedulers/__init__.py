"""Schedulers, one file each, which share the band among flows.

Schedulers with `per_slot` decide in every slot by the channel in that slot; other schedulers keep their shares until
a flow joins or leaves. Shares are real numbers; in a band of resource blocks, flows get whole blocks in the
scheduler's order (`edgefl.channel.block_slots`). Fading is flat, so without blocks, channel-aware schedulers give the
whole band to one flow.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.channel.carrier import Carrier
from edgefl.channel.component import ChannelComponent
from edgefl.channel.units import FloatArray

__all__ = ["Flows", "Scheduler", "all_to"]

_SHARE_ROUNDING = 1e-9  # tolerance of a sum of shares
BoolArray = npt.NDArray[np.bool_]


def _none() -> FloatArray:
    return np.empty(0)


@dataclass
class Flows:
    """The n flows with data to send as a scheduler sees them, in the order in which they joined.

    Arrays are [n], read-only, and valid only during the call of `shares`. Efficiency, average and airtime are set
    only for schedulers with `per_slot`.

    Args:
        carrier: the band that the flows share, with its rate rules.
        snr: mean SNR on the whole band with full power; for a static link, the constant SNR.
        remaining_bits: bits that each flow still has to send, > 0.
        static: whether each flow's link does not fade, or None if all links fade.
        slot: absolute index of the slot.
        efficiency: bit/s/Hz that each flow would have in this slot if it were alone in the band.
        average: average bit/s/Hz of each flow so far, over the scheduler's memory; it starts at the mean efficiency
            divided by n.
        airtime: slots of each flow so far; a new flow starts with the airtime of the flow that has been served least.
        background: whether each flow is background traffic, or None if no flow is.
    """

    carrier: Carrier
    snr: FloatArray
    remaining_bits: FloatArray
    static: BoolArray | None = None
    slot: int = 0
    efficiency: FloatArray = field(default_factory=_none)
    average: FloatArray = field(default_factory=_none)
    airtime: FloatArray = field(default_factory=_none)
    background: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.snr)

    def some(self, rows: npt.NDArray[np.intp], part: float) -> "Flows":
        """Return some of the flows as a scheduler sees them if only these flows use part of the band.

        Efficiency and average still refer to the whole band; flows rank in the same order on part of the band.
        """

        def of(values: Any) -> Any:
            return values if values is None or not len(values) else values[rows]

        return Flows(
            self.carrier.part(part),
            snr=self.carrier.share_snr(part, self.snr[rows]),
            remaining_bits=self.remaining_bits[rows],
            static=of(self.static),
            slot=self.slot,
            efficiency=of(self.efficiency),
            average=of(self.average),
            airtime=of(self.airtime),
            background=of(self.background),
        )

    def mean_rate(self, shares: npt.ArrayLike) -> FloatArray:
        """Return [n] the mean rates on these shares, in bit/s per Hz of the whole band."""
        rate = self.carrier.mean_share_rate(shares, self.snr)
        if self.static is None or not self.static.any():
            return rate
        return np.where(self.static, self.carrier.share_rate(shares, self.snr), rate)


@dataclass(frozen=True)
class Scheduler(ChannelComponent, ABC):
    """Base class of all schedulers, which share the band among the flows of one direction of a cell."""

    per_slot: ClassVar[bool]
    # whether shares are computed from Shannon's rates in flat fading, not from a CQI table or several taps
    of_shannon: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "shares" in vars(cls) and "order" not in vars(cls):
            setattr(cls, "order", Scheduler.order)  # noqa: B010  # an inherited order would ignore these shares

    @property
    def memory(self) -> float | None:
        """Weight of the past in Flows.average, per slot, or None if the scheduler needs no average."""
        return None

    @abstractmethod
    def shares(self, flows: Flows) -> FloatArray:
        """Return [n] shares of the band, >= 0, with a sum of at most 1."""

    def order(self, flows: Flows) -> npt.NDArray[np.intp]:
        """Return the flows' indices [n] in the order in which a `per_slot` scheduler assigns blocks to them."""
        return np.argsort(-self.checked(self.shares(flows), len(flows)), kind="stable")

    def checked(self, shares: FloatArray, flows: int) -> FloatArray:
        """Return this scheduler's shares after checking them: one per flow, >= 0, with a sum of at most 1."""
        method = f"{type(self).__module__}:{type(self).__name__}.shares()"
        if getattr(shares, "shape", None) != (flows,) or not np.all(shares >= 0):
            raise ValueError(f"{method} must give each of {flows} flows a share >= 0, got {shares!s:.200}")
        if shares.sum() > 1.0 + _SHARE_ROUNDING:
            raise ValueError(f"{method} must give shares that sum to at most 1, got {shares.sum()}")
        return shares


def all_to(winner: np.intp, flows: int) -> FloatArray:
    """Return [flows] shares that give the whole band to one flow."""
    shares = np.zeros(flows)
    shares[winner] = 1.0
    return shares
