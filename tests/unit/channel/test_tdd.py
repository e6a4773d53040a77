import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgefl.channel.tdd import Frame, OnTime, Pattern, frame_of

WEIGHTS = st.lists(st.sampled_from([0.0, 1 / 7, 5 / 7, 1.0]), min_size=1, max_size=10).filter(any).map(tuple)


def test_dddsu_with_special_slot_10_2_2() -> None:
    # of 5 x 14 symbols, 3 x 14 + 10 are down, 14 + 2 up, and 2 guard
    pattern = Pattern("DDDSU", "10:2:2")
    assert pattern.weights("downlink") == (1, 1, 1, 10 / 14, 0)
    assert pattern.weights("uplink") == (0, 0, 0, 2 / 14, 1)
    assert Frame(pattern.weights("downlink")).mean == pytest.approx(52 / 70, rel=1e-15)
    assert Frame(pattern.weights("uplink")).mean == pytest.approx(16 / 70, rel=1e-15)
    assert Pattern() == pattern


def test_a_direction_may_live_on_special_slots() -> None:
    assert Pattern("DS", "12:1:1").weights("uplink") == (0, 1 / 14)


def test_no_weights_are_every_slot_in_full() -> None:
    assert frame_of(None).plain
    # a frame of full slots only is the plain frame
    assert frame_of((1.0, 1.0)) is frame_of(None)
    assert frame_of(np.array([1.0, 0.5])) is frame_of((1.0, 0.5))
    assert frame_of(None).slots(7, 2.5) == 3


@given(weights=WEIGHTS, first_slot=st.integers(0, 40), slots=st.integers(0, 60))
def test_airtime_is_the_sum_of_the_weights(weights: tuple[float, ...], first_slot: int, slots: int) -> None:
    frame = Frame(weights)
    expected = [weights[n % len(weights)] for n in range(first_slot, first_slot + slots)]
    assert frame.weights_from(first_slot, slots).tolist() == expected
    assert frame.airtime(first_slot, slots) == pytest.approx(sum(expected), rel=1e-12, abs=1e-12)
    assert frame.mean == pytest.approx(sum(weights) / len(weights))


@given(weights=WEIGHTS, first_slot=st.integers(0, 40), airtime=st.floats(0.01, 50))
@example(weights=(1 / 7, 0.0), first_slot=0, airtime=1.0)  # 1 - 6 x 1/7 is rounded up
def test_slots_is_the_first_count_with_enough_airtime(
    weights: tuple[float, ...], first_slot: int, airtime: float
) -> None:
    frame = Frame(weights)
    count = frame.slots(first_slot, airtime)
    assert frame.airtime(first_slot, count) > airtime - 1e-9
    assert frame.airtime(first_slot, count - 1) < airtime + 1e-9
    # the last slot must serve the direction
    assert frame.weights_from(first_slot + count - 1, 1)[0] > 0
    assert frame.slots(first_slot, 0.0) == 0


def test_a_transfer_has_its_slots_to_the_end() -> None:
    """In a plain frame 0.2 slots are 1 slot and 2.5 are 3. In a frame DSU with a special slot of 1/7, 0.1 is the
    first slot, (1 + 1/7) / 2 on average; 0.5 is D, or S and D; 8/7 is both slots, whichever is first."""
    plain, special = Frame((1.0,)), Frame((1.0, 1 / 7, 0.0))
    assert [plain.whole_slots(airtime) for airtime in (0.2, 1.0, 2.5)] == [1, 1, 3]
    found = [special.whole_slots(airtime) for airtime in (0.1, 0.5, 8 / 7)]
    assert found == pytest.approx([4 / 7, (1 + 8 / 7) / 2, 8 / 7], rel=1e-12)


@given(weights=WEIGHTS)
def test_autocorrelation_by_its_definition(weights: tuple[float, ...]) -> None:
    period = len(weights)
    expected = [
        sum(weights[n] * weights[(n + j) % period] for n in range(period)) / period for j in range(period + 1)
    ]
    np.testing.assert_allclose(Frame(weights).autocorrelation(), expected, rtol=1e-12, atol=1e-15)


@given(WEIGHTS, st.integers(0, 10**6), st.integers(0, 60), st.floats(0, 0.999))
def test_on_time_adds_up_slot_by_slot(
    weights: tuple[float, ...], first_slot: int, whole: int, part: float
) -> None:
    """`OnTime` adds the weights of whole slots from first_slot, and part of the next slot's weight."""
    slot_s = 0.5e-3
    on = OnTime(Frame(weights), slot_s, first_slot)
    expected = sum(weights[(first_slot + n) % len(weights)] for n in range(whole))
    expected += part * weights[(first_slot + whole) % len(weights)]
    time_s = (first_slot + whole + part) * slot_s
    # the time itself has a rounding error
    assert on.until_s(time_s) == pytest.approx(expected * slot_s, rel=1e-12, abs=4 * math.ulp(time_s))


def test_a_clock_one_rounding_short_of_a_boundary_is_at_it() -> None:
    on = OnTime(Frame((1.0, 0.0)), 0.5e-3, 3)
    for slot in (4, 1000, 10**8):
        boundary_s = slot * 0.5e-3
        for time_s in (math.nextafter(boundary_s, 0.0), boundary_s):
            assert on.place(time_s) == (slot, 0.0)
    assert on.place(4.0004 * 0.5e-3)[1] == pytest.approx(0.0004 * 0.5e-3)
