"""Test that the closed form of packet errors equals the integral, and that draws follow it."""

import numpy as np
import pytest
from scipy import integrate, stats

from edgefl.channel.fading import LinkFading
from edgefl.channel.packet_errors import PacketErrors, ThresholdErrors, WaterfallErrors

DRAWS, SIGMAS = 4000, 4.0


@pytest.mark.parametrize("taps", [1, 2, 4, 64])
@pytest.mark.parametrize("ratio", [1e-6, 1e-2, 0.5, 3.0])
def test_the_closed_form_is_the_mean_over_the_fading(taps: int, ratio: float) -> None:
    """The closed form equals E exp(-c / X) for X of density Gamma(L, 1/L), integrated numerically."""
    power = stats.gamma(taps, scale=1.0 / taps)
    ends = [power.ppf(1e-13), *power.ppf([0.01, 0.5, 0.99]), power.isf(1e-13)]
    mean = sum(
        integrate.quad(lambda x: np.exp(-ratio / x) * power.pdf(x), low, high, epsabs=1e-13)[0]
        for low, high in zip([0.0, *ends], ends, strict=False)
    )
    assert WaterfallErrors(2.0 * ratio, taps).arrives(2.0) == pytest.approx(mean, abs=1e-9)


def test_limits() -> None:
    errors = WaterfallErrors(1.0, 64)
    assert errors.arrives(np.array([1e12, 1e300])) == pytest.approx(1.0)
    assert errors.arrives(1e-6) == pytest.approx(0.0)
    assert errors.arrives([4.0, 4.0], [True, True]) == pytest.approx(np.exp(-0.25))


def test_a_threshold_is_exceeded_as_often_as_the_fading_is_strong() -> None:
    """The probability is exp(-theta / SNR) in Rayleigh fading, as in draws with taps, and 0 or 1 without fading."""
    snr = np.array([0.5, 2.0, 10.0, 100.0])
    assert ThresholdErrors(2.0).arrives(snr) == pytest.approx(np.exp(-2.0 / snr))
    drawn = np.random.default_rng(3).exponential(size=(20_000, 4)).mean(axis=1)
    expected = (2.0 * drawn > 1.5).mean()
    assert abs(ThresholdErrors(1.5, 4).arrives(2.0) - expected) < SIGMAS * np.sqrt(0.25 / len(drawn))
    assert ThresholdErrors(2.0).arrives([1.9, 2.1], True).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "errors", [WaterfallErrors(1.0), ThresholdErrors(1.0)], ids=["waterfall", "threshold"]
)
def test_as_many_are_lost_as_the_closed_form_says(errors: PacketErrors) -> None:
    fading = LinkFading(5, 0.9)
    hits = [errors.drawn(fading, 2.0, slot)[1] for slot in range(DRAWS)]
    lost = 1.0 - float(errors.arrives(2.0))
    assert abs(np.mean(hits) - lost) < SIGMAS * np.sqrt(lost * (1 - lost) / DRAWS)
    # losses are a function of link and slot: where a stronger packet is lost, a weaker packet is lost, too
    assert hits[:50] == [errors.drawn(fading, 2.0, slot)[1] for slot in range(50)]
    assert all(errors.drawn(fading, 1.0, slot)[1] for slot in range(DRAWS) if hits[slot])
