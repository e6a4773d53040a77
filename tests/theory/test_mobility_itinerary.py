"""Compare commutes with closed forms: the share of devices at work, and path lengths along streets. Fixed seeds."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from edgefl.mobility import Movement
from edgefl.mobility.itinerary import Itinerary
from edgefl.places.areas import Places
from edgefl.places.streets import Streets as StreetSettings
from edgefl.rng import Streams
from tests.tools.constants import made

PEOPLE = 4_000
SEED = 8
STANDARD_ERRORS = 4
DAY_S, HOUR_S = 86_400.0, 3_600.0
WORK_M = (900.0, 1_200.0)  # 1,500 m from home
SLOWEST_M_S, FASTEST_M_S = 1.0, 3.0
SPREAD_MIN, HABIT, SHARE = 20.0, 0.75, 0.8


def start(homes_m: np.ndarray, places: Places | None = None, **parameters: Any) -> Movement:
    model = made(Itinerary, **parameters).within(places or Places())
    return model.start(homes_m, cell_radius_m=2_000.0, min_distance_m=0.0, streams=Streams(SEED))


@pytest.mark.parametrize("day", [0, 1, 4])
def test_those_at_work_are_those_whose_way_is_over(day: int) -> None:
    """P(at work at t) is share E_v[F(t - way / v)] with F trapezoidal, flat over 2 habit - 1 of the spread."""
    movement = start(
        np.zeros((PEOPLE, 2)),
        speed_min_m_s=SLOWEST_M_S,
        speed_max_m_s=FASTEST_M_S,
        addresses={"work": WORK_M},
        plan=[
            {"leave": "8:00", "to": "work", "spread_min": SPREAD_MIN, "share": SHARE, "days": "weekdays"},
            {"leave": "18:00", "to": "home", "spread_min": SPREAD_MIN, "days": "weekdays"},
        ],
        habit=HABIT,
    )
    corner = 1 - HABIT  # where the density of a sum of two uniforms, habit and daily draw, becomes flat
    leaving = stats.trapezoid(corner, 1 - corner, loc=-60 * SPREAD_MIN, scale=120 * SPREAD_MIN)
    way_m = math.hypot(*WORK_M)

    def done(late_s: float) -> float:
        """Return the share of trips that have ended this long after the hour of departure."""
        mean, _ = integrate.quad(
            lambda speed_m_s: leaving.cdf(late_s - way_m / speed_m_s), SLOWEST_M_S, FASTEST_M_S, limit=200
        )
        return mean / (FASTEST_M_S - SLOWEST_M_S)

    for late_min in (-15, 0, 5, 10, 15, 25, 40):
        for hour, at_work in (
            (8, SHARE * done(60 * late_min)),
            (18, SHARE * (1 - leaving.cdf(60 * late_min))),
        ):
            place_m = movement.positions_m(DAY_S * day + HOUR_S * hour + 60 * late_min)
            there = np.hypot(*(place_m - WORK_M).T) < 1e-6
            error = math.sqrt(max(at_work * (1 - at_work), 1 / PEOPLE) / PEOPLE)
            assert abs(there.mean() - at_work) < STANDARD_ERRORS * error, (hour, late_min)


def test_along_a_grid_of_streets_the_way_is_the_sum_of_both_distances() -> None:
    """Paths between crossings are |dx| + |dy| long: no trip ends 1 mm earlier, and all trips end 1 mm later."""
    block_m, blocks = 100.0, 8
    side_m = block_m * blocks
    at_m = block_m * np.arange(blocks + 1)
    lines = [line for m in at_m for line in ([(m, 0.0), (m, side_m)], [(0.0, m), (side_m, m)])]
    places = Places()
    streets = StreetSettings.model_validate({"lines_m": lines}).read(places)
    homes_m = block_m * np.random.default_rng(SEED).integers(0, blocks + 1, (200, 2)).astype(float)
    work_m = np.array([500.0, 300.0])
    speed_m_s = 1.25
    movement = start(
        homes_m,
        Places(streets=streets),
        speed_min_m_s=speed_m_s,
        speed_max_m_s=speed_m_s,
        addresses={"work": tuple(work_m)},
        plan=[{"leave": "8:00", "to": "work"}, {"leave": "17:00", "to": "home"}],
    )
    way_m = np.abs(homes_m - work_m).sum(axis=1)
    walks = way_m > 0
    for person in np.flatnonzero(walks)[:40]:
        arrives_s = 8 * HOUR_S + way_m[person] / speed_m_s
        for off_m in (-1e-3, 1e-3):
            place_m = movement.positions_m(arrives_s + off_m / speed_m_s)[person]
            missing_m = np.abs(place_m - work_m).sum()
            assert missing_m == pytest.approx(max(-off_m, 0.0), abs=1e-6)
