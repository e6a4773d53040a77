"""Check the contracts of data sets, partitions and drifts."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Dataset, Split
from edgefl.learning.drifts import Drift, Moment
from edgefl.learning.partitions import Partition, PartitionInputs
from edgefl.learning.tasks import Task
from edgefl.rng import Streams
from edgefl.testing.conformance import must, pure, same

DEVICES, SAMPLES, LABELS = 8, 2400, 10
ROUNDS = 300  # rounds of a checked drift


def datasets(dataset: Dataset) -> None:
    """Check that a data set without its files raises an EdgeflError, and that samples and targets fit the task."""
    try:
        dataset.check()
    except EdgeflError:
        return  # without the data set's files there is nothing more to check
    data = pure("load()", dataset.load, remedy="draw random numbers from a generator with its own seed")
    task = cast(Task, registry.get("tasks", dataset.task)())
    task.check(data)
    for name, split in (("train", data.train), ("test", data.test)):
        if task.of_classes:
            _split(name, split, data.num_classes)
        must(len(split.x) == len(split.y) > 0, f"{name}: {len(split.x)} samples with {len(split.y)} targets")
        if split.x.dtype.kind == "f":
            must(np.isfinite(split.x).all(), f"{name}: inputs are not all finite: leave such samples out")
    must(data.train.x.shape[1:] == data.test.x.shape[1:], "training and test samples differ in shape")
    must(
        len(data.label_names) == data.num_classes,
        f"{len(data.label_names)} label_names for {data.num_classes} classes",
    )
    must(np.all(np.asarray(data.std) > 0), "std must be > 0: inputs are divided by it")


def _split(name: str, split: Split, classes: int) -> None:
    must(len(split.x) == len(split.y) > 0, f"{name}: {len(split.x)} samples with {len(split.y)} labels")
    must(
        split.y.dtype == np.int64 and split.y.min() >= 0 and split.y.max() < classes,
        f"{name}: labels must be int64, 0 to {classes - 1}",
    )
    must(split.groups is None or len(split.groups) == len(split.y), f"{name}: groups must be one per sample")


def partitions(partition: Partition) -> None:
    """Check that a partition deals only the session's labels, no sample twice, and keeps no state between calls."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(SAMPLES) % LABELS)
    inputs = PartitionInputs(
        groups=np.arange(SAMPLES) % DEVICES,
        positions_m=rng.uniform(-100.0, 100.0, (DEVICES, 2)),
        sites_m=np.array([[0.0, 0.0], [80.0, 0.0]]),
    )
    dealt: dict[int, Sequence[np.ndarray]] = {}
    for session in (1, 2, 3, 4):
        own = pure(
            "assign()",
            partition.assign,
            labels,
            DEVICES,
            session,
            Streams(4),
            inputs,
            remedy="draw from the given streams",
        )
        must(len(own) == DEVICES, f"assign() returned {len(own)} arrays for {DEVICES} devices")
        every = np.concatenate(own)
        must(every.dtype == np.int64, f"assign() returned indices of type {every.dtype}: return int64")
        must(every.min() >= 0 and every.max() < len(labels), "assign(): return indices of the given labels")
        must(min(map(len, own)) > 0, "assign() left a device without samples: raise an EdgeflError instead")
        must(len(np.unique(every)) == len(every), "assign() dealt a sample twice")
        must(all(np.array_equal(o, np.unique(o)) for o in own), "assign(): sort each device's samples")
        allowed = partition.session_labels(session, LABELS, Streams(4))
        must(
            set(labels[every].tolist()) <= set(allowed.tolist()),
            f"assign() dealt labels that are not in session_labels({session})",
        )
        key = partition.key(session)
        must(
            key not in dealt or same(own, dealt[key]),
            f"key({session}) is the key of an earlier session, but assign() deals differently: return another key",
        )
        dealt[key] = own


def drifts(drift: Drift) -> None:
    """Check that a drift keeps shapes, types and order, depends on the samples only, and modifies no argument."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (SAMPLES // 10, 6, 6), dtype=np.uint8)
    split = Split(x, rng.permutation(np.arange(len(x)) % LABELS), np.arange(len(x)) % DEVICES)
    remedy = "draw from a stream with its own seed"
    changed = pure("change()", drift.change, split, LABELS, remedy=remedy)
    must(
        changed.x.shape == x.shape and changed.x.dtype == x.dtype,
        f"change() returned {changed.x.dtype} inputs of shape {list(changed.x.shape)}: keep shape and type",
    )
    _split("after the drift", changed, LABELS)
    must(same(changed.groups, split.groups), "change() moved samples to other groups")
    must(not (same(changed.x, x) and same(changed.y, split.y)), "change() changes neither inputs nor labels")
    for round_ in range(1, ROUNDS + 1):
        share = pure(
            "drifted_share()", drift.drifted_share, Moment(round_, 10.0 * round_), remedy="keep no state"
        )
        must(0 <= share <= 1, f"drifted_share() is {share} in round {round_}: it must be in [0, 1]")
