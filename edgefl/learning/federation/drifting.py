"""Apply a concept drift to a cell's data by choosing samples for the devices that have drifted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from edgefl.config.answers import must_be_shaped, wrong
from edgefl.errors import EdgeflError, about
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.drifts import Drift, Moment
from edgefl.learning.partitions import PartitionInputs
from edgefl.learning.scores.tester import ModelTester
from edgefl.rng import Streams

# columns of rounds.csv: share of the present devices with the new concept, and the drift's own share
DRIFTED, DRIFT_SHARE = "drifted", "drift_share"


def both_concepts(drift: Drift | None, split: Split, classes: int) -> Split:
    """Append drifted copies of a split's n samples to the split: sample n + i is sample i after the drift.

    If the drift does not change the inputs, they are stored only once.
    """
    if drift is None:
        return split
    with about("learning", "drift"):
        after = drift.change(split, classes)
        if not isinstance(after, Split):
            raise wrong(drift.change, after, "a Split")
        for of, before, now in (("x", split.x, after.x), ("y", split.y, after.y)):
            must_be_shaped(drift.change, now, (before.shape,), f"{of}: an array")
        if after.y.dtype.kind in "iu" and len(after.y) and not 0 <= after.y.min() <= after.y.max() < classes:
            raise wrong(drift.change, after.y, f"y: labels from 0 to {classes - 1}")
    x = split.x if after.x is split.x else np.concatenate([split.x, after.x])
    return Split(x, np.concatenate([split.y, after.y]), split.groups)


@dataclass(frozen=True)
class Drifting:
    """The concept, old or new, of each device in a cell, as a function of round and simulated time.

    Args:
        drift: the drift, or None if data do not change.
        queue: the devices that drift, in the order in which they drift.
        devices: number of devices.
    """

    drift: Drift | None
    queue: np.ndarray
    devices: int

    @classmethod
    def of(
        cls, drift: Drift | None, inputs: PartitionInputs, devices: int, cell: int, streams: Streams
    ) -> "Drifting":
        """Return the drift of a cell's devices, with the order of devices drawn at random.

        Raises:
            EdgeflError: the drift names a cell that does not exist.
        """
        sites = None if inputs.sites_m is None else len(inputs.sites_m)
        cells = None if drift is None else drift.cells
        missing = [one for one in cells or () if sites is not None and not 0 <= one < sites]
        if missing:
            raise EdgeflError(
                f"no site {missing[0]}: number of sites in the layout, counted from 0: {sites}",
                ("learning", "drift", "cells"),
            )
        some = drift is not None and (cells is None or cell in cells)
        return cls(drift, streams("drift").permutation(devices if some else 0), devices)

    @property
    def sees_time(self) -> bool:
        """Whether the devices' samples depend on simulated time."""
        return self.drift is not None and self.drift.sees_time

    def drifted(self, ids: Sequence[int], moment: Moment) -> np.ndarray:
        """Return whether each device's data have the new concept at a moment, bool [ids]."""
        result = np.zeros(self.devices, dtype=bool)
        if self.drift is not None:
            count = int(self.drift.drifted_share(moment) * len(self.queue) + 0.5)
            result[self.queue[:count]] = True
        return result[list(ids)]

    def column(self, ids: Sequence[int], moment: Moment) -> dict[str, float]:
        """Return columns of rounds.csv: the drifted share of these devices, and the drift's; {} without a drift."""
        if self.drift is None:
            return {}
        drifted = float(self.drifted(ids, moment).mean()) if len(ids) else 0.0
        return {DRIFTED: drifted, DRIFT_SHARE: self.drift.drifted_share(moment) if len(self.queue) else 0.0}

    def rows(
        self,
        held: Sequence[np.ndarray],
        split: SplitInMemory,
        ids: Sequence[int],
        moment: Moment,
        concept: bool | None = None,
    ) -> list[np.ndarray]:
        """Return the indices of the samples that these devices hold at the given moment.

        Args:
            held: indices of each device's samples before any drift.
            concept: True: all devices hold samples after the drift; False: samples before the drift; None: samples of
                the concept that each device has at the moment.
        """
        now = self.drifted(ids, moment) if concept is None else np.full(len(ids), concept)
        return [samples + split.count * changed for samples, changed in zip(held, now, strict=True)]

    def test(
        self,
        tester: ModelTester,
        models: Tensor,
        test: SplitInMemory,
        labels: Sequence[int],
        ids: Sequence[int],
        moment: Moment,
    ) -> tuple[float, float]:
        """Test a model [M + Q], or one per device [K, M + Q]; return accuracy and mean loss over the devices.

        Each device is tested on the test samples of these labels in its own concept.
        """
        drifted = self.drifted(ids, moment)
        if models.dim() > 1:
            distinct, which = torch.unique(models, dim=0, return_inverse=True)
            of = which.cpu().numpy()
            shares = [(float((of == i).mean()), float(drifted[of == i].mean())) for i in range(len(distinct))]
            return _weighed(tester, distinct, shares, test, labels)
        share = float(drifted.mean()) if len(drifted) else 0.0
        about_ = (test, tuple(labels), share)
        return tester.once(
            models, about_, lambda: _weighed(tester, models[None], [(1.0, share)], test, labels)
        )


def _weighed(
    tester: ModelTester,
    models: Tensor,
    shares: Sequence[tuple[float, float]],
    test: SplitInMemory,
    labels: Sequence[int],
) -> tuple[float, float]:
    """Average accuracy and loss over models; `shares`: each model's weight, and the drifted share of its devices."""
    tests = [
        (part * weight, tester.evaluate(model, test.lap(lap), labels))
        for model, (part, changed) in zip(models, shares, strict=True)
        for lap, weight in enumerate((1.0 - changed, changed))
        if weight
    ]
    if len(tests) == 1:
        return tests[0][1]
    accuracy, loss = (sum(weight * result[i] for weight, result in tests) for i in (0, 1))
    return accuracy, loss
