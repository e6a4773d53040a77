"""Test models that go to areas: attraction by the day of the week, and trips between areas at hourly rates."""

import math
from typing import Any

import numpy as np
import pytest

from edgefl.mobility import Mobility, Movement
from edgefl.mobility._calendar import DAYS, Calendar, PartOfDay
from edgefl.mobility.attraction import Attraction
from edgefl.mobility.od_flows import OdFlows, _Departures
from edgefl.places.areas import Disc, Places, Rectangle
from edgefl.rng import Streams

AREAS = Places(
    {
        "suburb": Rectangle(from_m=(-300, -100), to_m=(-200, 100)),
        "village": Disc(centre_m=(0.0, 300.0), radius_m=40.0),
        "city": Disc(centre_m=(200.0, 0.0), radius_m=50.0),
        "stadium": Disc(centre_m=(0.0, -200.0), radius_m=30.0),
    }
)
# a trip takes a negligible time
NEAR = Places(
    {name: Disc(centre_m=(x, 0.0), radius_m=0.01) for name, x in (("a", 1.0), ("b", 2.0), ("c", 3.0))}
)
DEVICES = 4_000
STANDARD_ERRORS = 4
FAST: dict[str, Any] = {"speed_min_m_s": 60.0, "speed_max_m_s": 60.0}


def start(model: Mobility, devices: int = DEVICES, seed: int = 1, places: Places = AREAS) -> Movement:
    dropped = np.random.default_rng(0).uniform(-100, 100, (devices, 2))
    return model.within(places).start(
        dropped, cell_radius_m=200.0, min_distance_m=10.0, streams=Streams(seed)
    )


def inside(name: str, at: np.ndarray) -> np.ndarray:
    area = AREAS.areas[name]
    if isinstance(area, Disc):
        return np.hypot(*(at - area.centre_m).T) <= area.radius_m
    assert isinstance(area, Rectangle)
    return np.all((at >= area.from_m) & (at <= area.to_m), axis=1)


# -- the calendar -------------------------------------------------------------------------------------


def test_a_rhythm_of_every_day() -> None:
    calendar = Calendar([PartOfDay(from_hour=0), PartOfDay(from_hour=7.5)], day_s=86_400.0, begin_hour=6.0)
    hours = np.array([0.0, 1.49, 1.5, 17.99, 18.0, 25.5, -6.01])
    assert calendar.spells(3600 * hours).tolist() == [0, 0, 1, 1, 0, 1, 1]
    assert (calendar.period_h, calendar.period_s) == (24, 86_400)


def test_a_rhythm_of_the_week() -> None:
    """Saturday and Sunday have their own rhythm; time 0 is Friday, 18:00."""
    spells = [PartOfDay(from_hour=0), PartOfDay(from_hour=12), PartOfDay(from_hour=0, days=("sat", "sun"))]
    calendar = Calendar(spells, day_s=86_400.0, begin_hour=18.0, begin_day="fri")
    hours = np.array([0.0, 5.99, 6.0, 53.99, 54.0, 66.0, 168.0, 174.0, -6.1])
    assert calendar.spells(3600 * hours).tolist() == [1, 1, 2, 2, 0, 1, 1, 2, 0]
    assert (calendar.period_h, calendar.period_s) == (168, 7 * 86_400)


# -- attraction ---------------------------------------------------------------------------------------


def test_attraction_goes_to_areas_by_the_hour_and_the_day() -> None:
    """In a week of 7 days devices are at home at night, in the city on weekdays, and on Saturday in the stadium."""
    model = Attraction(
        **FAST,
        stay_s=600.0,
        homes={"suburb": 0.75, "village": 0.25},
        works="city",
        begin_hour=6.0,
        begin_day="fri",
        rhythm=[
            {"from_hour": 0, "to": {"home": 1}},
            {"from_hour": 7, "to": {"work": 1}},
            {"from_hour": 18, "to": {"home": 1}},
            {"from_hour": 0, "days": ["sat"], "to": {"home": 1}},
            {"from_hour": 15, "days": ["sat"], "to": {"stadium": 1}},
        ],
    )
    movement = start(model)
    # three hours after a change, all but exp(-18) = 1.5e-8 of the devices have decided again
    day_s = 86_400.0
    night, noon, saturday, sunday = (
        movement.positions_m(3600.0 * (hour - 6)) for hour in (6, 12, 24 + 20, 48 + 12)
    )
    in_suburb = inside("suburb", night)
    assert np.all(in_suburb | inside("village", night))
    error = math.sqrt(0.75 * 0.25 / DEVICES)
    assert in_suburb.mean() == pytest.approx(0.75, abs=STANDARD_ERRORS * error)
    assert inside("city", noon).all()
    assert inside("stadium", saturday).all()
    assert inside("city", sunday).all(), "Sunday has no hours of its own, so the daily hours apply"
    assert np.array_equal(movement.positions_m(7 * day_s), night), "a week later all devices are at home"
    assert movement.doppler_speeds_m_s().max() == 60.0


def test_attraction_names_its_areas() -> None:
    rhythm = [{"from_hour": 0, "to": {"home": 0.5, "stadium": 0.5}}]
    model = Attraction(homes={"suburb": 1.0}, works="city", rhythm=rhythm)
    assert dict(model.area_names()) == {
        ("homes",): "suburb",
        ("works",): "city",
        ("rhythm", "0", "to", "stadium"): "stadium",
    }
    assert not list(Attraction().area_names())


def test_attraction_walks_at_a_pedestrians_speed() -> None:
    """Speeds are uniform from 1 to 1.8 m/s; the mean of 4,000 devices agrees to within the standard error."""
    speeds = start(Attraction()).doppler_speeds_m_s()
    assert speeds.mean() == pytest.approx(1.4, abs=STANDARD_ERRORS * 0.8 / math.sqrt(12 * DEVICES))


# -- trips between areas ------------------------------------------------------------------------------


def departures(rates: list[list[float]], hours: list[float], begin_hour: float = 0.0) -> _Departures:
    calendar = Calendar([PartOfDay(from_hour=h) for h in hours], day_s=86_400.0, begin_hour=begin_hour)
    return _Departures(calendar, np.array(rates))


def test_departures_by_hand() -> None:
    """Two trips an hour from 8:00 to 9:00, four from 9:00 to 10:00, and no other trips are six trips a day."""
    one = departures([[0, 0], [2, 0], [1, 3], [0, 0]], [0, 8, 9, 10])
    times_h = np.array([7.0, 7.0, 7.0, 8.5, 9.5, 12.0, 0.0])
    exponential = np.array([0.5, 4.0, 7.0, 0.5, 3.0, 12.5, 1e-12])
    leaves_h = np.array([8.25, 9.5, 24 + 8.5, 8.75, 24 + 8.5, 3 * 24 + 8.25, 8.0])
    stay_s, goal = one.next(3600 * times_h, exponential, np.full(7, 0.3))
    assert stay_s == pytest.approx(3600 * (leaves_h - times_h))
    # trips go to the second area with probability 3/4 from 9:00 on, and never before
    assert goal.tolist() == [0, 1, 0, 0, 0, 0, 0]


def test_nobody_leaves_an_area_without_trips() -> None:
    stay_s, _ = departures([[0, 0]], [0]).next(np.zeros(3), np.ones(3), np.ones(3))
    assert np.isinf(stay_s).all()
    model = OdFlows(begin={"a": 1}, flows=[{"from_hour": 0, "trips_per_hour": {}}])
    movement = start(model, 20, places=NEAR)
    assert np.array_equal(movement.positions_m(0.0), movement.positions_m(1e7))


def shares(movement: Movement, time_s: float) -> np.ndarray:
    """Return the share of devices in each area of NEAR; a walking device reaches an area within milliseconds."""
    return np.bincount(np.rint(movement.positions_m(time_s)[:, 0]).astype(int), minlength=4)[1:] / DEVICES


def test_two_areas_follow_their_rate_equation() -> None:
    """As p_a' = beta p_b - alpha p_a, the share in a tends to beta / s as exp(-s t), with s = alpha + beta."""
    alpha, beta, first = 0.6, 0.2, 0.9
    flows = [{"from_hour": 0, "trips_per_hour": {"a": {"b": alpha}, "b": {"a": beta}}}]
    movement = start(OdFlows(**FAST, begin={"a": first, "b": 1 - first}, flows=flows), places=NEAR)
    for hour in (0.0, 0.5, 2.0, 7.0, 30.0):
        limit = beta / (alpha + beta)
        share = limit + (first - limit) * math.exp(-(alpha + beta) * hour)
        error = math.sqrt(share * (1 - share) / DEVICES)
        assert shares(movement, 3600 * hour)[0] == pytest.approx(share, abs=STANDARD_ERRORS * error)


def test_trips_by_the_hour_and_to_several_destinations() -> None:
    """With one trip an hour to b and two to c, all but exp(-3) of the devices leave in an hour; then none move."""
    flows = [
        {"from_hour": 0, "trips_per_hour": {}},
        {"from_hour": 8, "trips_per_hour": {"a": {"b": 1, "c": 2}}},
        {"from_hour": 9, "trips_per_hour": {}},
    ]
    movement = start(OdFlows(**FAST, begin={"a": 1}, flows=flows, begin_hour=6.0), places=NEAR)
    assert shares(movement, 3600 * 1.999).tolist() == [1.0, 0.0, 0.0]
    for hour in (3.01, 20.0):
        left = 1 - math.exp(-3)
        for share, found in zip(
            (1 - left, left / 3, 2 * left / 3), shares(movement, 3600 * hour), strict=True
        ):
            error = math.sqrt(share * (1 - share) / DEVICES)
            assert found == pytest.approx(share, abs=STANDARD_ERRORS * error)


def test_trips_on_some_days_only() -> None:
    flows = [
        {"from_hour": 0, "trips_per_hour": {}},
        *({"from_hour": 0, "days": [day], "trips_per_hour": {"a": {"b": 5}}} for day in DAYS[5:]),
    ]
    movement = start(OdFlows(**FAST, begin={"a": 1}, flows=flows, begin_day="thu"), places=NEAR)
    assert shares(movement, 86_400 * 2.0 - 1)[0] == 1.0
    # a day later, exp(-120) of the devices remain
    assert shares(movement, 86_400 * 3.0)[0] == 0.0


def test_a_walk_takes_its_time() -> None:
    """A walk from the suburb to the city, 350 to 550 m apart, takes as long as 1.25 m/s implies."""
    flows = [{"from_hour": 0, "trips_per_hour": {"suburb": {"city": 3600}}}]
    model = OdFlows(begin={"suburb": 1}, flows=flows, speed_min_m_s=1.25, speed_max_m_s=1.25)
    movement = start(model, 500)
    assert inside("suburb", movement.positions_m(0.0)).all()
    assert not inside("city", movement.positions_m(340 / 1.25)).any()
    # the longest of 500 stays is about 8 s
    longest_s = math.hypot(560, 150) / 1.25 + 20
    assert inside("city", movement.positions_m(longest_s)).all()
