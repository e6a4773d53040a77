"""Label sets that recur from session to session, for partitions that draw on them."""

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.partitions import Partition
from edgefl.rng import Streams

LISTED = 12  # so many feasible overlaps are written out in an error message
SLACK = 0.01  # labels; lets a third be written as 0.3333


class RecurringLabels(Partition):
    """Two label sets A and B in turn, or all labels all the time.

    With an `overlap`, sessions 1, 3, 5, ... have the labels A and sessions 2, 4, 6, ... the labels B. The two
    sets are equally large, share overlap x C labels and together are all C labels. Each session deals its
    samples out anew: its population is a new one (D_k^(s) in the journal paper). Without one, the samples are
    dealt out once and follow their device through all sessions; which of the labels a session then really
    has depends on the devices that are present.

    Source: the journal paper, section VI, Label Distribution.
    """

    overlap: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="share of all labels that consecutive sessions have in common; empty: data stay with the"
        " device, all labels in every session",
    )

    def key(self, session: int) -> int:
        return 0 if self.overlap is None else session

    def session_labels(self, session: int, num_classes: int, streams: Streams) -> np.ndarray:
        if self.overlap is None:
            return np.arange(num_classes)
        size = (num_classes + self._shared(num_classes)) // 2
        shuffled = streams("label_sets").permutation(num_classes)
        # the first and the last `size` labels meet in the middle, in exactly the shared ones
        return np.sort(shuffled[:size] if session % 2 else shuffled[-size:])

    def _shared(self, num_classes: int) -> int:
        """|A and B|. Both sets are of size (C + |A and B|) / 2, so C and it are both even or both odd."""
        assert self.overlap is not None
        shared = round(self.overlap * num_classes)
        feasible = range(num_classes % 2, num_classes, 2)
        if shared not in feasible or abs(shared - self.overlap * num_classes) > SLACK:
            values = [f"{count / num_classes:.4g}" for count in feasible]
            if len(values) > LISTED:
                values = [*values[:3], "...", values[-1]]
            raise EdgeflError(
                f"overlap {self.overlap:g} does not divide {num_classes} labels into two equal sets;"
                f" feasible overlaps: {', '.join(values) or 'none'}"
            )
        return shared

    def _pool(self, labels: np.ndarray, session: int, streams: Streams) -> np.ndarray:
        """Indices of the samples whose label is available in a session, ascending."""
        available = self.session_labels(session, int(labels.max()) + 1, streams)
        return np.flatnonzero(np.isin(labels, available))


def require_samples(samples: int, devices: int, per_device: int = 1) -> None:
    """Refuse a population that the samples of a session cannot serve.

    Raises:
        EdgeflError: fewer than `per_device` samples for each device.
    """
    if samples < devices * per_device:
        raise EdgeflError(
            f"{samples} samples in the session do not give {devices} devices {per_device} each:"
            " take fewer devices or a larger data set"
        )
