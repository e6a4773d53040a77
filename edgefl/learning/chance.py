"""Draw random numbers for algorithms and codecs from named streams, for each device and round, and for the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.rng import Streams

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Chance:
    """Draw random numbers for k devices, each from its own stream, or for the server from a single stream.

    A device's numbers depend only on its id, its cell, the calling method, the round and the seed, and not on which
    other devices take part, on the processor, or on whether the run was resumed. Each draw continues the stream. For
    the server, results lack the first dimension [k].

    Args:
        generator: function that returns the generator of a device, or of the server (for None), at the start of its
            stream; without this function, drawing is an error.
        ids: ids of the k devices, or None if the server draws.
        torch_device: torch device of the results.
    """

    def __init__(
        self,
        generator: Callable[[int | None], np.random.Generator] | None = None,
        ids: Sequence[int] | None = None,
        torch_device: torch.device | None = None,
    ) -> None:
        self._generator, self._ids, self._torch_device = generator, ids, torch_device
        self._begun: list[np.random.Generator] | None = None

    def uniform(self, *size: int) -> Tensor:
        """Draw uniform random numbers in [0, 1) for each device, [k, *size] float32."""
        return self._stacked(lambda one: one.random(size, dtype=np.float32))

    def normal(self, *size: int) -> Tensor:
        """Draw standard normal random numbers for each device, [k, *size] float32."""
        return self._stacked(lambda one: one.standard_normal(size, dtype=np.float32))

    def subset(self, count: int, of: int) -> Tensor:
        """Draw for each device a random set of `count` different integers below `of`, [k, count] in any order."""
        return self._stacked(lambda one: one.choice(of, count, replace=False, shuffle=False))

    def part(self, begin: int, end: int) -> Chance:
        """Return the streams of the devices at positions `begin` to `end` - 1, from each stream's start."""
        return Chance(self._generator, self._ids and self._ids[begin:end], self._torch_device)

    def _stacked(self, draw: Callable[[np.random.Generator], Any]) -> Tensor:
        import torch

        if self._generator is None:
            raise EdgeflError(
                "there is no random stream here: draw in receive, upload, keep or aggregate, during a round",
                ("learning", "algorithm"),
            )
        if self._begun is None:
            self._begun = [self._generator(id_) for id_ in ([None] if self._ids is None else self._ids)]
        drawn = [np.asarray(draw(one)) for one in self._begun]
        numbers = (
            drawn[0] if self._ids is None else np.stack(drawn) if drawn else np.zeros((0, 0), np.float32)
        )
        return torch.from_numpy(numbers).to(self._torch_device)


NO_CHANCE = Chance()


@dataclass(frozen=True)
class RoundChance:
    """The random streams of a round, one for each method of the algorithm.

    streams: random streams below the name of the cell and its model; None outside of a run.
    at: key of the round, or of the aggregation, in the run.
    """

    streams: Streams | None = None
    at: tuple[int | str, ...] = ()
    torch_device: torch.device | None = None

    def of_devices(self, verb: str, ids: Sequence[int]) -> Chance:
        """Return the devices' random streams for a method of the algorithm."""
        return self._of(verb, ids)

    def of_server(self, verb: str) -> Chance:
        """Return the server's random stream for a method of the algorithm."""
        return self._of(verb, None)

    def _of(self, verb: str, ids: Sequence[int] | None) -> Chance:
        streams = self.streams
        if streams is None:
            return NO_CHANCE
        return Chance(
            lambda id_: streams(verb, "server" if id_ is None else id_, *self.at), ids, self.torch_device
        )
