"""Test the numbers in scenarios/testbed_5g_lena.yaml that are computed and not copied from the source."""

import math
from pathlib import Path

import numpy as np
import pytest

from edgefl.channel.units import FloatArray
from edgefl.scenario.scenario import load

RADIO = load(Path(__file__).parents[2] / "scenarios" / "testbed_5g_lena.yaml").radio
DRAWS, DISTANCE_M, STEP_DB = 40_000, 100.0, 0.3


def test_rates_are_as_far_from_shannons_as_those_of_5g_lena() -> None:
    """The rate in 5G-LENA's NrAmc is log2(1 + snr / g) with g = -ln(5 BER) / 1.5 at a BER of 1e-5."""
    gap_db = 10.0 * math.log10(-math.log(5e-5) / 1.5)
    assert RADIO.budget.interference_margin_db == pytest.approx(gap_db - RADIO.link.snr_gap_db, abs=0.01)


def test_blocks_carry_what_5g_lenas_do() -> None:
    """5G-LENA has 26 blocks (4 % guard band), 11 of 12 subcarriers, and 12 of 14 symbols; 38.101-1 has 24 blocks."""
    blocks = int(10e6 * 0.96 / (12 * 30e3))
    assert 1 - RADIO.link.control_overhead == pytest.approx(blocks * 11 * 12 / (24 * 12 * 14), abs=1e-3)
    # 64QAM with a code rate of 948 / 1024
    assert RADIO.link.max_efficiency == pytest.approx(6 * 948 / 1024, abs=0.01)


def direction(azimuth: FloatArray, zenith: FloatArray) -> FloatArray:
    """Return the sines [n, 2] of the angles at a vertical panel, horizontally and vertically."""
    return np.stack([np.sin(zenith) * np.sin(azimuth), np.cos(zenith)], axis=1)


def beam(rows: int, columns: int, ahead: FloatArray, towards: FloatArray) -> FloatArray:
    """Return the power gain [n] of a half-wavelength panel, whose beam points ahead, in other directions."""
    apart = math.pi * (towards - ahead)
    gain = np.ones(len(apart))
    for elements, phase in ((columns, apart[:, 0]), (rows, apart[:, 1])):
        gain *= np.abs(np.exp(1j * np.outer(phase, np.arange(elements))).sum(axis=1)) ** 2 / elements
    return gain


def gain_db(in_sight: bool) -> float:
    """Return the mean gain of both panels' beams on the direct path of a UMa link at 4 GHz: 38.901, Table 7.5-6."""
    rng, lg_fc = np.random.default_rng(1), math.log10(4.0)
    zsd_lg = max(-0.5, -2.1 * DISTANCE_M / 1000 + (0.75 if in_sight else 0.9))
    offset_deg = 0.0
    if not in_sight:
        a, c, e = 0.208 * lg_fc - 0.782, -0.13 * lg_fc + 2.03, 7.66 * lg_fc - 5.96
        offset_deg = e - 10 ** (a * math.log10(max(25.0, DISTANCE_M)) + c)
    # azimuth and zenith spreads in degrees, at the site and at the phone
    spreads = (
        [(10 ** (1.06 + 0.1114 * lg_fc), 10**zsd_lg), (10**1.81, 10**0.95)]
        if in_sight
        else [
            (10 ** (1.5 - 0.1144 * lg_fc), 10**zsd_lg),
            (10 ** (2.08 - 0.27 * lg_fc), 10 ** (1.512 - 0.3236 * lg_fc)),
        ]
    )
    down = math.atan2(50.0 - 1.5, DISTANCE_M)
    scattered = 1.0
    for (azimuth_deg, zenith_deg), (rows, columns), zenith, off_deg in zip(
        spreads, ((4, 8), (2, 4)), (math.pi / 2 + down, math.pi / 2 - down), (offset_deg, 0.0), strict=True
    ):
        azimuth = rng.uniform(-math.pi, math.pi, DRAWS)
        ahead = direction(azimuth, np.full(DRAWS, zenith))
        azimuth = azimuth + np.radians(rng.normal(0.0, azimuth_deg, DRAWS))
        zeniths = zenith + np.radians(off_deg + rng.laplace(0.0, zenith_deg / math.sqrt(2.0), DRAWS))
        scattered *= float(beam(rows, columns, ahead, direction(azimuth, zeniths)).mean())
    direct = 10**0.9 / (1 + 10**0.9) if in_sight else 0.0
    return 10.0 * math.log10(direct * 4 * 8 * 2 * 4 + (1.0 - direct) * scattered)


@pytest.mark.parametrize("in_sight", [True, False])
def test_beams_on_the_direct_path_gain_this_much(in_sight: bool) -> None:
    given_db = RADIO.budget.array_gain_db if in_sight else RADIO.budget.nlos_array_gain_db
    assert given_db == pytest.approx(gain_db(in_sight), abs=STEP_DB)


def test_the_fading_stays_as_long_as_5g_lenas_channels() -> None:
    """The correlation of a channel redrawn every 150 ms falls linearly to 0 in this time, so its integral is 75 ms.
    For Gauss-Markov fading, the integral of the power's correlation is slot / (2 |ln J0|), J0 being 1 - x^2 / 4."""
    speed_m_s = 2.8
    x = 2.0 * math.pi * speed_m_s * RADIO.carrier_hz / 299_792_458.0 * RADIO.slot_s
    assert RADIO.slot_s / (2.0 * x**2 / 4.0) == pytest.approx(0.075, rel=0.05)
