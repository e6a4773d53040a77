"""Session policies: exactly when a session ends."""

import pytest
from pydantic import ValidationError

from edgefl.engine.sessions import SessionState
from edgefl.engine.sessions.membership import Membership
from edgefl.engine.sessions.schedule import Schedule

TEN = frozenset(range(10))


def test_schedule_ends_after_its_rounds() -> None:
    policy = Schedule(count=2, rounds=3)
    assert [policy.reason_to_end(SessionState(t, TEN, TEN)) for t in (1, 2, 3)] == [None, None, "schedule"]
    assert policy.longest == 3


def test_membership_counts_departures_and_arrivals() -> None:
    policy = Membership(count=2, changed_share=0.3, min_rounds=2, max_rounds=9)
    two_changed = TEN - {0} | {10}
    three_changed = two_changed | {11}
    assert policy.reason_to_end(SessionState(2, TEN, two_changed)) is None
    assert policy.reason_to_end(SessionState(2, TEN, three_changed)) == "membership"
    assert policy.reason_to_end(SessionState(1, TEN, three_changed)) is None, "before min_rounds"
    assert policy.reason_to_end(SessionState(9, TEN, TEN)) == "max_rounds"
    assert policy.longest == 9


def test_membership_wants_ordered_bounds() -> None:
    with pytest.raises(ValidationError, match="min_rounds must not exceed max_rounds"):
        Membership(count=1, min_rounds=5, max_rounds=4)
