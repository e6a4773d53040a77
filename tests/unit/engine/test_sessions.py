"""Session policies: exactly when a session ends."""

import pytest
from pydantic import ValidationError

from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.engine.sessions.adaptive import Adaptive
from edgefl.engine.sessions.membership import Membership
from edgefl.engine.sessions.schedule import Schedule
from edgefl.testing import underived

TEN = frozenset(range(10))


ONE_GONE = TEN - {0}
# policy, states (rounds, members now, losses), and the answers by hand
ANSWERS: list[tuple[SessionPolicy, list[SessionState], list[str | None]]] = [
    (
        Schedule(count=2, rounds=2),
        [SessionState(1, TEN, ONE_GONE), SessionState(2, TEN, TEN)],
        [None, "schedule"],
    ),
    (
        Membership(count=2, changed_share=0.1, min_rounds=2, max_rounds=3),
        [SessionState(1, TEN, ONE_GONE), SessionState(2, TEN, ONE_GONE), SessionState(3, TEN, TEN)],
        [None, "membership", "max_rounds"],  # 1 of 10 has changed
    ),
    (
        Membership(count=2, changed_share=0.1, min_rounds=2, max_rounds=4),
        # two rounds have changed the model from the third on; a session without any ends, too
        [
            SessionState(2, TEN, ONE_GONE, unchanged=1),
            SessionState(3, TEN, ONE_GONE, unchanged=1),
            SessionState(4, TEN, ONE_GONE, unchanged=4),
        ],
        [None, "membership", "max_rounds"],
    ),
    (
        Adaptive(count=2, slack=0.5, threshold=0.75, min_rounds=1, max_rounds=3),
        # relative to the lowest, 2: S = 4/2 - 1 - 0.5 = 0.5, then 0.5 + 0.5
        [
            SessionState(2, TEN, TEN, (2.0, 4.0)),
            SessionState(3, TEN, TEN, (2.0, 4.0, 4.0)),
            SessionState(3, TEN, TEN, (2.0, 2.0, 2.0)),
        ],
        [None, "adaptive", "max_rounds"],
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
