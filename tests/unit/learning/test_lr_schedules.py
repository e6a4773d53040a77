"""Compare learning rate schedules with formulas and with PyTorch's schedules."""

import math
from typing import Any

import pytest
import torch
from torch.optim import SGD, lr_scheduler

from edgefl.config import registry
from edgefl.contract import Now, SessionStart, Staleness
from tests.tools.constants import made
from tests.unit.learning.digits_cell import learner

T = 20


def rates(name: str, *, power: float = 1.0, floor: float = 0.0, **given: float) -> list[float]:
    """Return the rates, relative to lr, in rounds 1, 2, ... of a session of T rounds after a session of 5 rounds."""
    schedule = made(registry.get("lr_schedules", name), **given)
    return [
        schedule.share(power, floor, round_=t, progress=(t - 1) / T, of_run=5 + t) for t in range(1, T + 1)
    ]


@pytest.mark.parametrize(
    ("name", "ours", "make", "theirs"),
    [
        ("polynomial", {"power": 2.0}, lr_scheduler.PolynomialLR, {"total_iters": T, "power": 2.0}),
        ("cosine", {"floor": 0.2}, lr_scheduler.CosineAnnealingLR, {"T_max": T, "eta_min": 0.2}),
        ("step", {"every": 6, "factor": 0.5}, lr_scheduler.StepLR, {"step_size": 6, "gamma": 0.5}),
    ],
)
def test_shapes_are_pytorchs(name: str, ours: dict[str, float], make: Any, theirs: dict[str, float]) -> None:
    optimizer = SGD([torch.zeros(1)], lr=1.0)
    scheduler, found = make(optimizer, **theirs), []
    for _ in range(T):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates(name, **ours) == pytest.approx(found)


def test_a_warm_up_grows_to_the_rate_that_would_have_been() -> None:
    """In three rounds of warm-up, the rates are 1/4, 1/2 and 3/4 of the rates without warm-up."""
    assert rates("constant") == [1.0] * T
    assert rates("constant", warm_up=3)[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    cold = rates("cosine")
    assert rates("cosine", warm_up=3) == pytest.approx([cold[0] / 4, cold[1] / 2, cold[2] * 3 / 4, *cold[3:]])


def test_over_the_run_rounds_count_through_sessions_and_it_ends_there() -> None:
    """A schedule over 10 rounds of the run is half over in the session's first round, which is the run's sixth."""
    found = rates("cosine", floor=0.1, rounds=10)
    assert found[0] == pytest.approx(0.1 + 0.9 * 0.5)
    assert found[1] == pytest.approx(0.1 + 0.9 * (1 + math.cos(math.pi * 0.6)) / 2)
    assert found[5:] == pytest.approx([0.1] * (T - 5))
    # the rate halves after rounds 6, 12, 18, 24 of the run; the session has rounds 6 to 25
    steps = rates("step", every=6, factor=0.5, rounds=100)
    assert steps == [1.0] + [0.5] * 6 + [0.25] * 6 + [0.125] * 6 + [0.0625]


def test_steps_count_models_if_rounds_overlap() -> None:
    """In each session the rate falls once after two models, however many dispatches there are."""
    one = learner(local={"lr": 0.5, "lr_schedule": {"name": "step", "every": 2}, "lr_floor": 0.2})
    low = 0.5 * (0.2 + 0.8 * 0.1)
    for session in (1, 2):
        stages = one.session(SessionStart(session, (0, 1, 2), 9, overlapping=Staleness()))
        stage = next(stages)
        # each model is made from the update of device 0
        for dispatch, (device, models) in enumerate([(0, 0), (1, 0), (2, 0), (0, 1), (0, 2)], start=1):
            stage.train([device], dispatch, Now(models=models))
            expected = low if models == 2 else 0.5
            assert one.federation.model.waiting_round([device]).lr == pytest.approx(expected)
            if dispatch > 2:
                stage.aggregate([0])
        next(stages, None)
