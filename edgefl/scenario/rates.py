"""Reject learning rates that are certain to reach 0 before the run ends."""

from edgefl.config import registry
from edgefl.engine.sessions import BoundedPolicy, SessionPolicy
from edgefl.engine.sessions.schedule import Schedule
from edgefl.errors import EdgeflError
from edgefl.learning.settings import LearningSettings


def check(learning: LearningSettings | None, sessions: SessionPolicy, duration_s: float | None) -> None:
    """Check that the learning rate stays above 0 in all rounds of a run, if the number of rounds is known."""
    # a run with a duration may end before the rate reaches 0
    if learning is None or duration_s is not None or sessions.count is None:
        return
    least, count = _shortest(sessions), sessions.count
    if not share(learning, least, sessions.longest, of_run=least * count):
        first = next(
            number
            for number in range(1, least * count + 1)
            if not share(learning, (number - 1) % least + 1, sessions.longest, of_run=number)
        )
        raise EdgeflError(
            f"the run has at least {least * count:,} rounds, but {zero_from(learning, first)}; {remedy(learning)}",
            ("learning", "local", "lr_schedule"),
        )


def share(learning: LearningSettings, round_: int, longest: int | None, *, of_run: int) -> float:
    """Return a round's learning rate as a fraction of `learning.local.lr`; in unlimited sessions, round 1's rate.

    Args:
        round_: number of the round in its session, from 1. longest: maximum number of rounds in a session. of_run:
            number of the round in the run, from 1.
    """
    progress = (round_ - 1) / longest if longest else 0.0
    power, floor = learning.local.lr_power, learning.local.lr_floor
    return learning.local.lr_schedule.share(power, floor, round_=round_, progress=progress, of_run=of_run)


def _shortest(sessions: SessionPolicy) -> int:
    """Return the minimum number of rounds in a session under a session policy."""
    if isinstance(sessions, Schedule):
        return sessions.rounds
    return sessions.min_rounds if isinstance(sessions, BoundedPolicy) else 1


def zero_from(learning: LearningSettings, first: int) -> str:
    """Return a phrase that names the schedule, and the first round in which the learning rate is 0."""
    name = registry.name_of("lr_schedules", learning.local.lr_schedule)
    return f"with {name} the learning rate is 0 from round {first:,} on: devices would spend energy and learn nothing"


def remedy(learning: LearningSettings) -> str:
    """Suggest settings with which the learning rate stays above 0 in every round."""
    longer = "set lr_schedule.rounds to the run's length, or leave this key out to restart the decay in each session"
    if learning.local.lr_schedule.rounds is None:
        longer = "choose a slower decay (step: a factor above 0)"
    return f"{longer}; or set learning.local.lr_floor, such as 0.01"
