"""Test commuters: departure times, routes, the days of each trip, and habits that persist from day to day."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from edgefl.mobility import Movement, notes
from edgefl.mobility._together import Together
from edgefl.mobility.itinerary import Itinerary
from edgefl.places.areas import Disc, Places, Rectangle
from edgefl.places.streets import Streets, _Street, _StreetLines
from edgefl.rng import Streams
from tests.tools.constants import made

PEOPLE = 1_000
STANDARD_ERRORS = 4
DAY_S = 86_400.0
WORK_M = (3_000.0, 4_000.0)  # 46 minutes away at 1.8 m/s: at 8:15 all have left, none have arrived
TO_WORK: dict[str, Any] = {"leave": "8:00", "to": "work", "spread_min": 15, "days": "weekdays"}
BACK: dict[str, Any] = {"leave": "17:30", "to": "home", "days": "weekdays"}
COMMUTE: dict[str, Any] = {"addresses": {"work": WORK_M}, "plan": [TO_WORK, BACK]}
AREAS = Places(
    {
        "mill": Rectangle(from_m=(400, 0), to_m=(600, 100)),
        "campus": Disc(centre_m=(-500.0, 0.0), radius_m=50.0),
    }
)


def homes_m(people: int = PEOPLE) -> np.ndarray:
    return np.random.default_rng(0).uniform(-100, 100, (people, 2))


def start(people: int = PEOPLE, seed: int = 1, places: Places = AREAS, **parameters: Any) -> Movement:
    model = made(Itinerary, **{**COMMUTE, **parameters}).within(places)
    return model.start(homes_m(people), cell_radius_m=200.0, min_distance_m=10.0, streams=Streams(seed))


def at(day: int, hour: float) -> float:
    return DAY_S * day + 3600.0 * hour


def left_s(movement: Movement, day: int) -> np.ndarray:
    """Return departure times [people] on a day, from the distance covered by 8:16; inf for people at home."""
    way_m = np.hypot(*(movement.positions_m(at(day, 8 + 16 / 60)) - homes_m()).T)
    left = at(day, 8 + 16 / 60) - way_m / movement.doppler_speeds_m_s()
    return np.where(way_m > 1e-6, left, np.inf)


def test_people_leave_within_the_spread_by_its_trapezoid() -> None:
    """On weekdays, departures are 2/3 habit + 1/3 daily draw, so their density is flat over a third of the spread."""
    movement = start()
    for day in range(5):
        late_min = (left_s(movement, day) - at(day, 8)) / 60
        assert np.abs(late_min).max() <= 15 + 1e-6
        expected = stats.trapezoid(1 / 3, 2 / 3, loc=-15, scale=30)
        distance = stats.kstest(late_min, expected.cdf).statistic
        assert distance < stats.kstwo.ppf(1 - 1e-4, PEOPLE)


@pytest.mark.parametrize("habit", [0.0, 0.5, 2 / 3])
def test_habits_are_the_persons_own(habit: float) -> None:
    """A person's departures on two days have correlation habit^2 / (habit^2 + (1 - habit)^2)."""
    movement = start(habit=habit)
    first, second = left_s(movement, 0), left_s(movement, 1)
    expected = habit**2 / (habit**2 + (1 - habit) ** 2)
    assert np.corrcoef(first, second)[0, 1] == pytest.approx(
        expected, abs=STANDARD_ERRORS * (1 - expected**2) / math.sqrt(PEOPLE)
    )


def test_with_habits_only_each_weekday_is_the_same_and_weeks_recur() -> None:
    movement = start(habit=1.0)
    hours = (8.1, 8.5, 12.0, 18.0, 23.0)
    monday = [movement.positions_m(at(0, hour)) for hour in hours]
    assert np.ptp(left_s(start(habit=1.0), 0)) > 60 * 25
    for day in (1, 4, 7, 15):
        for there_m, hour in zip(monday, hours, strict=True):
            assert movement.positions_m(at(day, hour)) == pytest.approx(there_m, abs=1e-3)


def test_arrival_is_the_leave_and_the_way_over_the_speed() -> None:
    """Positions follow the closed form of the way there, the way back, and weekends at home."""
    movement = start(300, plan=[{**TO_WORK, "spread_min": 0}, BACK])
    home, way = homes_m(300), WORK_M - homes_m(300)
    takes_s = np.hypot(*way.T) / movement.doppler_speeds_m_s()
    for day in (0, 4, 5, 6):
        for hour in (0, 7.9, 8.1, 8.5, 8.8, 12, 17.4, 17.6, 18, 18.5, 23):
            there = np.clip((3600 * (hour - 8)) / takes_s, 0, 1) - np.clip(
                (3600 * (hour - 17.5)) / takes_s, 0, 1
            )
            expected = home + (there * (day < 5))[:, None] * way
            assert movement.positions_m(at(day, hour)) == pytest.approx(expected, abs=1e-6)
    arrive_s = at(7, 8) + takes_s[0]
    assert np.hypot(*(movement.positions_m(arrive_s - 1)[0] - WORK_M)) == pytest.approx(
        movement.doppler_speeds_m_s()[0], rel=1e-6
    )
    assert movement.positions_m(arrive_s + 1e-6)[0] == pytest.approx(WORK_M, abs=1e-6)


def test_the_same_share_goes_on_each_weekday() -> None:
    movement = start(plan=[{**TO_WORK, "share": 0.8}, BACK])
    goes = np.isfinite(left_s(movement, 0))
    assert goes.mean() == pytest.approx(0.8, abs=STANDARD_ERRORS * math.sqrt(0.8 * 0.2 / PEOPLE))
    for day in range(1, 9):
        expected = goes & (day % 7 < 5)
        assert np.array_equal(np.isfinite(left_s(movement, day)), expected)


def test_days_follow_the_day_at_time_0() -> None:
    movement = start(
        50, begin_day="fri", plan=[{**TO_WORK, "days": ["fri", "sun"]}, {**BACK, "days": "daily"}]
    )
    at_noon = [np.hypot(*(movement.positions_m(at(day, 12)) - WORK_M).T).max() < 1e-6 for day in range(8)]
    assert at_noon == [True, False, True, False, False, False, False, True]


@pytest.mark.parametrize("begin_hour", ["8:00", "8:20", "8:50", 12, "17:45", 23.5])
def test_time_0_may_be_any_hour_of_the_same_days(begin_hour: str | float) -> None:
    whole, late = start(300), start(300, begin_hour=begin_hour)
    begin_h = Itinerary.model_validate({**COMMUTE, "begin_hour": begin_hour}).begin_hour
    for hour in (0.0, 0.1, 0.5, 3.0, 9.0, 24.0, 33.0):
        expected = whole.positions_m(3600 * (begin_h + hour))
        assert late.positions_m(3600 * hour) == pytest.approx(expected, abs=1e-5)


def test_who_is_still_on_the_way_sets_out_again_on_arrival() -> None:
    """If a trip takes 83 minutes and the trip home is due after 60 minutes, the person turns back on arrival."""
    plan = [{"leave": 22, "to": "work"}, {"leave": 23, "to": "home"}]
    movement = start(
        1, addresses={"home": (0, 0), "work": WORK_M}, plan=plan, speed_min_m_s=1, speed_max_m_s=1
    )
    for minute in (0, 40, 46, 47, 1320, 1320 + 50, 1320 + 83, 1320 + 84, 1320 + 150, 1320 + 167):
        since_s = (60 * minute - at(0, 22)) % DAY_S
        away_m = max(min(since_s, 10_000 - since_s), 0.0)
        assert np.hypot(*movement.positions_m(60.0 * minute)[0]) == pytest.approx(away_m, abs=1e-6)


def test_spots_in_areas_are_the_persons_own_and_the_same_each_day() -> None:
    movement = start(addresses={"work": {"mill": 0.3, "campus": 0.7}}, habit=0.0)
    noon = movement.positions_m(at(0, 12))
    in_mill = np.all((noon >= (400, 0)) & (noon <= (600, 100)), axis=1)
    in_campus = np.hypot(*(noon - (-500, 0)).T) <= 50
    assert np.all(in_mill ^ in_campus)
    assert in_mill.mean() == pytest.approx(0.3, abs=STANDARD_ERRORS * math.sqrt(0.21 / PEOPLE))
    # spots are uniform in area
    limit = stats.kstwo.ppf(1 - 1e-4, in_mill.sum())
    assert stats.kstest(noon[in_mill, 0], stats.uniform(400, 200).cdf).statistic < limit
    assert movement.positions_m(at(3, 12)) == pytest.approx(noon, abs=1e-6)
    assert len(np.unique(noon, axis=0)) == PEOPLE


def test_another_place_leaves_people_their_habits_and_spots() -> None:
    addresses = {"work": "mill"}
    plan = [{**TO_WORK, "share": 0.5}, BACK]
    gym = [{"leave": 19, "to": "gym", "share": 0.1}, {"leave": 21, "to": "home"}]
    few = start(addresses=addresses, plan=plan)
    more = start(addresses={"gym": "campus", **addresses}, plan=[*plan, *gym])
    for hour in (8.1, 12.0, 17.6, 18.9):
        assert more.positions_m(at(1, hour)) == pytest.approx(few.positions_m(at(1, hour)), abs=1e-6)


def test_other_people_leave_ones_own_way_as_it_is() -> None:
    """A person's path does not depend on other people, to the last digit, even if a trip has begun before time 0."""
    one, many = (start(people, begin_hour="8:20") for people in (3, 200))
    for hour in (0.0, 0.1, 9.2, 24.3):
        assert np.array_equal(one.positions_m(3600 * hour), many.positions_m(3600 * hour)[:3])


def test_people_keep_to_the_streets() -> None:
    """The way leads from a home 50 m off the streets along two streets to work next to them, and back again."""
    streets = Streets.model_validate({"lines_m": [[[0, 0], [0, 1000]], [[0, 1000], [500, 1000]]]})
    addresses = {"home": (50, 100), "work": (400, 1030)}
    movement = start(
        1,
        places=Places({}, None, streets.read(Places())),
        addresses=addresses,
        plan=[{**TO_WORK, "spread_min": 0}, BACK],
        speed_min_m_s=1,
        speed_max_m_s=1,
    )
    corners = np.array([(50, 100), (0, 100), (0, 1000), (400, 1000), (400, 1030)], dtype=float)
    along_m = np.append(0, np.cumsum(np.hypot(*np.diff(corners, axis=0).T)))
    assert along_m[-1] == 50 + 900 + 400 + 30
    for walked_m in (0, 20, 50, 400, 950, 1200, 1350, 1370, 1380, 2000):
        there = [np.interp(walked_m, along_m, axis) for axis in corners.T]
        back = [np.interp(along_m[-1] - walked_m, along_m, axis) for axis in corners.T]
        assert movement.positions_m(at(1, 8) + walked_m)[0] == pytest.approx(there, abs=1e-6)
        assert movement.positions_m(at(1, 17.5) + walked_m)[0] == pytest.approx(back, abs=1e-6)


@pytest.mark.parametrize(
    ("top_m_s", "mode", "travels_by"),
    [(1.8, None, "foot"), (3, None, "foot"), (6, None, "bicycle"), (14, None, "car"), (14, "bus", "bus")],
)
def test_the_mode_of_travel_follows_from_the_speed_or_is_given(
    top_m_s: float, mode: Any, travels_by: str
) -> None:
    one = Itinerary(addresses={}, plan=[{"leave": 8, "to": "home"}], speed_max_m_s=top_m_s, mode=mode)
    assert one.travels_by == travels_by


def test_people_and_cars_take_the_streets_that_are_open_to_them() -> None:
    """Work is 300 m away by a footpath, and 100 + 300 + 100 m by a road that is closed to pedestrians."""
    road = np.array([(0, 0), (0, 100), (300, 100), (300, 0)], dtype=float)
    lines = [_Street(road, "road", {"car"}), _Street(road[[0, 3]], "path", {"foot"})]
    streets = _StreetLines(lines, ("geojson", "map"), [])
    for speed_m_s, after_s, there_m in ((1, 100, (100, 0)), (10, 20, (100, 100))):
        movement = start(
            1,
            places=Places({}, None, streets),
            addresses={"home": (0, 0), "work": (300, 0)},
            plan=[{**TO_WORK, "spread_min": 0}, BACK],
            speed_min_m_s=speed_m_s,
            speed_max_m_s=speed_m_s,
        )
        assert movement.positions_m(at(1, 8) + after_s)[0] == pytest.approx(there_m)


# ---- plans that are probably a mistake


def notes_of(people: int = PEOPLE, streets: list[Any] | None = None, **parameters: Any) -> list[str]:
    mapped = Streets.model_validate({"lines_m": streets}).read(Places()) if streets else None
    places = Places(AREAS.areas, streets=mapped)
    return list(notes(start(people, places=places, **parameters), np.arange(people)))


def test_people_who_never_come_home_are_noted() -> None:
    everyone = notes_of(20, plan=[TO_WORK])
    assert len(everyone) == 1
    assert "20 of 20 people" in everyone[0]
    assert "at work" in everyone[0]
    assert "to: home" in everyone[0]
    assert notes_of(20) == []
    assert notes_of(20, plan=[{**TO_WORK, "share": 0.3}, BACK]) == []


@pytest.mark.parametrize(
    ("mode", "speed_max_m_s", "slow"),
    [("car", 1.8, True), ("car", 14, False), ("foot", 1.8, False), (None, 1.8, False)],
)
def test_cars_as_slow_as_pedestrians_are_noted(mode: Any, speed_max_m_s: float, slow: bool) -> None:
    """A mode of travel chooses the streets that people use, but not their speed."""
    found = [note for note in notes_of(20, mode=mode, speed_max_m_s=speed_max_m_s) if "as on foot" in note]
    assert len(found) == slow
    assert all("set speed_min_m_s and speed_max_m_s" in note for note in found)


def test_notes_count_only_the_people_of_the_class() -> None:
    """A class of 5 of 20 devices leaves home for good; the other devices move by another model."""
    leaving, back = start(20, plan=[TO_WORK]), start(20)
    own, others = np.arange(5), np.arange(5, 20)
    (note,) = notes(Together([(own, leaving, own), (others, back, others)]), np.arange(20))
    assert "5 of 5 people" in note


def test_a_smaller_share_of_the_way_home_strands_the_others() -> None:
    """If all people leave and 80 % of them return, 20 % are stranded."""
    (note,) = notes_of(plan=[TO_WORK, {**BACK, "share": 0.8}])
    stranded = int(note.split(" of ")[0].split()[-1])
    assert abs(stranded - 0.2 * PEOPLE) < STANDARD_ERRORS * math.sqrt(0.2 * 0.8 * PEOPLE)
    assert "share" in note


def test_an_address_without_a_way_to_the_others_is_noted() -> None:
    """The mill's street (y = 50) does not meet the longer street (y = 0), and is the nearest street above y = 25."""
    home_street, own_street = [[-600, 0], [200, 0]], [[400, 50], [600, 50]]
    commute = {"addresses": {"work": "mill"}, "plan": [TO_WORK, BACK]}
    (note,) = notes_of(100, streets=[home_street, own_street], **commute)
    assert "from work to" in note
    assert "100 spots" in note
    # the mill's farthest corner, [600, 100], is hypot(400, 100) m from the end of the longer street
    farthest_m = float(note.split("up to ")[1].split(" m")[0])
    assert 350 < farthest_m <= math.hypot(400, 100)
    assert notes_of(100, streets=[home_street, own_street, [[200, 0], [400, 50]]], **commute) == []


def test_an_address_that_no_street_reaches_is_noted() -> None:
    """The point is 501 m or 499 m from the end of the only street, and 500 m are the limit."""
    commute = {"addresses": {"work": (701, 0)}, "plan": [TO_WORK, BACK]}
    (note,) = notes_of(10, streets=[[[-600, 0], [200, 0]]], **commute)
    assert "no street reaches work: 1 of its 1 spots" in note
    assert "up to 501 m" in note
    assert notes_of(10, streets=[[[-600, 0], [202, 0]]], **commute) == []


def test_a_few_spots_at_a_lost_street_are_no_note() -> None:
    """A street of 14 m in the mill's corner is the nearest street to only a few spots, so no note is written."""
    streets = [[[-600, 0], [600, 0]], [[590, 90], [600, 100]]]
    assert notes_of(100, streets=streets, addresses={"work": "mill"}) == []
