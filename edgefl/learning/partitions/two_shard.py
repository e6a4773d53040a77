"""Two shards: each device has two shards of different labels."""

from typing import ClassVar

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.partitions import PartitionInputs, Staying
from edgefl.learning.partitions._label_sets import deal_evenly
from edgefl.rng import Streams


class TwoShard(Staying):
    """Group labels into bundles, cut each bundle into equal shards, and give each device shards of two bundles.

    The 2N shards of N devices are spread over the bundles as evenly as possible; shards of a bundle have the same
    number of samples of each label, give or take one. With 10 devices and 10 labels each bundle is one label, cut
    into two shards, and a device has two labels; with 100 labels a bundle is ten random labels, and a device has
    twenty. Devices get random shards. Every sample goes to exactly one device. Bundles differ in size by at most one
    label.

    Source: the journal paper, appendix E, and the early version, section 6 (10 devices); for more devices, McMahan
    et al., AISTATS 2017, who cut shards from samples sorted by label, so a device may get two shards of one label.
    """

    bundles: ClassVar[int] = 10  # number of bundles, at most the number of labels

    def owners(
        self, labels: np.ndarray, devices: int, streams: Streams, inputs: PartitionInputs
    ) -> np.ndarray:
        classes = int(labels.max()) + 1
        bundles = min(self.bundles, classes)
        if bundles < 2 or 2 * devices < bundles:
            raise EdgeflError(
                f"two_shard needs at least 2 labels, and with {bundles} bundles of labels at least {-(-bundles // 2)}"
                f" devices, but there are {classes} labels and {devices} devices"
            )
        rng = streams("partition", 0)
        bundle_of_label = np.empty(classes, np.int64)
        bundle_of_label[streams("label_sets").permutation(classes)] = np.arange(classes) % bundles
        # shard = (bundle, device): device d has the shards of the bundles pairs[d]
        pairs = _pairs(np.arange(2 * devices) % bundles, rng)
        owner = np.full(len(labels), -1)
        for label, bundle in enumerate(bundle_of_label):
            holders = np.flatnonzero((pairs == bundle).any(axis=1))
            deal_evenly(owner, np.flatnonzero(labels == label), holders, rng)
        return owner


def _pairs(shards: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Deal 2N shards (each given as its bundle) to N devices at random, [N, 2]; no device gets a bundle twice.

    A device that has drawn bundle a twice swaps one of its shards with a random device without shards of a. Such a
    device exists as long as no bundle has more than N shards: if one device has two shards of a, the other N - 1
    devices have at most N - 2 such shards. After each swap, one device fewer has a bundle twice, so swapping ends.
    """
    pairs = rng.permutation(shards).reshape(-1, 2)
    while len(doubles := np.flatnonzero(pairs[:, 0] == pairs[:, 1])):
        device = doubles[0]
        partners = np.flatnonzero((pairs != pairs[device, 0]).all(axis=1))
        partner = rng.choice(partners)
        pairs[device, 1], pairs[partner, 0] = pairs[partner, 0], pairs[device, 1]
    return pairs
