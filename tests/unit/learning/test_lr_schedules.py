"""Learning rate schedules, against formulas and PyTorch's own."""

import math

import pytest
import torch
from torch.optim import SGD, lr_scheduler

from edgefl.config import registry
from edgefl.learning.lr_schedules import LrSchedule
from tests.tools.constants import made

T = 20


def rates(name: str, *, power: float = 1.0, floor: float = 0.0, **given: float) -> list[float]:
    """Return the share of lr in rounds 1, 2, ... of a session of T rounds that follows one of 5."""
    schedule = made(registry.get("lr_schedules", name), **given)
    assert isinstance(schedule, LrSchedule)
    return [
        schedule.share(power, floor, round_=t, progress=(t - 1) / T, of_run=5 + t) for t in range(1, T + 1)
    ]


def pytorchs(make: type[lr_scheduler.LRScheduler], **given: float) -> list[float]:
    optimizer = SGD([torch.zeros(1)], lr=1.0)
    scheduler, found = make(optimizer, **given), []  # type: ignore[arg-type]
    for _ in range(T):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def test_shapes_are_pytorchs() -> None:
    assert rates("polynomial", power=2.0) == pytest.approx(
        pytorchs(lr_scheduler.PolynomialLR, total_iters=T, power=2.0)
    )
    assert rates("cosine", floor=0.2) == pytest.approx(
        pytorchs(lr_scheduler.CosineAnnealingLR, T_max=T, eta_min=0.2)
    )
    assert rates("step", every=6, factor=0.5) == pytest.approx(
        pytorchs(lr_scheduler.StepLR, step_size=6, gamma=0.5)
    )
    assert rates("constant") == [1.0] * T


def test_a_warm_up_grows_to_the_rate_that_would_have_been() -> None:
    """Three rounds: a quarter, half and three quarters of it, and all of it in the fourth."""
    assert rates("constant", warm_up=3)[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    cold = rates("cosine")
    assert rates("cosine", warm_up=3) == pytest.approx([cold[0] / 4, cold[1] / 2, cold[2] * 3 / 4, *cold[3:]])


def test_over_the_run_rounds_count_through_sessions_and_it_ends_there() -> None:
    """The session's first round is the sixth: progress 5 / 10, and from the run's eleventh round on it is over."""
    found = rates("cosine", floor=0.1, rounds=10)
    assert found[0] == pytest.approx(0.1 + 0.9 * 0.5)
    assert found[1] == pytest.approx(0.1 + 0.9 * (1 + math.cos(math.pi * 0.6)) / 2)
    assert found[5:] == pytest.approx([0.1] * (T - 5))
    # steps after the run's rounds 6, 12, 18 and 24; the session's are 6 to 25
    steps = rates("step", every=6, factor=0.5, rounds=100)
    assert steps == [1.0] + [0.5] * 6 + [0.25] * 6 + [0.125] * 6 + [0.0625]
