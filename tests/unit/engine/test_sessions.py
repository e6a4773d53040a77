"""Test the exact time or round at which each session policy ends a session."""

from typing import Any

import pytest

from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.engine.sessions.adaptive import Adaptive
from edgefl.engine.sessions.daily import Daily
from edgefl.engine.sessions.early_stopping import EarlyStopping
from edgefl.engine.sessions.interval import FixedInterval
from edgefl.engine.sessions.membership import Membership
from edgefl.engine.sessions.schedule import Schedule
from tests.tools.derived import underived

TEN = frozenset(range(10))
ONE_GONE = TEN - {0}
SCORES = (0.2, 0.5, 0.5, 0.4, 0.7, 0.3, 0.7)


def membership(most: int) -> Membership:
    return Membership(count=2, changed_share=0.1, min_rounds=2, max_rounds=most)


def at(rounds: int, now: frozenset[int] = TEN, *losses: float, **more: Any) -> SessionState:
    return SessionState(rounds, TEN, now, losses, **more)


ENDS = [None, "membership", "max_rounds"]
# policy, states (rounds, present members, losses), and the expected answers
ANSWERS: list[tuple[SessionPolicy, list[SessionState], list[str | None]]] = [
    (Schedule(count=2, rounds=2), [at(1, ONE_GONE), at(2)], [None, "schedule"]),
    (  # 2 of 10 devices leave or arrive, and then 3 of 10
        Membership(count=2, changed_share=0.3, min_rounds=2, max_rounds=9),
        [at(2, TEN - {0} | {10}), at(2, TEN - {0} | {10, 11}), at(1, TEN - {0} | {10, 11}), at(9)],
        [None, "membership", None, "max_rounds"],
    ),
    (membership(3), [at(1, ONE_GONE), at(2, ONE_GONE), at(3)], ENDS),  # 1 of 10 members has changed
    # after three rounds, two have changed the model; a session in which no round changes the model ends, too
    (
        membership(4),
        [at(rounds, ONE_GONE, unchanged=same) for rounds, same in ((2, 1), (3, 1), (4, 4))],
        ENDS,
    ),
    (
        Adaptive(count=2, slack=0.5, threshold=0.75, min_rounds=1, max_rounds=3),
        # losses are relative to the lowest, 2: S = 4/2 - 1 - 0.5 = 0.5, then 0.5 + 0.5
        [at(2, TEN, 2.0, 4.0), at(3, TEN, 2.0, 4.0, 4.0), at(3, TEN, 2.0, 2.0, 2.0)],
        [None, "adaptive", "max_rounds"],
    ),
    (
        EarlyStopping(count=1, patience=2, min_rounds=1, max_rounds=9),
        # 0.5 is the best score; an equal score is not a rise; 0.7 is a rise, after which the count restarts
        [at(rounds, validated=SCORES[:rounds]) for rounds in (1, 3, 4, 5, 7, 9)],
        [None, None, "early_stopping", None, "early_stopping", "early_stopping"],
    ),
    (
        FixedInterval(length_s=2.5),
        [at(9, time_s=time_s, start_s=1.0) for time_s in (3.4, 3.5, 4.0)],
        [None, "interval", "interval"],
    ),
    (
        Daily(at_hours=(8,), begin_hour=7),
        [at(9, time_s=time_s, start_s=10.0) for time_s in (3599.0, 3600.0, 3601.0)],
        [None, "daily", "daily"],
    ),
]


def test_every_policy_has_its_answers() -> None:
    missing = underived("sessions", (policy for policy, _, _ in ANSWERS))
    assert not missing, f"derive by hand when these end, in ANSWERS of {__file__}: {missing}"


@pytest.mark.parametrize(("policy", "states", "answers"), ANSWERS)
def test_answers_by_hand(
    policy: SessionPolicy, states: list[SessionState], answers: list[str | None]
) -> None:
    assert [policy.reason_to_end(state) for state in states] == answers


def test_an_interval_lasts_its_time_and_says_how_much_is_over() -> None:
    policy = FixedInterval(length_s=40.0)
    states = [SessionState(1, TEN, TEN, time_s=time_s, start_s=100.0) for time_s in (100.0, 130.0, 140.0)]
    assert [policy.progress(state) for state in states[:2]] == [0.0, 0.75]
    late = policy.progress(states[2])
    assert 1 - 1e-15 < late < 1, "the only training round follows long probes"
    assert policy.longest is None


def test_a_day_has_its_hours_from_the_runs_first_hour_on() -> None:
    """A day has 240 s, 10 s an hour, and the run begins at 7:30: 8:00 is at 5 s and 17:00 at 95 s."""
    policy = Daily(at_hours=(8, 17), begin_hour=7.5, day_s=240.0)
    assert [policy.until_s(start_s) for start_s in (0.0, 5.0, 94.9, 95.0)] == [5.0, 95.0, 95.0, 245.0]
    assert policy.until_s(245.0 - 1e-8) == 335.0, "up to rounding, it begins at the hour"
    assert policy.progress(SessionState(3, TEN, TEN, time_s=50.0, start_s=5.0)) == 0.5
    evening = Daily(at_hours=(0, 6), begin_hour=23, day_s=240.0)  # midnight is at 10 s, and 6:00 at 70 s
    assert [evening.until_s(start_s) for start_s in (0.0, 10.0, 70.0, 239.0)] == [10.0, 70.0, 250.0, 250.0]


def test_a_round_on_the_grid_lies_in_the_session_that_begins_at_its_minute() -> None:
    """Every day, 7:50 is exactly 4,200 s after 6:40, though neither hour is a binary fraction."""
    minutes = range(24 * 60)
    for begin in ("6:40", "7:01"):
        hour, minute = map(int, begin.split(":"))
        for at in minutes:
            policy = Daily.model_validate({"at_hours": [f"{at // 60}:{at % 60:02d}"], "begin_hour": begin})
            expected = 60.0 * ((at - 60 * hour - minute) % (24 * 60))
            assert policy.until_s(-1.0) == expected
            assert policy.until_s(expected) == expected + 86_400


def test_progress_by_rounds_gives_the_learning_rates_of_the_rounds_number() -> None:
    """At progress (t - 1) / T, the learning rate is lr (1 - (t - 1) / T)^p to the last bit."""
    policy = Schedule(count=1, rounds=7)
    assert (policy.longest, membership(9).longest) == (7, 9)
    told = [policy.progress(SessionState(t - 1, TEN, TEN)) for t in range(1, 8)]
    assert told == [(t - 1) / 7 for t in range(1, 8)]
