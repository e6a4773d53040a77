"""Give each device test data with the distribution and the drift of its training data."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.scores.tester import ModelTester
from edgefl.learning.tensors import in_double
from edgefl.rng import Streams

ROUNDING = 1e-9  # tolerance in samples; 2.9999999999999996 samples are 3


@dataclass(frozen=True)
class Scores:
    """Accuracy, mean loss and number of test samples of K devices, [K] each; scores are NaN without test data."""

    accuracy: np.ndarray
    loss: np.ndarray
    samples: np.ndarray

    @classmethod
    def of(cls, parts: Sequence["Scores"]) -> "Scores":
        """Concatenate the scores of different devices; `parts` may be empty."""
        none = np.zeros(0)
        columns = zip(*((one.accuracy, one.loss, one.samples) for one in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns)) if parts else cls(none, none, none)

    @property
    def known(self) -> np.ndarray:
        """Whether each device has test data, [K]."""
        return np.isfinite(self.accuracy)

    def mean(self) -> tuple[float | None, float | None, float | None]:
        """Return mean accuracy, mean loss and standard deviation of accuracy over devices (FLASH, equations 1, 3).

        Without test data on any device, all three are None.
        """
        accuracy, loss = self.accuracy[self.known], self.loss[self.known]
        if not len(accuracy):
            return None, None, None
        return float(accuracy.mean()), float(loss.mean()), float(accuracy.std())

    def worst_tenth(self) -> float | None:
        """Return the mean accuracy of the worst tenth of the devices; the number of devices is rounded up."""
        accuracy = np.sort(self.accuracy[self.known])
        return float(accuracy[: -(-len(accuracy) // 10)].mean()) if len(accuracy) else None

    def columns(self, suffix: str = "") -> dict[str, tuple[float | None, ...]]:
        """Return the columns accuracy and loss of all devices, with None for a device without test data."""
        return {
            f"{name}{suffix}": tuple(
                value if known else None for value, known in zip(values.tolist(), self.known, strict=True)
            )
            for name, values in (("accuracy", self.accuracy), ("loss", self.loss))
        }

    def by_samples(self) -> float | None:
        """Return the mean accuracy over devices, weighted by their numbers of test samples."""
        known = self.known
        if not known.any():
            return None
        return float(np.average(self.accuracy[known], weights=self.samples[known]))


class DeviceTests:
    """The test samples of all devices, dealt again whenever training samples are dealt again.

    A device with training samples of a single group of the data set (a writer, a role) is tested on the group's test
    samples. Any other device gets test samples with the label mix of its training samples, drawn without replacement;
    counts are rounded up or down at random, so that rare labels are tested as often as they are held. Two devices may
    have the same samples. A device is tested on the concept of its current data.

    Args:
        test, train: the test samples and the training samples.
        count: number of test samples of each device; None: in proportion to the device's training samples.
    """

    def __init__(
        self,
        device_data: DeviceData,
        test: SplitInMemory,
        train: SplitInMemory,
        *,
        count: int | None,
        streams: Streams,
    ) -> None:
        self._device_data = device_data
        self._test, self._train = test, train
        self._count = count
        self._streams = streams
        self._pools = {int(label): np.flatnonzero(test.labels == label) for label in np.unique(test.labels)}
        self._dealt: tuple[int, dict[int, np.ndarray]] = (-1, {})

    def samples(self, device: int) -> np.ndarray:
        """Return the indices of a device's test samples, sorted."""
        key, dealt = self._dealt
        if key != self._device_data.key:
            self._dealt = key, dealt = self._device_data.key, {}
        if device not in dealt:
            dealt[device] = self._deal(device)
        return dealt[device]

    def _deal(self, device: int) -> np.ndarray:
        held = self._device_data.samples(device)
        if not len(held):
            return held
        test, train = self._test, self._train
        if test.groups is not None and train.groups is not None:
            group = train.groups[held[0]]
            if (train.groups[held] == group).all():
                return np.flatnonzero(test.groups == group)
        share = len(test.labels) / len(train.labels)
        count = self._count or max(1, round(share * len(held)))
        labels, held_of = np.unique(train.labels[held], return_counts=True)
        rng = self._streams("device tests", device, self._device_data.key)
        wanted = apportioned(held_of / held_of.sum(), count, rng)
        drawn = [
            rng.permutation(self._pools[label])[:number]
            for label, number in zip(labels.tolist(), wanted.tolist(), strict=True)
            if label in self._pools
        ]
        return np.sort(np.concatenate(drawn)) if drawn else held[:0]


def apportioned(shares: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Divide a count into integers [n] by shares [n] that sum to 1, rounded up or down so that each mean is exact."""
    order, whole = rng.permutation(len(shares)), np.empty(len(shares), np.int64)
    # one offset for all cuts, so that the count between two cuts is their distance rounded without bias
    upto = np.append(np.cumsum(shares[order])[:-1] * count, count)
    offset = ROUNDING + (1 - 2 * ROUNDING) * rng.random()
    whole[order] = np.diff(np.floor(upto + offset), prepend=0.0)
    return whole


def score(tester: ModelTester, models: Tensor, test: SplitInMemory, samples: Sequence[np.ndarray]) -> Scores:
    """Test a model [M + Q], or one per device [K, M + Q], on the samples of each of K devices.

    The losses are those of the task, without the extra terms of local training.
    """
    count = len(samples)
    sizes = np.array([len(part) for part in samples], np.int64)
    accuracy, losses = np.full(count, np.nan), np.full(count, np.nan)
    if models.dim() == 1:
        rows, place = np.unique(np.concatenate([*samples, np.zeros(0, np.int64)]), return_inverse=True)
        hit, loss = _per_sample(tester, models, test, rows)
        ends = np.cumsum(sizes)
        for k, part in enumerate(samples):
            if len(part):
                mine = place[ends[k] - len(part) : ends[k]]
                accuracy[k], losses[k] = hit[mine].mean(), loss[mine].mean()
        return Scores(accuracy, losses, sizes)
    for k, part in enumerate(samples):
        if len(part):
            hit, loss = _per_sample(tester, models[k], test, part)
            accuracy[k], losses[k] = hit.mean(), loss.mean()
    return Scores(accuracy, losses, sizes)


def _per_sample(
    tester: ModelTester, model: Tensor, test: SplitInMemory, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores [n] and losses [n] of samples; in classification the score is 1 if the output is right."""
    task = test.task

    def found(outputs: Tensor, y: Tensor) -> tuple[np.ndarray, np.ndarray]:
        each = task.scores(outputs, y), task.loss(outputs, y, "none")
        return in_double(each[0]).cpu().numpy(), in_double(each[1]).cpu().numpy()

    blocks = tester.run(model, test, torch.from_numpy(rows).to(test.y.device), found)
    scores, losses = zip((np.zeros(0), np.zeros(0)), *blocks, strict=True)
    return np.concatenate(scores), np.concatenate(losses)
