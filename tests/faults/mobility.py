"""Faults of where devices are, and of which cell serves them while they move."""

from tests.faults import Fault
from tests.faults.injecting import constant, edited

UNIT, THEORY = "tests/unit/mobility/", "tests/theory/test_mobility_"

FAULTS = (
    Fault(
        "mobility.waypoint_uniform",
        "waypoints are uniform in distance, not in area",
        "random waypoint, Bettstetter et al.",
        f"{THEORY}random_waypoint.py::test_a_uniform_drop_approaches_the_law",
        edited(
            "edgefl.mobility.random_waypoint:_Walks.next_leg",
            "self._draws.uniform(ids, 2 * number, 2)",
            "self._draws.uniform(ids, 2 * number, 2) ** [[2.0], [1.0]]",
        ),
    ),
    Fault(
        "mobility.steady_state_legs",
        "legs under way at time 0 are drawn uniformly, not by their length",
        "Palm calculus, Le Boudec and Vojnovic",
        f"{THEORY}random_waypoint.py::test_legs_under_way_in_steady_state",
        edited(
            "edgefl.mobility.random_waypoint:_Walks._long_leg",
            "kept = 2.0 * self._radius_m * uniform[4] <",
            "kept = 0.0 * self._radius_m * uniform[4] <",
        ),
    ),
    Fault(
        "mobility.steady_state_rests",
        "as many rest at time 0 as if a pause were half as long",
        "Palm calculus: pause over pause and mean leg",
        f"{THEORY}random_waypoint.py::test_rests_in_steady_state",
        edited(
            "edgefl.mobility.random_waypoint:_Walks._amid_a_leg",
            "(self._pause_s + walk_s) < self._pause_s",
            "(self._pause_s + walk_s) < 0.5 * self._pause_s",
        ),
    ),
    Fault(
        "mobility.mean_leg",
        "the mean leg is the radius in place of 128 / (45 pi) of it",
        "mean distance of two points on a disc",
        f"{THEORY}random_waypoint.py::test_rests_in_steady_state",
        constant("edgefl.mobility.random_waypoint:MEAN_LEG", 1.0),
    ),
    Fault(
        "mobility.rest_that_is_left",
        "a rest under way at time 0 lasts as long as a whole one",
        "Palm calculus: the rest that is left is uniform",
        f"{THEORY}random_waypoint.py::test_rests_in_steady_state",
        edited(
            "edgefl.mobility.random_waypoint:_Walks._amid_a_leg",
            "np.where(resting, uniform[4], 1.0)",
            "np.where(resting, 1.0, 1.0)",
        ),
    ),
    Fault(
        "mobility.mirror",
        "a device turns back at the border the way that it came",
        "reflection: the angle out is the angle in",
        f"{UNIT}test_models.py::test_reflection_in_a_round_mirror",
        edited(
            "edgefl.mobility._legs:mirrored",
            "return 2.0 * np.arctan2(here_m[1], here_m[0]) + math.pi - heading",
            "return math.pi + heading",
        ),
    ),
    Fault(
        "mobility.trip_time",
        "trips of random direction last 10 % longer in the mean",
        "exponential with mean travel_s",
        f"{THEORY}stationary.py::test_random_direction_changes_with_the_stated_mean_time",
        edited(
            "edgefl.mobility.random_direction:_StraightTrips._set_off",
            "-self._model.travel_s",
            "-1.1 * self._model.travel_s",
        ),
    ),
    Fault(
        "mobility.quarter_headings",
        "new headings lie within half a turn",
        "headings uniform over a turn",
        f"{THEORY}stationary.py::test_random_direction_is_uniform_in_area_and_direction",
        edited(
            "edgefl.mobility.random_direction:_StraightTrips._set_off",
            "2.0 * math.pi * turn",
            "1.0 * math.pi * turn",
        ),
    ),
    Fault(
        "mobility.gauss_markov_innovation",
        "a step's innovation has the weight 1 - alpha in place of sqrt(1 - alpha^2)",
        "Liang and Haas, 1999: stationary deviation",
        f"{THEORY}stationary.py::test_gauss_markov_speed",
        edited("edgefl.mobility.gauss_markov:_Steps._change", "math.sqrt(1.0 - alpha**2)", "(1.0 - alpha)"),
    ),
    Fault(
        "mobility.gauss_markov_memory",
        "the memory from step to step is alpha^2",
        "Liang and Haas, 1999: autocorrelation alpha^n",
        f"{THEORY}stationary.py::test_gauss_markov_heading",
        edited(
            "edgefl.mobility.gauss_markov:_Steps._change",
            "alpha = self._model.alpha",
            "alpha = self._model.alpha**2",
        ),
    ),
    Fault(
        "mobility.manhattan_left",
        "left turns go right",
        "probabilities of the turns",
        f"{THEORY}stationary.py::test_manhattan_turns",
        edited(
            "edgefl.mobility.manhattan:_Drives.next_leg",
            "np.where(choice < self._left, 1, np.where(choice < self._right_or_left, -1, 0))",
            "np.where(choice < self._left, -1, np.where(choice < self._right_or_left, 1, 0))",
        ),
    ),
    Fault(
        "mobility.manhattan_edge",
        "at the edge of the area the turn of a junction is taken",
        "streets end at the edge",
        f"{UNIT}test_models.py::test_manhattan_devices_are_always_on_a_street_of_the_area",
        edited(
            "edgefl.mobility.manhattan:_Drives.next_leg",
            "np.where(at_edge, 2, turn)",
            "np.where(at_edge, 2 + turn, turn)",
        ),
    ),
    Fault(
        "mobility.headway",
        "vehicles of a lane follow in half the headway",
        "headway_s",
        f"{UNIT}test_models.py::test_highway_headways_are_constant",
        edited(
            "edgefl.mobility.highway:Highway._offsets_s",
            "- place * self.headway_s) %",
            "- place * self.headway_s / 2) %",
        ),
    ),
    Fault(
        "mobility.highway_away",
        "vehicles come back at once",
        "away_s between leaving and re-entering",
        f"{UNIT}test_models.py::test_highway_lanes_and_loop",
        edited(
            "edgefl.mobility.highway:Highway.start",
            "road_m / speeds_m_s + self.away_s",
            "road_m / speeds_m_s + 0.0 * self.away_s",
        ),
    ),
    Fault(
        "mobility.pause_left_out",
        "devices do not rest at their waypoints",
        "pause_s",
        f"{UNIT}test_models.py::test_pauses_hold_a_device_at_its_waypoint",
        edited(
            "edgefl.mobility._legs:Legs._set_out",
            "self._until_s[ids] = now_s + walk_s + rest_s",
            "self._until_s[ids] = now_s + walk_s",
        ),
    ),
    Fault(
        "mobility.normal_size",
        "normal numbers have 2 % too small a deviation",
        "Box and Muller, 1958",
        f"{UNIT}test_draws.py::test_points_on_a_disc_and_normal_numbers",
        edited("edgefl.mobility._draws:normal", "-2.0 *", "-1.92 *"),
    ),
    Fault(
        "mobility.splitmix",
        "the generator leaves its last shift out",
        "Steele, Lea and Flood, 2014",
        f"{UNIT}test_draws.py::test_sequence_of_a_device_is_splitmix64",
        edited(
            "edgefl.mobility._draws:UniformDraws.uniform",
            "state ^= state >> _SHIFTS[-1]",
            "state ^= state >> _SHIFTS[0]",
        ),
    ),
    Fault(
        "mobility.habit",
        "a person's habit weighs as much as the day, whatever `habit` says",
        "spread by habit and day",
        f"{UNIT}test_itinerary.py::test_habits_are_the_persons_own",
        edited(
            "edgefl.mobility.itinerary:_Leaves.after",
            "self._habit * self._usual[which, ids] + (1 - self._habit) * today",
            "0.5 * self._usual[which, ids] + 0.5 * today",
        ),
    ),
    Fault(
        "mobility.begin_hour",
        "the hour at time 0 is taken twice",
        "begin_hour",
        f"{UNIT}test_itinerary.py::test_time_0_may_be_any_hour_of_the_same_days",
        edited("edgefl.mobility.itinerary:_Leaves.after", "- self._begin_hour", "- 2 * self._begin_hour"),
    ),
    Fault(
        "mobility.weekday",
        "days begin a weekday late",
        "begin_day",
        f"{UNIT}test_itinerary.py::test_days_follow_the_day_at_time_0",
        edited(
            "edgefl.mobility.itinerary:_Leaves.after",
            "(self._weekday + day) % len(DAYS)",
            "(self._weekday + day + 1) % len(DAYS)",
        ),
    ),
    Fault(
        "mobility.trip_share",
        "the share that goes on a trip is squared",
        "share",
        f"{UNIT}test_itinerary.py::test_the_same_share_goes_on_each_weekday",
        edited("edgefl.mobility.itinerary:Itinerary.follows", "< trip.share", "< trip.share**2"),
    ),
    Fault(
        "mobility.calendar_hours",
        "a spell of the day begins an hour late",
        "from_hour",
        f"{UNIT}test_area_models.py::test_a_rhythm_of_every_day",
        edited(
            "edgefl.mobility._calendar:Calendar.spells",
            "self.hours(time_s) % self.period_h",
            "(self.hours(time_s) - 1.0) % self.period_h",
        ),
    ),
    Fault(
        "mobility.trace_steps",
        "a trace's devices stand at a sample until the next one",
        "straight lines between samples",
        f"{UNIT}test_trace.py::test_straight_lines_between_samples_and_absence_around_them",
        edited(
            "edgefl.mobility.trace:_Recorded.positions_m",
            "passed_s = time_s - self._start_s",
            "passed_s = 0.0 * (time_s - self._start_s)",
        ),
    ),
)
