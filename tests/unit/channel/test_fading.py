import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, signal

from edgefl.channel.fading import BLOCK, LinkFading, doppler_hz, slot_correlation
from edgefl.channel.fading_grids import grids
from tests.refusals import refused_at

RADIO = {"carrier_hz": 3.5e9, "slot_s": 0.5e-3}
KEY = 2**100 + 12345
# fading with one grid of block edges, with two grids (pedestrians), with alternating signs, and without grid (static)
CORRELATIONS = [0.9667, 0.99966, -0.9, 1.0]


def test_doppler_of_table_i() -> None:
    # 10 m/s x 3.5e9 / 3e8
    assert doppler_hz(10.0, carrier_hz=3.5e9) == pytest.approx(350 / 3, rel=1e-14)


@pytest.mark.parametrize(
    ("speed_m_s", "rho"),
    [
        (0.0, 1.0),
        (10.0, 0.966696852),  # with c = 3e8, printed to nine decimals
    ],
)
def test_slot_correlation_golden_values(speed_m_s: float, rho: float) -> None:
    assert slot_correlation(speed_m_s, **RADIO) == pytest.approx(rho, abs=5.1e-10)


@pytest.mark.parametrize(("speed_m_s", "rho"), [(1.0, 0.999663722), (30.0, 0.719471957), (60.0, 0.110008)])
def test_slot_correlation_against_the_exact_speed_of_light(speed_m_s: float, rho: float) -> None:
    # Golden values use c = 299,792,458 m/s; with c = 3e8 the same Doppler needs a slightly different speed.
    same_doppler = speed_m_s * 3e8 / 299_792_458
    assert slot_correlation(same_doppler, **RADIO) == pytest.approx(
        rho, abs=5.1e-7 if speed_m_s == 60 else 5.1e-10
    )


def test_speeds_beyond_the_first_bessel_zero_are_refused_with_limit_and_remedy() -> None:
    # 2 pi v fc tau / c = 2.404826 at v = 65.61 m/s
    limit_m_s = 2.404825557695773 * 3e8 / (2 * math.pi * 3.5e9 * 0.5e-3)
    assert limit_m_s == pytest.approx(65.61, abs=0.01)
    assert 0 < slot_correlation(limit_m_s * (1 - 1e-9), **RADIO) < 1e-8
    with refused_at("", "speed_m_s 70", "65.6", "slot_s below 0.000469", kind=ValueError):
        slot_correlation(70.0, **RADIO)
    # the proposed remedy works
    assert slot_correlation(70.0, carrier_hz=3.5e9, slot_s=0.000468) > 0


@pytest.mark.parametrize("block", [2, 400, 2048])
@pytest.mark.parametrize("rho", [0.5, 0.9667, 0.99966, -0.9, 1 - 1e-12])
def test_a_bridge_between_two_edges_has_the_law_of_the_process(rho: float, block: int) -> None:
    # With h[0] = left, free[n] = rho free[n-1] + sqrt(1-rho^2) e[n], and h[n] = free[n] + w[n] (right - free[B]), h
    # is linear in (left, e[1..B], right); with E[left right] = rho^B its covariance must be rho^|i-j|.
    weights = grids(rho, block)[0].weights
    assert weights is not None
    step = np.zeros((block + 1, block + 2))
    step[0, 0] = 1.0
    step[1:, 1:-1] = np.eye(block) * math.sqrt((1 - rho) * (1 + rho))
    free = signal.lfilter([1.0], [1.0, -rho], step, axis=0)
    edge = np.zeros(block + 2)
    edge[-1] = 1.0
    path = np.vstack([free[0], free[1:-1] + np.outer(weights, edge - free[-1]), edge])
    source = np.eye(block + 2)
    source[0, -1] = source[-1, 0] = rho**block
    covariance = path @ source @ path.T
    np.testing.assert_allclose(covariance, linalg.toeplitz(rho ** np.arange(block + 1.0)), rtol=0, atol=1e-9)


@settings(max_examples=40)
@given(
    rho=st.sampled_from(CORRELATIONS),
    pieces=st.lists(st.tuples(st.integers(0, 5 * BLOCK), st.integers(0, 3 * BLOCK)), min_size=1, max_size=5),
    page=st.sampled_from([0, BLOCK**2 - 3 * BLOCK, 400**2 - 3 * BLOCK]),
    block=st.sampled_from([BLOCK, 400]),
)
def test_reads_in_any_order_and_size_agree_bit_by_bit(
    rho: float, pieces: list[tuple[int, int]], page: int, block: int
) -> None:
    # `page` is chosen such that reads cross the end of a page of edges
    whole = LinkFading(KEY, rho, block).gain(page, 8 * BLOCK)
    link = LinkFading(KEY, rho, block)
    for first, count in pieces:
        np.testing.assert_array_equal(link.gain(page + first, count), whole[first : first + count])
        np.testing.assert_array_equal(
            link.power(page + first, count), (whole.real**2 + whole.imag**2)[first : first + count]
        )


def test_every_part_of_the_key_matters() -> None:
    first, second, third = (LinkFading(key, 0.9).gain(0, 100) for key in (KEY, KEY + 1, KEY + 2**64))
    assert not np.any((first == second) | (first == third) | (second == third))


def test_a_static_link_never_changes() -> None:
    link = LinkFading(KEY, 1.0)
    assert link.static
    assert np.unique(link.gain(0, 10)).size == 1
    assert link.gain(10**9, 1)[0] == link.gain(0, 1)[0]


def test_a_link_that_is_almost_static_changes_by_its_innovation() -> None:
    # At 1 mm/s, 1 - rho is (2 pi fd tau)^2 / 4 = 3.4e-10, and a step's size has mean square 2 (1 - rho).
    rho = slot_correlation(1e-3, **RADIO)
    gain = LinkFading(KEY, rho).gain(10**9, 2 * BLOCK)
    steps = np.abs(np.diff(gain)) ** 2 / (2 * (1 - rho))
    # steps are exponential with mean 1, and nearly independent
    assert abs(steps.mean() - 1) < 4 / math.sqrt(steps.size)


def test_streams_belong_to_slot_and_purpose() -> None:
    link = LinkFading(KEY, 0.9)
    draws = {
        (slot, stream): link.generator(slot, stream).standard_normal(4).tolist()
        for slot in (0, 1, 2**40)
        for stream in (0, 1)
    }
    # streams do not depend on earlier reads, and do not repeat the fading's own numbers
    link.power(0, 10)
    assert link.generator(1, 1).standard_normal(4).tolist() == draws[1, 1]
    page = LinkFading(KEY, 0.0).gain(0, 4) * math.sqrt(2)
    assert len({tuple(values) for values in draws.values()} | {tuple(page.real), tuple(page.imag)}) == 8


def test_reading_nothing() -> None:
    assert LinkFading(KEY, 0.9).gain(5, 0).shape == (0,)
    assert LinkFading(KEY, 1.0).power(5, 0).shape == (0,)
