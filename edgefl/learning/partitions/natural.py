"""Natural: each device is one writer, speaker or other origin of the data."""

from typing import Literal

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.partitions import PartitionInputs, Staying
from edgefl.rng import Streams


class Natural(Staying):
    """Give each device all training samples of one group of the data set.

    With fewer devices than groups, random groups or the largest groups are used; the samples of all other groups
    remain unused. The data set must state the origin of its samples: Shakespeare (roles), FEMNIST (writers),
    synthetic (devices), csv with a column of groups, npz with an array `groups`. Source: McMahan et al., AISTATS
    2017; FLASH, section 5.1.
    """

    choice: Literal["random", "largest"] = Field(
        "random", description="groups that become devices. random: random groups; largest: largest groups"
    )
    min_samples: int = Field(
        1, ge=1, le=1_000_000_000, description="minimum number of a group's training samples"
    )

    def owners(
        self, labels: np.ndarray, devices: int, streams: Streams, inputs: PartitionInputs
    ) -> np.ndarray:
        if inputs.groups is None:
            raise EdgeflError(
                "the natural partition needs the origin of each sample: choose shakespeare, femnist or synthetic,"
                " name csv's column of groups (columns: {group: ...}), give npz an array of groups, or choose"
                " dirichlet or iid"
            )
        counts = np.bincount(inputs.groups)
        device_of = np.full(len(counts), -1)
        device_of[self.groups_of(counts, devices, streams)] = np.arange(devices)
        return device_of[inputs.groups]

    def groups_of(self, sizes: np.ndarray, devices: int, streams: Streams) -> np.ndarray:
        groups = np.flatnonzero(sizes >= self.min_samples)
        if len(groups) < devices:
            raise EdgeflError(
                f"{len(groups)} groups of at least {self.min_samples} training samples are too few for {devices}"
                f" devices: choose fewer devices{' or a smaller min_samples' if self.min_samples > 1 else ''}"
            )
        if self.choice == "largest":
            return groups[np.argsort(-sizes[groups], kind="stable")][:devices]
        return streams("partition", 0).permutation(groups)[:devices]
