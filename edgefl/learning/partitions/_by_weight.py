"""Base class of partitions in which sizes follow device weights, optionally with few labels per device."""

from abc import abstractmethod

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.partitions import by_device
from edgefl.learning.partitions._label_sets import RecurringLabels, require_samples

ROUNDING = 1e-9  # tolerance in samples; a share of 0.9999999999999999 is one sample


class ByWeight(RecurringLabels):
    """Give each device a number of samples in proportion to its weight, optionally of a few labels only.

    Every sample of the session's labels goes to exactly one device, and every device has at least one sample. Without
    `labels_per_device`, samples are dealt at random. With `labels_per_device`, devices that have a label share its
    samples by weight, so that sizes follow the weights as far as the labels allow: a device can have no more than all
    samples of its labels. Devices choose labels in descending order of weight: each device takes the labels with the
    most samples relative to the total weight of the devices that already have the label; ties are broken at random.
    """

    labels_per_device: int | None = Field(
        None, ge=1, le=1_000_000, description="labels per device; null: all labels of the session"
    )

    @abstractmethod
    def weights(self, devices: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the positive weight of each device, [devices]."""

    def deal(
        self, labels: np.ndarray, pool: np.ndarray, devices: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        require_samples(len(pool), devices)
        weights, of_ties = self.weights(devices, rng), rng.spawn(1)[0]
        owner = np.empty(len(pool), np.int64)
        if self.labels_per_device is None:
            counts = _shared_out(len(pool), weights, of_ties)
            owner[rng.permutation(len(pool))] = np.repeat(np.arange(devices), counts)
            return by_device(pool, owner, devices)
        present, label_of = np.unique(labels[pool], return_inverse=True)
        has = _holders(np.bincount(label_of), weights, self.labels_per_device, rng)
        for label in range(len(present)):
            holders = np.flatnonzero(has[label])
            samples = rng.permutation(np.flatnonzero(label_of == label))
            owner[samples] = np.repeat(holders, _shared_out(len(samples), weights[holders], of_ties))
        return by_device(pool, owner, devices)


def _shared_out(total: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Divide `total` into whole numbers [n] in proportion to weights [n], each at least 1.

    Shares are rounded down; the units left over go to the shares with the largest remainders. Ties are broken at
    random, since the first of equal devices would get more samples of each of their labels.

    Args:
        total: the number to divide, at least n.
    """
    least = np.zeros(len(weights), dtype=bool)
    while True:
        exact = (total - least.sum()) * weights / weights[~least].sum()
        if not (smaller := ~least & (exact < 1 - ROUNDING)).any():
            break
        least |= smaller
    exact[least] = 1.0
    counts = np.floor(exact + ROUNDING).astype(np.int64)
    # remaining units go to the largest remainders; numbers raised to 1 come last
    order = np.lexsort((rng.random(len(counts)), counts - exact))
    counts[order[: total - counts.sum()]] += 1
    return counts


def _holders(samples: np.ndarray, weights: np.ndarray, each: int, rng: np.random.Generator) -> np.ndarray:
    """Choose `each` labels per device, [C, devices] bool; labels with more samples [C] get more devices.

    Raises:
        EdgeflError: there are too few samples, devices or labels.
    """
    classes, devices = len(samples), len(weights)
    if each > classes or devices * each < classes:
        remedy = (
            f"at most {classes}" if each > classes else f"at least {-(-classes // devices)}, or more devices"
        )
        raise EdgeflError(
            f"{devices} devices cannot share the session's {classes} labels with labels_per_device {each}: choose "
            f"{remedy}"
        )
    has = np.zeros((classes, devices), dtype=bool)
    chosen, left = np.zeros(classes), samples.copy()
    shuffled = rng.permutation(devices)
    for device in shuffled[np.argsort(-weights[shuffled], kind="stable")]:
        taken = np.lexsort((rng.random(classes), chosen / samples, left == 0))[:each]
        if not left[taken].all():
            raise EdgeflError(
                f"the labels have {', '.join(map(str, samples.tolist()[:12]))} samples, too few for {devices} devices"
                f" with {each} labels each: choose fewer devices or fewer labels_per_device"
            )
        has[taken, device] = True
        chosen[taken] += weights[device]
        left[taken] -= 1
    return has
