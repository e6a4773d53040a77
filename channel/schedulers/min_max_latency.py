"""Compute shares with which all flows finish together."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.channel.schedulers import Flows, Scheduler
from edgefl.channel.share import exp1_tail, scaled_exp1
from edgefl.channel.units import FloatArray

# Finishing times agree to within _TOGETHER after about five steps. Below an SNR of -50 dB, rounding may leave larger
# differences, and _NEARLY is accepted.
_TOGETHER = 2e-9
_USUAL_STEPS = 12
_NEARLY = 5e-7
_NEWTON_STEPS = 50


@dataclass(frozen=True)
class MinMaxLatency(Scheduler):
    """Choose shares with which all flows are expected to finish together, which minimises the latest finishing time.

    With Z_k bits left, and rate_k(b) the mean rate on a share b, T W rate_k(b_k) = Z_k for all k and sum b_k = 1.
    With power per resource block, rate_k is proportional to b, so b_k is proportional to Z_k / rate_k(1). With full
    power, rate_k is increasing and concave, and Newton's method, with a tangent for each rate, finds all b_k and 1/T.

    Raises (from shares):
        ValueError: an SNR is so low, below -80 dB, that rounding hides the effect of a share on the rate.
    """

    per_slot: ClassVar[bool] = False
    of_shannon: ClassVar[bool] = True

    def shares(self, flows: Flows) -> FloatArray:
        airtime = flows.remaining_bits / flows.mean_rate(1.0)
        shares = airtime / airtime.sum()
        if flows.carrier.power == "per_resource_block" or len(flows) == 1:
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
            # a tangent may give a negative share
            shares = np.clip(moved, shares / 10.0, 1.0)
            shares /= shares.sum()
        raise ValueError(
            f"min_max_latency finds no shares for SNRs of {flows.snr.min():g} to {flows.snr.max():g} on the "
            "whole band: use power per_resource_block, another scheduler, or a shorter distance"
        )


def _tangents(flows: Flows, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean rates on these shares with full power, and their derivatives with respect to the share.

    With x = b / snr and S(x) = e^x E1(x), a fading flow has rate b S / ln 2 and slope ((1 + x) S - 1) / ln 2.
    With a cap, subtract e^-G times the same formulas with S(x 2^cap) in place of S(x); G = x (2^cap - 1).
    """
    x = shares / flows.snr
    scaled = scaled_exp1(x)
    # where r is known, (1 + x) S - 1 = r S loses no digits
    slope = np.where(x < 30.0, (1.0 + x) * scaled - 1.0, exp1_tail(np.maximum(x, 30.0)) * scaled)
    cap = flows.carrier.cap
    if cap is not None:
        top = np.expm1(cap * math.log(2.0))
        later, beyond = scaled_exp1(x * (1.0 + top)), np.exp(-x * top)
        scaled = scaled - beyond * later
        slope = slope - beyond * ((1.0 + x) * later - 1.0)
    rate = shares * scaled
    if flows.static is not None and flows.static.any():
        log = np.log1p(1.0 / x)
        capped = np.full(len(x), np.inf if cap is None else cap * math.log(2.0))
        rate = np.where(flows.static, shares * np.minimum(log, capped), rate)
        slope = np.where(flows.static, np.where(log < capped, log - 1.0 / (1.0 + x), capped), slope)
    return rate / math.log(2.0), slope / math.log(2.0)
