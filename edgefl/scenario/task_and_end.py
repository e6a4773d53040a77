"""Check that a run has a task, an end, and only one clock."""

from collections.abc import Collection, Mapping
from typing import Any

from edgefl.engine.class_settings import ClassSettings
from edgefl.engine.settings import DeviceSettings, WorkloadSettings
from edgefl.errors import EdgeflError
from edgefl.learning.settings import LearningSettings
from edgefl.scenario.day import named_days


def check(
    learning: LearningSettings | None,
    workload: WorkloadSettings | None,
    sessions: Any,
    duration_s: float | None,
    devices: DeviceSettings,
    *,
    several: bool,
) -> None:
    """Raise if a run has no task or two, no end, or two clocks.

    Args:
        sessions: a policy.
        several: whether there are several federations, which may have their own tasks and are checked separately.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    both = learning is not None and workload is not None
    if both or (learning is None and workload is None and not several):
        raise EdgeflError(
            "give either learning (train models) or workload (radio and compute only)",
            ("workload" if workload else "learning",),
        )
    if sessions.count is None and duration_s is None:
        raise EdgeflError(
            "the run has no end: give sessions.count, or duration_s at the top level, or both",
            ("sessions",),
        )
    if (
        sessions.asks_validation
        and (learning is None or learning.evaluation.validation is None)
        and not several
    ):
        raise EdgeflError(
            "this policy uses the score on validation samples: give learning.evaluation.validation, such as 0.1",
            ("sessions",),
        )
    days = {where: day for where, day in named_days(sessions, devices).items() if day}
    if len(set(days.values())) > 1:
        told = ", ".join(f"{where} has {day}" for where, day in days.items())
        raise EdgeflError(
            f"two clocks in one run: {told}; use the same begin_hour and day_s everywhere",
            tuple(list(days)[-1].split(".")),
        )


def check_samples(classes: Mapping[str, ClassSettings], trained: Collection[Collection[str] | None]) -> None:
    """Raise if a class of devices that trains nothing has a share of training samples.

    Args:
        trained: for each federation that trains, its classes of devices; None for all classes.

    Raises:
        EdgeflError: names the class and the remedy.
    """
    for name, one in classes.items():
        if one.samples is not None and not any(own is None or name in own for own in trained):
            raise EdgeflError(
                "is a share of training samples, but this run trains nothing on these devices: leave it out",
                ("devices", "classes", name, "samples"),
            )
