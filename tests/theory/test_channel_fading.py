"""Compare fading with the process h[n] = rho h[n-1] + sqrt(1 - rho^2) e[n], e ~ CN(0, 1).

Standard errors are for the correlated process: the powers |h|^2 have autocorrelation rho^(2k) and hence
long-run variance (1 + rho^2) / (1 - rho^2).
"""

import itertools
import math

import numpy as np
import pytest
from scipy import special

from edgefl.channel.carrier import Carrier
from edgefl.channel.fading import BLOCK, LinkFading
from edgefl.channel.rates import rate_moments
from edgefl.channel.share import ergodic_rate, spectral_efficiency

KEY = 0x5EED << 64
STANDARD_ERRORS = 4
SIGNIFICANCE = 1e-3
# 30 m/s, 10 m/s, and a pedestrian's speed, at which the edges of blocks are correlated
FAST, TABLE_I, PEDESTRIAN = 0.72, 0.9667, 0.9995


@pytest.mark.parametrize(("rho", "slots"), [(FAST, 300_000), (TABLE_I, 1_000_000), (PEDESTRIAN, 4_000_000)])
def test_mean_power_is_one(rho: float, slots: int) -> None:
    mean = LinkFading(KEY, rho).power(0, slots).mean()
    standard_error = math.sqrt((1 + rho**2) / (1 - rho**2) / slots)
    assert abs(mean - 1) < STANDARD_ERRORS * standard_error


@pytest.mark.parametrize("rho", [FAST, TABLE_I, PEDESTRIAN])
def test_envelope_is_rayleigh(rho: float) -> None:
    # samples are so far apart that powers have correlation rho^(2k) < 1e-3
    apart = math.ceil(math.log(1e-3) / (2 * math.log(rho)))
    samples = 2_000
    envelope = np.sort(np.abs(LinkFading(KEY, rho).gain(0, apart * samples)[::apart]))
    probability = 1 - np.exp(-(envelope**2))
    steps = np.arange(samples + 1) / samples
    distance = max((steps[1:] - probability).max(), (probability - steps[:-1]).max())
    assert distance < special.kolmogi(SIGNIFICANCE) / math.sqrt(samples)


@pytest.mark.parametrize("across", ["inside a block", "across blocks", "across pages of edges"])
@pytest.mark.parametrize(
    ("rho", "lag", "block"),
    [
        *itertools.product((TABLE_I, PEDESTRIAN, -0.6), (1, 15), (BLOCK,)),
        *itertools.product((TABLE_I, PEDESTRIAN, -0.6), (15,), (400,)),
        *itertools.product(
            (TABLE_I, PEDESTRIAN), (1500,), (400, BLOCK)
        ),  # at this lag, fading with rho = -0.6 is uncorrelated
    ],
)
def test_autocorrelation_is_rho_to_the_lag(rho: float, across: str, lag: int, block: int) -> None:
    # h' = rho^k h + sqrt(1 - rho^(2k)) e has Re(h* h') of mean rho^k and variance (1 + rho^(2k)) / 2; the imaginary
    # part has mean 0 and a smaller variance. Pairs are far enough apart to be independent.
    pairs = 600
    many = -(-16 * BLOCK // block)  # a pedestrian's fading decorrelates in 16 long blocks
    apart = {"inside a block": many, "across blocks": many, "across pages of edges": block}[across] * block
    offset = block // 2 if across == "inside a block" else -(lag // 2 + 1)
    products = []
    link = LinkFading(KEY, rho, block)
    for n in range(1, pairs + 1):
        pair = link.gain(n * apart + offset, lag + 1)
        products.append(np.conj(pair[0]) * pair[-1])
    mean = np.mean(products)
    expected = rho**lag
    standard_error = math.sqrt((1 + expected**2) / (2 * pairs))
    assert abs(mean.real - expected) < STANDARD_ERRORS * standard_error
    assert abs(mean.imag) < STANDARD_ERRORS * standard_error


def test_a_step_across_a_block_edge_is_as_small_as_any_other() -> None:
    # for rho near 1, the mean of |h[n] - h[n-1]|^2, 2 (1 - rho), tests edges more sharply than the correlation
    blocks = 2_000
    gain = LinkFading(KEY, PEDESTRIAN).gain(0, blocks * BLOCK)
    steps = np.abs(np.diff(gain)) ** 2 / (2 * (1 - PEDESTRIAN))
    for chosen in (steps[BLOCK - 1 :: BLOCK], steps[BLOCK::BLOCK], steps[BLOCK // 2 :: BLOCK]):
        # the normalised steps are exponential with mean 1
        assert abs(chosen.mean() - 1) < STANDARD_ERRORS / math.sqrt(chosen.size)


@pytest.mark.parametrize("rho", [TABLE_I, PEDESTRIAN])
def test_links_are_independent(rho: float) -> None:
    slots = 1_000_000
    first, second = (LinkFading(key, rho).gain(0, slots) for key in (KEY, KEY + 1))
    mean = np.mean(np.conj(first) * second)
    # a product's real and imaginary parts have variance 1/2 and autocorrelation rho^(2k)
    standard_error = math.sqrt((1 + rho**2) / (1 - rho**2) / 2 / slots)
    assert max(abs(mean.real), abs(mean.imag)) < STANDARD_ERRORS * standard_error


@pytest.mark.parametrize("snr_db", [-20.0, 0.0, 20.0, 60.0])
@pytest.mark.parametrize("rho", [FAST, TABLE_I])
def test_slot_average_of_the_rate_is_the_ergodic_rate(snr_db: float, rho: float) -> None:
    slots = 500_000
    snr = 10 ** (snr_db / 10)
    mean = spectral_efficiency(snr * LinkFading(KEY, rho).power(0, slots)).mean()
    standard_error = math.sqrt(float(rate_moments(snr, rho, Carrier(1e6, 0.5e-3))[1]) / slots)
    assert abs(mean - ergodic_rate(snr)) < STANDARD_ERRORS * standard_error


@pytest.mark.parametrize("snr_db", [-20.0, 0.0, 40.0])
@pytest.mark.parametrize("rho", [FAST, TABLE_I])
def test_spread_of_rate_sums_is_the_long_run_variance(snr_db: float, rho: float) -> None:
    # Var(S_n) = s2 n - c, where c / s2 is about 1 / (1 - rho^2), at worst 0.8 % of 2,000 slots
    batch, batches = 2_000, 1_500
    snr = 10 ** (snr_db / 10)
    rates = spectral_efficiency(snr * LinkFading(KEY, rho).power(0, batch * batches))
    sums = rates.reshape(batches, batch).sum(axis=1)
    ratio = sums.var() / (batch * float(rate_moments(snr, rho, Carrier(1e6, 0.5e-3))[1]))
    bias = 1 / (1 - rho**2) / batch
    assert abs(ratio - 1) < STANDARD_ERRORS * math.sqrt(2 / batches) + bias
