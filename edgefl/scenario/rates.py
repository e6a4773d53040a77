"""A learning rate that is certain to be 0 before the run ends: refused when a scenario is read, with the remedy."""

from edgefl.config import registry
from edgefl.engine.sessions import BoundedPolicy, SessionPolicy
from edgefl.engine.sessions.schedule import Schedule
from edgefl.errors import EdgeflError
from edgefl.learning.settings import LearningSettings


def check(learning: LearningSettings | None, sessions: SessionPolicy, duration_s: float | None) -> None:
    """Refuse a schedule that leaves rounds without a learning rate.

    Raises:
        EdgeflError: names the schedule and the remedy.
    """
    # with a duration, the run may end before
    if learning is None or duration_s is not None or sessions.count is None:
        return
    least, count = shortest(sessions), sessions.count
    if not share(learning, least, sessions.longest, of_run=least * count):
        first = next(
            number
            for number in range(1, least * count + 1)
            if not share(learning, (number - 1) % least + 1, sessions.longest, of_run=number)
        )
        raise EdgeflError(
            f"{zero_from(learning, first)}, and the run has {least * count:,} or more: {remedy(learning)}",
            ("learning", "local", "lr_schedule"),
        )


def share(learning: LearningSettings, round_: int, longest: int | None, *, of_run: int) -> float:
    """Return the share of `learning.local.lr` that a round has; without a longest session, that of its first moment.

    Args:
        round_: of its session. longest: rounds of the session at most. of_run: rounds so far, this one counted.
    """
    progress = (round_ - 1) / longest if longest else 0.0
    power, floor = learning.local.lr_power, learning.local.lr_floor
    return learning.local.lr_schedule.share(power, floor, round_=round_, progress=progress, of_run=of_run)


def shortest(sessions: SessionPolicy) -> int:
    """Return the fewest rounds that each session has."""
    if isinstance(sessions, Schedule):
        return sessions.rounds
    return sessions.min_rounds if isinstance(sessions, BoundedPolicy) else 1


def zero_from(learning: LearningSettings, first: int) -> str:
    """Return in words from which round on the rate is 0."""
    name = registry.name_of("lr_schedules", learning.local.lr_schedule)
    return f"by {name} the learning rate is 0 from round {first:,} on: devices spend joules and learn nothing"


def remedy(learning: LearningSettings) -> str:
    """Return what gives each round a rate."""
    longer = "give lr_schedule.rounds the run's length, or leave it out for a decay in each session"
    if learning.local.lr_schedule.rounds is None:
        longer = "let the schedule fall more slowly (step: a factor above 0)"
    return f"{longer}; or set learning.local.lr_floor, such as 0.01"
