"""What devices minimise, and by which score models are judged: the task on which settings and data agree."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edgefl.config import registry
from edgefl.errors import EdgeflError, about
from edgefl.learning.datasets import Data
from edgefl.learning.settings import LearningSettings
from edgefl.learning.tasks import Task
from edgefl.learning.tasks.classification import Classification

if TYPE_CHECKING:
    from torch import Tensor

CLASSIFICATION = Classification()
OF_CLASSES = ("top5", "macro_f1", "auc", "perplexity")  # metrics


@dataclass(frozen=True)
class Objective:
    """What devices minimise: their task's loss, of classes perhaps with smoothed labels and weights.

    smoothing: share e of each label that is spread over all C classes: (1 - e) onehot + e / C.
    class_weights: of each class, by which its part of a sample's loss is multiplied; none: 1. The mean over a batch
        is over samples, not over their weights.

    Source: as `torch.nn.functional.cross_entropy`, sample by sample.
    """

    smoothing: float = 0.0
    class_weights: tuple[float, ...] = ()
    task: Task = field(default=CLASSIFICATION)

    @property
    def plain(self) -> bool:
        """Whether it is the cross-entropy alone, whose gradients models may write out."""
        return _of_cross_entropy(self.task) and not self.smoothing and not self.class_weights

    def losses(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Compute the loss [B] of samples with outputs [B, C] and targets [B, ...]."""
        if not self.smoothing and not self.class_weights:
            return self.task.losses(outputs, y)
        from torch.nn import functional

        weights = outputs.new_tensor(self.class_weights) if self.class_weights else None
        return functional.cross_entropy(
            outputs, y, weight=weights, label_smoothing=self.smoothing, reduction="none"
        )

    @classmethod
    def of(cls, settings: LearningSettings, task: Task, classes: int) -> "Objective":
        """Return what devices minimise.

        Raises:
            EdgeflError: there are not as many weights as classes.
        """
        weights = settings.class_weights or ()
        if weights and len(weights) != classes:
            raise EdgeflError(
                f"has {len(weights)} weights, and the data set {classes} classes: give one of each, in the order of"
                " the labels",
                ("learning", "class_weights"),
            )
        return cls(settings.label_smoothing, tuple(weights), task)


def _of_cross_entropy(task: Task) -> bool:
    """Return whether a task's loss is the cross-entropy as it stands."""
    return isinstance(task, Classification) and task.is_cross_entropy()


def task_of(settings: LearningSettings, data: Data) -> Task:
    """Return the task of a run, fitted to its data: the settings' if they name one, else the data set's.

    Raises:
        EdgeflError: data, task and settings do not go together.
    """
    task = settings.learned
    with about("learning", "dataset" if settings.task is None else "task"):
        task.check(data)
    _refuse(settings, task)
    return task.fitted(data)


def _refuse(settings: LearningSettings, task: Task) -> None:
    """Refuse what is made for classes where the task knows none."""
    name = registry.name_of("tasks", task)
    if not _of_cross_entropy(task):
        for key in ("label_smoothing", "class_weights"):
            if getattr(settings, key):
                raise EdgeflError(
                    f"{key} changes the cross-entropy, and the task {name} has another loss: leave it out",
                    ("learning", key),
                )
    if task.of_classes:
        return
    made_for_classes = {
        "algorithm": settings.algorithm.of_classes and registry.name_of("algorithms", settings.algorithm),
        "warm_start": settings.warm_start.of_classes and registry.name_of("warm_starts", settings.warm_start),
        "drift": settings.drift and settings.drift.of_classes and registry.name_of("drifts", settings.drift),
        "metrics": ", ".join(one for one in settings.metrics if one in OF_CLASSES),
    }
    remedies = {
        "algorithm": "choose one that takes any loss, such as fedavg, fedprox or scaffold",
        "warm_start": "choose previous, average or similarity",
        "drift": "choose noise or rotation, which change inputs",
    }
    for key, what in made_for_classes.items():
        if what:
            raise EdgeflError(
                f"{what} is made for classes, and the task is {name}: {remedies.get(key, 'leave it out')}",
                ("learning", key),
            )
