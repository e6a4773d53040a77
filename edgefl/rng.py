"""Random streams by name, not by order.

Two runs that ask for the same stream get the same numbers, whatever else they draw. Adding a device or
swapping the algorithm therefore disturbs nothing else, and variants of a study meet the same world.
"""

import zlib

import numpy as np

__all__ = ["Streams"]


class Streams:
    """Independent generators keyed by names and numbers, all derived from one seed."""

    def __init__(self, seed: int, prefix: tuple[str | int, ...] = ()) -> None:
        self.seed = seed
        self._prefix = prefix  # of all names

    def below(self, *path: str | int) -> "Streams":
        """Streams of their own below a name: for something that there may be several of."""
        return Streams(self.seed, (*self._prefix, *path))

    def _sequence(self, path: tuple[str | int, ...]) -> np.random.SeedSequence:
        path = (*self._prefix, *path)
        # crc32 and not hash(): Python salts hash() anew in every process.
        key = tuple(zlib.crc32(part.encode()) if isinstance(part, str) else part for part in path)
        return np.random.SeedSequence(self.seed, spawn_key=key)

    def __call__(self, *path: str | int) -> np.random.Generator:
        """A fresh generator at the start of the named stream, e.g. `streams("batches", device, round)`."""
        return np.random.Generator(np.random.PCG64(self._sequence(path)))

    def key(self, *path: str | int) -> int:
        """A 128-bit key of the named stream, for counter-based generators that are read at any position."""
        low, high = self._sequence(path).generate_state(2, np.uint64)
        return int(low) | int(high) << 64
