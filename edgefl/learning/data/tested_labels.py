"""Check that the labels of a session occur among the test and validation samples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgefl.errors import EdgeflError, clipped
from edgefl.learning.datasets import Data, Split
from edgefl.learning.settings import EvaluationSettings
from edgefl.learning.tasks import Task

SHOWN = 8  # maximum number of labels in a message
UNLABELLED = "-1"  # usual mark of samples without a label


@dataclass(frozen=True)
class TestedLabels:
    """The labels of samples on which models are tested.

    labels: the samples' labels, or the samples' kinds as the task defines them, [n].
    names: names of the labels, for messages; labels without a name are shown as numbers.
    use: what the samples are used for.
    """

    labels: np.ndarray
    names: Sequence[str] = ()
    use: Literal["test", "validation"] = "test"

    def require(self, held: Sequence[int]) -> None:
        """Check that at least one sample has one of the labels that the devices of a session hold.

        Raises:
            EdgeflError: no sample has one; the error names the labels as the data set does.
        """
        if np.isin(self.labels, held).any():
            return
        key, remedy = "dataset", "give the data set test samples with the training samples' labels"
        if self.use == "validation":
            key, remedy = "evaluation.validation", "set a larger share"
        raise EdgeflError(
            f"no {self.use} sample has one of the labels {self._named(held)} that a session's devices hold;"
            f" {self.use} samples have the labels {self._named(np.unique(self.labels).tolist())}: {remedy}, or the"
            " partition other labels",
            ("learning", *key.split(".")),
        )

    def untested(self, known: np.ndarray) -> str:
        """Return a note on samples that no session tests, since no training sample has their label, or ''.

        Sessions also leave out the labels that their devices do not hold, but on purpose.

        Args:
            known: labels of the training samples, [n].
        """
        out = self.labels[~np.isin(self.labels, known)]
        if not len(out):
            return ""
        return _note(self.use, self._named(np.unique(out).tolist()), len(out), len(self.labels))

    def _named(self, labels: Sequence[int]) -> str:
        """List a few labels as the data set names them."""
        return _some([self.names[label] if label < len(self.names) else str(label) for label in labels])


def doubts(data: Data) -> list[str]:
    """Return notes on test samples that the data set left out, and on samples that seem to have no label."""
    count = sum(data.left_out.values())
    names = _some(list(data.left_out))
    left_out = [_note("test", names, count, count + len(data.test.y))] if count else []
    return [*left_out, *_unlabelled(data)]


def _unlabelled(data: Data) -> Iterator[str]:
    """Yield a note if -1 is a label among labels from 0 up, since many files mark samples without a label by -1."""
    others = set(data.label_names) - {UNLABELLED}
    if UNLABELLED in data.label_names and "0" in others and all(map(str.isdecimal, others)):
        number = data.label_names.index(UNLABELLED)
        count = sum(int((part.y == number).sum()) for part in (data.train, data.test))
        yield (
            f"learning.dataset: samples whose label is -1, a class beside {_some(sorted(others, key=int))}:"
            f" {count:,}; if -1 marks samples without a label, remove these samples"
        )


def _some(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return clipped(", ".join(names[:SHOWN])) + (f" and {more} more" if more > 0 else "")


def _note(use: str, labels: str, out: int, of: int) -> str:
    return (
        f"learning.dataset: {use} samples left out, because no training sample has their labels ({labels}):"
        f" {out:,} of {of:,}; correct these labels, or add training samples that have them"
    )


def tested_labels(
    evaluation: EvaluationSettings, task: Task, data: Data, validation: Split | None
) -> list[TestedLabels]:
    """Return the labels of the samples on which each session is tested by label, one entry per use."""
    names = data.label_names if task.of_classes else ()
    test = TestedLabels(task.kinds(data.test.y), names)
    if evaluation.tested_on == "labels":
        further = [] if validation is None else [TestedLabels(task.kinds(validation.y), names, "validation")]
        return [test, *further]
    by_group = data.test.groups is not None and data.train.groups is not None
    return [] if by_group and not evaluation.metrics else [test]
