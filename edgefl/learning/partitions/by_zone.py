"""By zone: a device holds samples with the labels of its home zone."""

from typing import Literal

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.partitions import PartitionInputs, Staying
from edgefl.learning.partitions._label_sets import deal_evenly
from edgefl.rng import Streams


class ByZone(Staying):
    """Assign labels to zones; a device has the labels of its home zone, the zone where the device is at time 0.

    Zones are `sectors` of equal angle around the origin (the first base station; zone 0 extends from east towards
    north), `rings` around the origin with the same number of devices each, or the `cells` of the layout (the nearest
    base station at time 0). The labels, in random order, form a circle that the zones divide: zone z of Z begins at
    label z C / Z and has `labels_per_zone` labels from there, so neighbouring zones share labels if `labels_per_zone`
    is above C / Z. The devices of all zones with a label share its samples; counts differ by at most one. Labels of
    zones without devices are not used.
    """

    zones: Literal["sectors", "rings", "cells"] = Field("sectors", description="kind of zones")
    count: int = Field(4, ge=1, le=10_000, description="number of sectors or rings; unused for cells")
    labels_per_zone: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="number of labels in each zone; if left out, the zones divide the labels without overlap",
    )

    def owners(
        self, labels: np.ndarray, devices: int, streams: Streams, inputs: PartitionInputs
    ) -> np.ndarray:
        zone_of, zones = self._homes(inputs)
        if len(zone_of) != devices:
            raise EdgeflError(
                f"zones need every device's initial position, but only {len(zone_of)} of {devices} are known: choose"
                " another partition"
            )
        known = self._labels(int(labels.max()) + 1, zones, streams)
        rng = streams("partition", 0)
        owner = np.full(len(labels), -1)
        for label in range(known.shape[1]):
            holders = np.flatnonzero(known[zone_of, label])
            if len(holders):
                deal_evenly(owner, np.flatnonzero(labels == label), holders, rng)
        return owner

    def _homes(self, inputs: PartitionInputs) -> tuple[np.ndarray, int]:
        """Return each device's home zone [N], and the number of zones."""
        if inputs.positions_m is None or (self.zones == "cells" and inputs.sites_m is None):
            raise EdgeflError("by_zone needs positions of devices and, for zones: cells, of base stations")
        x, y = inputs.positions_m.T
        absent = np.flatnonzero(np.isnan(x))
        if len(absent):
            raise EdgeflError(
                f"devices outside the area at time 0, which have no zone: {len(absent)} of {len(x)}, such as device"
                f" {absent[0]}; choose a mobility model with all devices inside at time 0, or another partition"
            )
        if self.zones == "cells":
            homes = inputs.home_sites()
            assert homes is not None
            assert inputs.sites_m is not None
            return homes, len(inputs.sites_m)
        if self.zones == "sectors":
            turn = np.arctan2(y, x) / (2 * np.pi) % 1.0
            return np.minimum((turn * self.count).astype(np.int64), self.count - 1), self.count
        rank = np.hypot(x, y).argsort(kind="stable").argsort()
        return rank * self.count // len(rank), self.count

    def _labels(self, classes: int, zones: int, streams: Streams) -> np.ndarray:
        """Draw the labels of each zone as a mask [zones, C] bool."""
        if self.labels_per_zone is None and zones > classes:
            raise EdgeflError(f"{classes} labels cannot be divided among {zones} zones: set labels_per_zone")
        if self.labels_per_zone is not None and self.labels_per_zone > classes:
            raise EdgeflError(f"labels_per_zone {self.labels_per_zone} exceeds the {classes} labels")
        begin = np.arange(zones + 1) * classes // zones
        width = np.diff(begin) if self.labels_per_zone is None else np.full(zones, self.labels_per_zone)
        place = streams("label_sets").permutation(classes)  # position of each label on the circle
        return (place - begin[:-1, None]) % classes < width[:, None]
