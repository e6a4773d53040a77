"""Test rates in a band of 1 MHz with 0.5 ms slots, where 1 bit/s/Hz is 500 bits per slot."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from edgefl.channel.carrier import MAX_SLOTS, Carrier
from tests.refusals import refused_at


def band(**rules: Any) -> Carrier:
    return Carrier(**{"bandwidth_hz": 1e6, "slot_s": 0.5e-3, **rules})


def test_what_a_payload_needs() -> None:
    assert band().unit_bits == 500
    assert band().need(1000) == 2
    # a quarter of the band needs four times the slots
    assert band().part(0.25) == Carrier(0.25e6, 0.5e-3)
    assert band().part(0.25).need(1000) == 8
    needs = band().needs(np.array([1000.0, 0.0, 7.0]), np.array([0.25, 1.0, 1 / 3]))
    assert needs.tolist() == [8.0, 0.0, band().part(1 / 3).need(7.0)]


def test_rules_stay_with_a_part() -> None:
    whole = band(weights=(1.0, 0.0), cap=3.0, power="per_resource_block")
    assert dataclasses.replace(whole.part(0.5), bandwidth_hz=1e6) == whole
    assert whole.frame.mean == 0.5
    assert band().frame.plain


def test_rate_of_a_share() -> None:
    full, spread = band(), band(power="per_resource_block")
    # half the band at SNR 3 carries log2(1 + 6) / 2 with full power, and log2(4) / 2 with power per resource block
    assert full.share_rate(0.5, 3.0) == pytest.approx(math.log2(7) / 2, rel=1e-15)
    assert spread.share_rate(0.5, 3.0) == pytest.approx(1.0, rel=1e-15)
    assert band(cap=1.5).share_rate(0.5, 3.0) == 0.75
    # a flow without a share carries no bits, and a flow's rate does not depend on the shares of other flows
    np.testing.assert_allclose(full.share_rate([0.0, 1.0], [5.0, 3.0]), [0.0, 2.0], rtol=1e-15)
    assert full.mean_share_rate(0.25, 2.5) == pytest.approx(0.25 * 2.906514808, rel=1e-9)
    assert spread.mean_share_rate(0.25, 10.0) == pytest.approx(0.25 * 2.906514808, rel=1e-9)


def test_payloads_take_what_a_slot_carries_on_average() -> None:
    """In half of the slots, half of the band at SNR 1.5 carries log2(4) / 2 bits/s/Hz on a static link.

    A fading link carries its mean rate, which is the ergodic rate at SNR 3, e^(1/3) E1(1/3) / ln 2.
    """
    half, static = band(weights=(1.0, 0.0)), np.array([True, False])
    ergodic = math.exp(1 / 3) * special.exp1(1 / 3) / math.log(2)
    slot_bits = [125 * 2.0, 125 * ergodic]
    assert half.mean_slot_bits(0.5, 1.5, static) == pytest.approx(slot_bits, rel=1e-12)
    assert half.seconds(1000.0, 0.5, 1.5, static) == pytest.approx(0.5 / np.array(slot_bits), rel=1e-12)
    assert half.seconds(np.array([0.0, 7.0]), 0.5, 0.0).tolist() == [0.0, math.inf]


def test_endless_transfers_are_refused_at_once() -> None:
    # 1 bit/s/Hz at SNR 1, in half of the slots
    half = band(weights=(1.0, 0.0))
    half.refuse_endless(MAX_SLOTS / 2, 1.0)
    with refused_at("", MAX_SLOTS, "snr 1", kind=ValueError):
        half.refuse_endless(MAX_SLOTS / 2 + 1, 1.0)
    with refused_at("", MAX_SLOTS, kind=ValueError):
        band(cap=0.5).refuse_endless(MAX_SLOTS / 2 + 1, 1e9)
