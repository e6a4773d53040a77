"""Test fading over a band with several independent parts, and uplink power control."""

import math

import numpy as np
import pytest
from scipy import stats

from edgefl.channel.diversity import PAGE, SMOOTH, DiverseFading, _halved, fading_in_parts, independent_parts
from edgefl.channel.fading import LinkFading
from edgefl.channel.many_links import draw_ahead, power_of_many
from edgefl.channel.power_control import resource_blocks, wanted_power

TAPS, SLOTS = 8, 200_000


def fading(correlation: float) -> DiverseFading:
    return DiverseFading(11, correlation, TAPS)


def test_the_power_is_gamma_of_as_many_taps() -> None:
    """At correlation 0 the power has the mean 1 and the variance 1/L of Gamma(L, 1/L), to within sampling errors."""
    power = fading(0.0).power(0, SLOTS)
    # the variance of a sample variance is (excess kurtosis + 2) s^4 / N, and a Gamma's excess kurtosis is 6 / L
    error = np.sqrt((6 / TAPS + 2) / TAPS**2 / SLOTS)
    assert abs(power.mean() - 1) < 4 * np.sqrt(1 / TAPS / SLOTS)
    assert abs(power.var() - 1 / TAPS) < 4 * error


def test_it_is_a_function_of_the_slot() -> None:
    whole = fading(0.9).power(5, 100)
    assert fading(0.9).power(45, 10).tolist() == whole[40:50].tolist()
    still = fading(1.0)
    assert still.static
    assert still.power(0, 2).tolist() == [still.mean_power] * 2


def test_a_full_band_of_nr_has_its_resource_blocks() -> None:
    """38.101-1, Table 5.3.2-1: 273 blocks at 30 kHz subcarrier spacing fill 98.28 MHz of 100 MHz."""
    assert resource_blocks(98.28e6, 0.5e-3) == pytest.approx(273)


@pytest.mark.parametrize("alpha", [0.8, 1.0])
@pytest.mark.parametrize(("slot_s", "mu"), [(1e-3, 0), (0.5e-3, 1), (0.25e-3, 2), (0.125e-3, 3)])
def test_power_is_that_of_the_standard(slot_s: float, mu: int, alpha: float) -> None:
    """P = P0 + 10 log10(2^mu M) + alpha PL dBm (38.213, 7.1.1), for M = 51 blocks; it may exceed a device's power."""
    loss_db = np.array([80.0, 100.0, 140.0])
    p_dbm = -90.0 + 10.0 * math.log10(2**mu * 51) + alpha * loss_db
    share = wanted_power(loss_db, 51.0, 0.2, p0_dbm=-90.0, alpha=alpha, slot_s=slot_s)
    assert share * 0.2 / 1e-3 == pytest.approx(10.0 ** (p_dbm / 10.0))
    assert share[2] > 1.0


@pytest.mark.parametrize("slot_s", [1e-3, 0.5e-3, 0.125e-3])
def test_what_arrives_in_a_hertz_does_not_depend_on_the_slot(slot_s: float) -> None:
    """With short slots, 36 MHz has fewer, wider blocks, but P0 is per 180 kHz, so the received power is the same."""
    share = wanted_power(100.0, resource_blocks(36e6, slot_s), 2.0, p0_dbm=-90.0, alpha=1.0, slot_s=slot_s)
    assert share * 2.0 * 1e-10 / 36e6 == pytest.approx(1e-12 / 180e3)


@pytest.mark.parametrize(
    ("megahertz", "delay_ns"), [(100, 50.5), (20, 103.1), (5, 50.5), (40, 364.1), (1, 10.0)]
)
def test_independent_parts_are_the_diversity_of_a_band_with_an_exponential_profile(
    megahertz: int, delay_ns: float
) -> None:
    """In channels drawn path by path, the mean power over the band has the variance 1 / L."""
    rng, draws, paths = np.random.default_rng(3), 4000, 400
    # 400 delays, up to 12 delay spreads long, with powers of the exponential profile
    delays_s = np.linspace(0.0, 12.0 * delay_ns * 1e-9, paths)
    powers = np.exp(-delays_s / (delay_ns * 1e-9))
    powers /= powers.sum()
    frequencies_hz = np.linspace(0.0, megahertz * 1e6, 401)
    gains = np.sqrt(powers / 2) * (
        rng.standard_normal((draws, paths)) + 1j * rng.standard_normal((draws, paths))
    )
    response = gains @ np.exp(-2j * np.pi * np.outer(delays_s, frequencies_hz))
    mean_power = np.trapezoid(np.abs(response) ** 2, frequencies_hz, axis=1) / (megahertz * 1e6)
    parts = independent_parts(megahertz * 1e6, delay_ns * 1e-9)
    # the variance of n gamma variables of shape L has a relative error of sqrt((2 + 6 / L) / n)
    error = math.sqrt((2 + 6 / parts) / draws)
    assert mean_power.var() * parts == pytest.approx(1.0, abs=4 * error + 0.01)


def test_a_narrow_band_is_flat_and_a_wide_one_has_twice_its_delays() -> None:
    assert independent_parts(1e6, 0.0) == 1.0
    assert independent_parts(180e3, 50e-9) == pytest.approx(
        1 + (2 * math.pi * 180e3 * 50e-9) ** 2 / 6, rel=1e-3
    )
    assert independent_parts(1e9, 1e-6) == pytest.approx(2e3, rel=2e-3)
    # the function has no jump at the bandwidth below which the band counts as flat
    assert independent_parts(1.0, 0.99e-4 / (2 * math.pi)) == pytest.approx(
        independent_parts(1.0, 1.01e-4 / (2 * math.pi)), abs=1e-6
    )


@pytest.mark.parametrize("correlation", [0.5, 0.99, 0.9999])
def test_the_power_of_parts_has_the_correlation_of_gauss_markov_fading(correlation: float) -> None:
    """Over many links, Cov(g_0, g_k) = rho^(2k) / L at lags within a page, across page edges, and across grids."""
    links, begin = [DiverseFading(key, correlation, TAPS) for key in range(800)], PAGE - 3
    power = power_of_many(links, np.full(len(links), begin), 3 * PAGE)
    for first, lag in ((0, 1), (2, 1), (1, 4), (5, 16), (40, 100), (0, PAGE), (PAGE // 2, 2 * PAGE)):
        one, other = power[:, first] - 1, power[:, first + lag] - 1
        # the product of two Gamma(L, 1/L) deviations has at most the variance of their squares
        error = math.sqrt((2 + 6 / TAPS) / len(links)) / TAPS
        assert (one * other).mean() == pytest.approx(correlation ** (2 * lag) / TAPS, abs=4 * error)
        assert one.mean() == pytest.approx(0.0, abs=4 / math.sqrt(TAPS * len(links)))
        assert (one**2).mean() == pytest.approx(1 / TAPS, abs=4 * error)


@pytest.mark.parametrize("correlation", [0.9, 0.999, 0.99999, 0.9999999])
def test_power_changes_as_little_as_it_should(correlation: float) -> None:
    """After k slots E (g_k - g_0)^2 = 2 (1 - rho^2k) / L; rounding errors would show where this is smallest."""
    links, apart = [DiverseFading(key, correlation, TAPS) for key in range(800)], PAGE // 2
    power = power_of_many(links, np.zeros(len(links), dtype=int), 5 * PAGE)
    for lag in (1, 2, 4):
        change = np.square(power[:, lag * apart] - power[:, 0])
        expected = 2 * (1 - correlation ** (2 * lag * apart)) / TAPS
        assert change.mean() == pytest.approx(expected, abs=4 * change.std() / math.sqrt(len(links)))
    step = np.square(np.diff(power, axis=1)).mean()
    assert abs(step - 2 * (1 - correlation**2) / TAPS) < 2 * (1 - SMOOTH) / TAPS


@pytest.mark.parametrize(("correlation", "apart"), [(0.5, 1), (0.95, 1), (0.99, 1), (0.9999, 64)])
def test_paths_have_the_law_of_the_mean_over_plain_links(correlation: float, apart: int) -> None:
    """Over 300 slots across a page's edge, the power's mean, minimum, range and change follow a reference's law.

    The reference is the mean power of L plain links, each drawn slot by slot. Compared slots are as far apart as the
    slots for which random numbers are drawn.
    """
    count, parts, slots = 1500, 4, 300
    first = np.full(count, PAGE - 40)
    drawn = power_of_many([DiverseFading(key, correlation, parts) for key in range(count)], first, slots)
    plain = np.zeros_like(drawn)
    for part in range(parts):
        links = [LinkFading((part + 1 << 64) + key, correlation, 64) for key in range(count)]
        plain += power_of_many(links, first, slots) / parts
    one, other = drawn[:, 40::apart], plain[:, 40::apart]
    seen = (
        lambda power: power.mean(axis=1),
        lambda power: power.min(axis=1),
        lambda power: power.max(axis=1) - power.min(axis=1),
        lambda power: np.abs(power[:, 1:] - power[:, :1]).mean(axis=1),
    )
    for of in seen:
        assert stats.ks_2samp(of(one), of(other)).pvalue > 1e-3 / len(seen)


@pytest.mark.parametrize(("left", "right", "cosine"), [(1.0, 1.0, 0.99), (0.3, 2.0, 0.1), (1.5, 0.02, -0.6)])
def test_a_point_half_way_has_the_moments_of_its_vector(left: float, right: float, cosine: float) -> None:
    """m = w (left + right) + e with 2 L numbers e ~ N(0, v) has the derived moments of |m|^2, m left and m right."""
    draws, parts, weight, variance = 200_000, 3, 0.4, 0.05
    rng, product = np.random.default_rng(5), cosine * math.sqrt(left * right)
    added = math.sqrt(variance) * rng.standard_normal((draws, 2, 1))
    length = np.square(added).sum(axis=1) + variance * rng.chisquare(2 * parts - 2, (draws, 1))
    ends, products = np.tile([left, right], (draws, 1)), np.full((draws, 1), product)
    powers, both = _halved(ends, products, np.full((draws, 1), weight), added, length)
    assert powers[:, ::2].tolist() == ends.tolist()
    seen = np.stack((powers[:, 1], both[:, 0], both[:, 1]))
    total = left + right + 2 * product  # |left + right|^2
    means = np.array(
        [weight**2 * total + 2 * parts * variance, weight * (left + product), weight * (right + product)]
    )
    with_length = 2 * weight * variance * np.array([left + product, right + product])
    covariance = np.array(
        [
            [4 * weight**2 * variance * total + 4 * parts * variance**2, *with_length],
            [with_length[0], variance * left, variance * product],
            [with_length[1], variance * product, variance * right],
        ]
    )
    deviations = seen - means[:, None]
    assert np.all(np.abs(deviations.mean(axis=1)) <= 4 * np.sqrt(np.diag(covariance) / draws))
    for one in range(3):
        for other in range(3):
            of = deviations[one] * deviations[other]
            assert of.mean() == pytest.approx(covariance[one, other], abs=4.5 * of.std() / math.sqrt(draws))


@pytest.mark.parametrize("correlation", [0.996, 0.9993, 0.99995])
def test_slots_between_points_have_the_same_mean_and_nearly_the_same_variance(correlation: float) -> None:
    links = [DiverseFading(key, correlation, TAPS) for key in range(4000)]
    power = power_of_many(links, np.zeros(len(links), dtype=int), 32)
    error = math.sqrt((6 / TAPS + 2) / len(links)) / TAPS
    for at in (0, 1, 2, 3, 4, 7, 16, 31):
        assert power[:, at].mean() == pytest.approx(1.0, abs=4 / math.sqrt(TAPS * len(links)))
        assert power[:, at].var() == pytest.approx(1 / TAPS, abs=4 * error + (1 - SMOOTH) / TAPS)


def test_reads_in_any_order_and_together_are_the_same() -> None:
    keys, ways = range(6), [0.0, 0.3, 0.9, 0.9999, 0.999999, 1.0]
    far = 10 * PAGE * 16 + 5

    def links() -> list[DiverseFading]:
        return [DiverseFading(key << 64, ways[key], 3) for key in keys]

    first_slots = np.array([0, 3, PAGE - 1, far, PAGE * 16 - 2, 7])
    many = power_of_many(links(), first_slots, 700)
    alone = links()
    draw_ahead(alone[:2], 0)
    for link, slot, row in zip(alone, first_slots.tolist(), many, strict=True):
        later = link.power(slot + 650, 50)
        pieces = [link.power(slot + at, 130) for at in range(0, 650, 130)]
        assert np.concatenate([*pieces, later]).tolist() == row.tolist()
    twice = DiverseFading(5, 0.9999, 3)
    both = power_of_many([twice, twice, twice], np.array([0, far, 3 * far]), 40)
    again = [DiverseFading(5, 0.9999, 3).power(at, 40).tolist() for at in (0, far, 3 * far)]
    assert both.tolist() == again


def test_one_part_is_the_plain_link() -> None:
    one, several = (fading_in_parts(77 << 64, 0.9, parts) for parts in (1, 3))
    assert isinstance(one, LinkFading)
    many = power_of_many([several, one, several], np.array([0, 0, 10]), 40)
    assert many.tolist() == [
        link.power(at, 40).tolist() for link, at in ((several, 0), (one, 0), (several, 10))
    ]


def test_a_link_of_parts_out_of_range_is_refused() -> None:
    for correlation, parts in ((-0.1, 2), (1.1, 2), (0.5, 0)):
        with pytest.raises(ValueError, match=f"got {correlation}, {parts}"):
            DiverseFading(1, correlation, parts)
    with pytest.raises(ValueError, match="got -1 and 3"):
        DiverseFading(1, 0.5, 2).power(-1, 3)
