"""Test that a battery drained in a TDD frame's slots has the same levels as in a simulation slot by slot."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from edgefl.channel.tdd import Frame, OnTime
from edgefl.engine.devices.battery import Battery

SLOT_S = 2**-11  # a power of two, so that the slots' boundaries are exact
SAME = 1e-9
MOST_SLOTS = 500

weights = st.lists(st.sampled_from([0.0, 1 / 7, 5 / 7, 1.0]), min_size=2, max_size=7).filter(
    lambda found: any(found) and min(found) < 1
)


def slot_by_slot(
    capacity_j: float, level_j: float, recharge_w: float, power_w: float, on: OnTime, slots: int
) -> tuple[list[Fraction], Fraction, Fraction | None]:
    """Return, as fractions, the level at each slot's end, the energy not stored, and the time of level 0."""
    level, lost, levels = Fraction(level_j), Fraction(0), []
    for slot in range(on.first_slot, on.first_slot + slots):
        weight = Fraction(on.frame.weights[slot % on.frame.period])
        net_w = Fraction(recharge_w) - Fraction(power_w) * weight
        after = level + net_w * Fraction(SLOT_S)
        if net_w < 0 and after <= 0:
            return levels, lost, slot * Fraction(SLOT_S) + level / -net_w
        lost += max(Fraction(0), after - Fraction(capacity_j))
        level = min(Fraction(capacity_j), after)
        levels.append(level)
    return levels, lost, None


@given(
    weights=weights,
    first_slot=st.integers(0, 20),
    drawn_first=st.floats(0.0, 1.0),  # share of the capacity drawn before the frame
    recharge=st.floats(0.0, 1.2),  # relative to the power drawn
    periods=st.floats(0.01, 60.0),  # periods that the capacity lasts without recharge
    looks=st.integers(1, MOST_SLOTS),
)
def test_a_frame_drains_in_its_slots(
    weights: list[float], first_slot: int, drawn_first: float, recharge: float, periods: float, looks: int
) -> None:
    on, power_w = OnTime(Frame(tuple(weights)), SLOT_S, first_slot), 1.0
    capacity_j = power_w * sum(weights) * SLOT_S * periods
    start_s = first_slot * SLOT_S
    battery = Battery(capacity_j, recharge * power_w, 1.0)
    battery.drain(start_s, 0.0)
    if start_s:  # energy drawn at constant power before the frame begins
        battery = Battery(capacity_j, recharge * power_w, 1.0)
        battery.drain(0.0, drawn_first * capacity_j / start_s + recharge * power_w)
    battery.drain(start_s, power_w, on)
    level_j, taken_j = battery.level_j(start_s), battery.charge(start_s).recharged_j

    levels, lost, empty = slot_by_slot(capacity_j, level_j, recharge * power_w, power_w, on, MOST_SLOTS)
    event("empty" if empty is not None else "full" if lost else "in between")
    # if the battery is not empty within MOST_SLOTS, the time of level 0 is not before their end
    expected_s = start_s + len(levels) * SLOT_S if empty is None else float(empty)
    empty_s = battery.empty_s()
    if empty_s < expected_s * (1 - SAME) or (empty is not None and empty_s > expected_s * (1 + SAME)):
        # where the level nearly reaches 0 at the end of a slot, rounding decides whether it does
        event("nearly empty")
        sooner_s = min(empty_s, expected_s)
        assert battery.level_j(sooner_s) <= SAME * capacity_j
        slots = round((sooner_s - start_s) / SLOT_S)
        assert not 0 < slots <= len(levels) or levels[slots - 1] <= SAME * capacity_j
        return
    looks = min(looks, len(levels))
    if looks:
        time_s = start_s + looks * SLOT_S
        assert battery.level_j(time_s) == pytest.approx(float(levels[looks - 1]), abs=SAME * capacity_j)
        drawn_j = power_w * on.until_s(time_s)
        taken_in_j = battery.charge(time_s).recharged_j - taken_j
        passed_j = capacity_j + drawn_j + taken_in_j
        assert level_j + taken_in_j - drawn_j == pytest.approx(battery.level_j(time_s), abs=SAME * passed_j)


def test_a_full_battery_stores_no_more() -> None:
    battery = Battery(10.0, recharge_w=1.0, return_share=0.5)
    battery.drain(0.0, 3.0)
    assert (battery.charge(2.0).recharged_j, battery.level_j(2.0)) == (2.0, 6.0)
    battery.drain(2.0, 0.0)  # full after 4 s more
    assert (battery.charge(5.0).recharged_j, battery.charge(100.0).recharged_j) == (5.0, 6.0)
    battery.drain(100.0, 0.5)  # the recharge exceeds the load, and the battery stays full
    assert (battery.charge(104.0).recharged_j, battery.level_j(104.0)) == (8.0, 10.0)


def test_a_battery_that_stays_full_takes_in_nothing_at_all() -> None:
    """200 full batteries at rest take in 0 J up to rounding, and never a negative energy such as -1e-16 J."""
    rng = np.random.default_rng(1)
    for capacity_j, recharge_w, time_s in rng.uniform(0.1, 10.0, size=(200, 3)):
        battery = Battery(capacity_j, recharge_w, 0.5)
        battery.drain(0.0, 0.0)
        battery.drain(time_s / 3, 0.0)
        assert 0.0 <= battery.charge(time_s).recharged_j <= SAME * capacity_j


def test_a_frame_that_gives_more_than_it_takes_never_empties() -> None:
    """With 1 W in every other slot and 0.6 W of recharge, the level falls by 0.4 J, and the battery is full again."""
    on = OnTime(Frame((1.0, 0.0)), 1.0, 0)
    battery = Battery(10.0, recharge_w=0.6, return_share=0.5)
    battery.drain(0.0, 1.0, on)
    assert battery.empty_s() == math.inf
    assert battery.level_j(1e6 + 1) == pytest.approx(9.6)
    assert battery.level_j(1e6) == pytest.approx(10.0)
    assert battery.charge(1e6).recharged_j == pytest.approx(0.5e6, rel=SAME)  # the energy drawn


def test_a_frame_empties_a_battery_after_whole_periods_and_a_part_of_a_slot() -> None:
    """A period takes 0.2 J, so 0.5 J of 99.9 J are left after 497 periods; they last for part of the next slot."""
    on = OnTime(Frame((1.0, 0.0)), 1.0, 0)
    battery = Battery(99.9, recharge_w=0.4, return_share=0.5)
    battery.drain(0.0, 1.0, on)
    assert battery.level_j(2 * 497.0) == pytest.approx(0.5)
    assert battery.empty_s() == pytest.approx(2 * 497.0 + 0.5 / 0.6, rel=SAME)


def test_a_battery_empties_in_the_slot_in_which_its_frame_begins() -> None:
    """A load of 1 W that begins after a quarter of a 1 s slot empties a battery of 0.5 J after three quarters."""
    on = OnTime(Frame((1.0, 0.0)), 1.0, 2)
    battery = Battery(0.5, recharge_w=0.0, return_share=0.5)
    battery.drain(2.0, 0.0)
    battery.drain(2.25, 1.0, on)
    assert battery.empty_s() == pytest.approx(2.75, rel=SAME)
    assert battery.level_j(2.5) == pytest.approx(0.25, rel=SAME)
