"""Devices that are always switched on."""

from collections.abc import Iterator

from edgefl.engine.churn import Churn
from edgefl.rng import Streams


class AlwaysOn(Churn):
    """Devices that are always on; only movement and batteries can keep them from taking part."""

    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        yield 0.0
