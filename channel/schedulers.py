"""Who gets which share of the band.

A scheduler is one class: frozen parameters, and `shares`. Those with `per_slot` decide in every slot, on the
channel of that slot; the others hold their shares until a flow joins or leaves. SCHEDULERS holds them by
name; a new one is one more class below. Shares are real numbers; the grid of resource blocks is left out,
and fading is flat, so that a scheduler that follows the channel gives the whole band to one flow.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from channel.ofdma import PowerRule, exp1_tail, mean_share_rate, scaled_exp1, share_rate
from channel.units import FloatArray

BoolArray = npt.NDArray[np.bool_]


def _none() -> FloatArray:
    return np.empty(0)


@dataclass
class Flows:
    """What a scheduler sees of the n flows with data to move, in the order in which they joined.

    Arrays are [n] and only lent: a scheduler reads them during `shares` and changes nothing. Efficiency,
    average and airtime are there for schedulers with `per_slot` only.

    Args:
        snr: mean SNR on the whole band with full power; of a static link its constant SNR.
        remaining_bits: > 0.
        static: True for a link that does not fade; None: all fade.
        power: how power is spread over a share, see `channel.ofdma.share_power_w`.
        cap: highest spectral efficiency in bits/s/Hz; None: no limit.
        slot: absolute index of the slot.
        efficiency: bits/s/Hz of each flow in this slot, were it alone.
        average: bits/s/Hz that each flow was served so far, forgotten with the scheduler's beta per slot; it
            begins with a fair share, the mean efficiency over n.
        airtime: slots that each flow was served so far; it begins with that of the least served flow.
    """

    snr: FloatArray
    remaining_bits: FloatArray
    static: BoolArray | None = None
    power: PowerRule = "full"
    cap: float | None = None
    slot: int = 0
    efficiency: FloatArray = field(default_factory=_none)
    average: FloatArray = field(default_factory=_none)
    airtime: FloatArray = field(default_factory=_none)

    def __len__(self) -> int:
        return len(self.snr)

    def mean_rate(self, shares: npt.ArrayLike) -> FloatArray:
        """[n] mean rate on these shares, in bits/s per Hz of the whole band."""
        rate = mean_share_rate(shares, self.snr, power=self.power, cap=self.cap)
        if self.static is None or not self.static.any():
            return rate
        return np.where(self.static, share_rate(shares, self.snr, power=self.power, cap=self.cap), rate)


class Scheduler(ABC):
    """Shares the band among the flows of one direction of a cell."""

    name: ClassVar[str]
    per_slot: ClassVar[bool]
    # weight of the past in Flows.average, per slot; None: the scheduler needs no average
    beta: float | None = None

    @abstractmethod
    def shares(self, flows: Flows) -> FloatArray:
        """[n] shares of the band, >= 0, with a sum of at most 1."""


@dataclass(frozen=True)
class EqualShare(Scheduler):
    """The same bandwidth for every flow (the journal paper)."""

    name: ClassVar[str] = "equal_share"
    per_slot: ClassVar[bool] = False

    def shares(self, flows: Flows) -> FloatArray:
        return np.full(len(flows), 1.0 / len(flows))


@dataclass(frozen=True)
class RoundRobin(Scheduler):
    """The whole band to one flow after the other: to the least served one, the earliest on a tie.

    It counts airtime and not turns, so that no flow is stuck with the special slots of a TDD frame. Flows
    that are there together never differ by more than a slot.
    """

    name: ClassVar[str] = "round_robin"
    per_slot: ClassVar[bool] = True

    def shares(self, flows: Flows) -> FloatArray:
        return _all_to(flows.airtime.argmin(), len(flows))


@dataclass(frozen=True)
class ProportionalFair(Scheduler):
    """The whole band to the flow whose channel is best compared with what it was served of late.

    The largest efficiency over average wins; the average forgets by beta per slot.

    Args:
        beta: weight of the past, within 0 and 1 (excluded); 1 / (1 - beta) slots are remembered.

    Source: Jalali, Padovani and Pankaj, IEEE VTC 2000.
    """

    name: ClassVar[str] = "proportional_fair"
    per_slot: ClassVar[bool] = True
    beta: float = 0.98

    def __post_init__(self) -> None:
        if not 0 <= self.beta < 1:
            raise ValueError(f"beta must lie within 0 and 1 (excluded), got {self.beta}")

    def shares(self, flows: Flows) -> FloatArray:
        return _all_to((flows.efficiency / flows.average).argmax(), len(flows))


@dataclass(frozen=True)
class MaxRate(Scheduler):
    """The whole band to the flow with the best channel: most bits per slot, and far flows starve."""

    name: ClassVar[str] = "max_rate"
    per_slot: ClassVar[bool] = True

    def shares(self, flows: Flows) -> FloatArray:
        return _all_to(flows.efficiency.argmax(), len(flows))


@dataclass(frozen=True)
class MinMaxLatency(Scheduler):
    """Shares with which all flows are expected to finish together, which minimises the latest finish.

    With Z_k bits left and rate_k(b) the mean rate on a share b, all T W rate_k(b_k) = Z_k and sum b_k = 1.
    With power per resource block, rate_k is proportional to b and b_k to Z_k / rate_k(1). With full power it
    is increasing and concave: Newton's method on all b_k and 1/T, each rate replaced by its tangent.

    Raises (from shares):
        ValueError: an SNR is so low, below -80 dB, that rounding hides what a share does to the rate.
    """

    name: ClassVar[str] = "min_max_latency"
    per_slot: ClassVar[bool] = False

    def shares(self, flows: Flows) -> FloatArray:
        airtime = flows.remaining_bits / flows.mean_rate(1.0)
        shares = airtime / airtime.sum()
        if flows.power == "per_resource_block" or len(flows) == 1:
            return shares
        for step in range(_NEWTON_STEPS):
            rate, slope = _tangents(flows, shares)
            speed = rate / flows.remaining_bits
            if speed.max() - speed.min() < (_TOGETHER if step < _USUAL_STEPS else _NEARLY) * speed.max():
                return shares
            if not np.all(slope > 0):
                break
            # the 1/T at which the tangents' shares sum to 1
            needed = (1.0 + (rate / slope - shares).sum()) / (flows.remaining_bits / slope).sum()
            moved = shares + (flows.remaining_bits * needed - rate) / slope
            # a tangent can ask for less than nothing
            shares = np.clip(moved, shares / 10.0, 1.0)
            shares /= shares.sum()
        raise ValueError(
            f"min_max_latency finds no shares for SNRs of {flows.snr.min():g} to {flows.snr.max():g} on the "
            "whole band: use power per_resource_block, another scheduler, or a shorter distance"
        )


# Finishing times of min_max_latency agree to the first in about five steps. Below an SNR of -50 dB rounding
# may leave more than that; there the second must do.
_TOGETHER = 2e-9
_USUAL_STEPS = 12
_NEARLY = 5e-7
_NEWTON_STEPS = 50


def _all_to(winner: np.intp, flows: int) -> FloatArray:
    shares = np.zeros(flows)
    shares[winner] = 1.0
    return shares


def _tangents(flows: Flows, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean rates on these shares with full power, and their derivatives with respect to the share.

    With x = b / snr and S(x) = e^x E1(x), a fading flow has rate b S / ln 2 and slope ((1 + x) S - 1) / ln 2.
    With a cap, both less e^-G times the same of x 2^cap in place of S(x), G = x (2^cap - 1).
    """
    x = shares / flows.snr
    scaled = scaled_exp1(x)
    # (1 + x) S - 1 = r S without loss of digits, where r is at hand
    slope = np.where(x < 30.0, (1.0 + x) * scaled - 1.0, exp1_tail(np.maximum(x, 30.0)) * scaled)
    if flows.cap is not None:
        top = np.expm1(flows.cap * math.log(2.0))
        later, beyond = scaled_exp1(x * (1.0 + top)), np.exp(-x * top)
        scaled = scaled - beyond * later
        slope = slope - beyond * ((1.0 + x) * later - 1.0)
    rate = shares * scaled
    if flows.static is not None and flows.static.any():
        log = np.log1p(1.0 / x)
        capped = np.full(len(x), np.inf if flows.cap is None else flows.cap * math.log(2.0))
        rate = np.where(flows.static, shares * np.minimum(log, capped), rate)
        slope = np.where(flows.static, np.where(log < capped, log - 1.0 / (1.0 + x), capped), slope)
    return rate / math.log(2.0), slope / math.log(2.0)


SCHEDULERS: dict[str, type[Scheduler]] = {found.name: found for found in Scheduler.__subclasses__()}
