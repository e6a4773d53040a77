"""Random numbers for the verbs of algorithms and for codecs, by name: of each device and round, and of the server."""

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
    """Draw random numbers for k devices, each from a stream of its own, or for the server from its one.

    A device's numbers are those of its name, its cell, the round and the seed: they are the same whoever else takes
    part, on any processor, and after a resume. Each draw goes on where the one before it ended. Of the server,
    results lack the first dimension [k].

    Args:
        generator: makes the generator of a device, or of the server (None), at the start of its stream; None:
            there is none, and drawing is an error.
        ids: of the devices; None: the server's.
        torch_device: where the numbers are wanted.
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
        """Return [k, *size] float32 numbers in [0, 1), all equally likely."""
        return self._stacked(lambda one: one.random(size, dtype=np.float32))

    def normal(self, *size: int) -> Tensor:
        """Return [k, *size] float32 numbers of mean 0 and variance 1, from the normal distribution."""
        return self._stacked(lambda one: one.standard_normal(size, dtype=np.float32))

    def subset(self, count: int, of: int) -> Tensor:
        """Return [k, count] different integers from 0 to of - 1, in no particular order; all sets equally likely."""
        return self._stacked(lambda one: one.choice(of, count, replace=False, shuffle=False))

    def part(self, begin: int, end: int) -> Chance:
        """Return the same for some of the devices, at the start of their streams."""
        return Chance(self._generator, self._ids and self._ids[begin:end], self._torch_device)

    def _stacked(self, draw: Callable[[np.random.Generator], Any]) -> Tensor:
        import torch

        if self._generator is None:
            raise EdgeflError(
                "there is no stream to draw from here: draw in receive, upload, keep or aggregate, in a round of a"
                " run",
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
    """The streams of a round's verbs, by name.

    streams: below the name of the cell and its model; None: there are none.
    at: the place of the round, or of an aggregation, in the run.
    """

    streams: Streams | None = None
    at: tuple[int | str, ...] = ()
    torch_device: torch.device | None = None

    def of_devices(self, verb: str, ids: Sequence[int]) -> Chance:
        """Return what these devices draw in a verb."""
        return self._of(verb, ids)

    def of_server(self, verb: str) -> Chance:
        """Return what the server draws in a verb."""
        return self._of(verb, None)

    def _of(self, verb: str, ids: Sequence[int] | None) -> Chance:
        streams = self.streams
        if streams is None:
            return NO_CHANCE
        return Chance(
            lambda id_: streams(verb, "server" if id_ is None else id_, *self.at), ids, self.torch_device
        )
