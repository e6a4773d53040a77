"""Determine a run's task, which defines the devices' loss and the models' score, from settings and data."""

from edgefl.config import registry
from edgefl.errors import EdgeflError, about
from edgefl.learning.datasets import Data
from edgefl.learning.settings import LearningSettings
from edgefl.learning.tasks import Task
from edgefl.learning.tasks.classification import Classification

CLASSIFICATION = Classification()
OF_CLASSES = ("top5", "macro_f1", "auc", "perplexity")  # metrics that need classes


def of_cross_entropy(task: Task) -> bool:
    """Return whether a task's loss is the plain cross-entropy."""
    return isinstance(task, Classification) and task.is_cross_entropy()


def task_of(settings: LearningSettings, data: Data) -> Task:
    """Return the task that the settings name, or by default the data set's task, fitted to the data.

    Raises:
        EdgeflError: data, task and settings do not match.
    """
    task = settings.learned
    _refuse_unused(task)
    with about("learning", "dataset" if settings.task is None else "task"):
        task.check(data)
    _refuse(settings, task)
    return task.fitted(data)


def _refuse_unused(task: Task) -> None:
    """Refuse a task with an own mean or sum, which would not agree with the samples' values that edgefl uses."""
    for name, known, used in (
        ("loss", (Task.loss, Classification.loss), "losses"),
        ("total", (Task.total,), "scores"),
    ):
        if getattr(type(task), name) not in known:
            raise EdgeflError(
                f"{registry.name_of('tasks', task)} defines {name}(), but a run computes it from {used}():"
                f" define {used}() instead",
                ("learning", "task"),
            )


def _refuse(settings: LearningSettings, task: Task) -> None:
    """Refuse settings that need classes if the task has no classes."""
    name = registry.name_of("tasks", task)
    if task.of_classes:
        return
    made_for_classes = {
        "algorithm": settings.algorithm.of_classes and registry.name_of("algorithms", settings.algorithm),
        "warm_start": settings.warm_start.of_classes and registry.name_of("warm_starts", settings.warm_start),
        "drift": settings.drift and settings.drift.of_classes and registry.name_of("drifts", settings.drift),
        "evaluation.metrics": ", ".join(one for one in settings.evaluation.metrics if one in OF_CLASSES),
    }
    remedies = {
        "algorithm": "choose an algorithm that works with any loss, such as fedavg, fedprox or scaffold",
        "warm_start": "choose previous, average or similarity",
        "drift": "choose noise or rotation, which change inputs",
    }
    for key, what in made_for_classes.items():
        if what:
            raise EdgeflError(
                f"{what} needs classes, but the task is {name}: {remedies.get(key, 'leave it out')}",
                ("learning", *key.split(".")),
            )
