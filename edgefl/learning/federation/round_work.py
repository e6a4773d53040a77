"""Draw the mini-batches of a round's devices, and compute the samples that cost time and energy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from edgefl.config.answers import wrong
from edgefl.contract import Expected
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms._rare import GRADIENT_PASSES
from edgefl.learning.augmentation import Augmentation
from edgefl.learning.data.batches import (
    Batches,
    draw_batches,
    keep_apart,
    kept_apart,
    samples_in,
    steps_per_epoch,
)
from edgefl.learning.settings import LocalSettings
from edgefl.rng import Streams

if TYPE_CHECKING:  # checks before a run must not load PyTorch
    from edgefl.learning.federation.federation import RoundFacts

ROUNDING = 1e-9  # tolerance in devices; a share of 0.29 of 100 devices is 29 devices


@dataclass(frozen=True)
class RoundWork:
    """The settings with which a cell draws the mini-batches of its rounds.

    how_booked: as in `CostSettings.booked`. cell: the cell's number. deal: key of the current deal of samples.
    smallest: smallest number of samples in a batch.
    """

    local: LocalSettings
    algorithm: Algorithm
    how_booked: str
    streams: Streams
    cell: int
    deal: int
    smallest: int

    def draw(self, ids: Sequence[int], samples: Sequence[np.ndarray], facts: "RoundFacts") -> Batches:
        """Draw the mini-batches of a round's devices from their samples, with each device's own random stream."""
        local, streams = self.local, self.streams
        apart: list[np.ndarray] = []
        if share := self._kept_apart():
            splits = [
                keep_apart(indices, share, streams("validation", id_, self.deal))
                for id_, indices in zip(ids, samples, strict=True)
            ]
            samples, apart = [train for train, _ in splits], [watched for _, watched in splits]
        steps = self._steps(ids, facts, [len(indices) for indices in samples])
        generators = streams.in_turn(("batches",), ids, *facts.at)
        batches = draw_batches(samples, steps, local.batch, generators, self.smallest, apart)
        if not local.augmentation:
            return batches
        generators = streams.in_turn(("augmentation",), ids, *facts.at)
        return replace(batches, views=Augmentation().draw(batches.sizes, batches.rows.shape[2], generators))

    def _kept_apart(self) -> float:
        """Return the share of each device's samples that is held out for early stopping."""
        if self.local.early_stopping is not None:
            return self.local.kept_apart
        share = self.algorithm.keeps_apart()
        if not (isinstance(share, Real) and 0 <= share < 1):
            wanted = "a share of each device's samples, in [0, 1)"
            raise wrong(self.algorithm.keeps_apart, share, wanted, "learning", "algorithm")
        return share

    def _steps(self, ids: Sequence[int], facts: "RoundFacts", held: Sequence[int]) -> list[int]:
        """Return each device's number of local steps in a round, given the devices' numbers of samples."""
        many, partial = np.array(held), self.local.partial_work
        asked = np.full(len(ids), self.local.most)
        if partial and self.local.most > 1:
            if self.local.one_pass:  # a straggler does a part of its pass, which may be shorter than `steps`
                asked = self._at_most(asked, many)
            who = self.streams("partial work", self.cell, *facts.at)
            each = [self.streams("partial work of", id_, *facts.at) for id_ in ids]
            asked = np.array(lengths(partial, asked.tolist(), who, each))
        steps: list[int] = self._at_most(asked, many).tolist()
        return steps

    def _at_most(self, asked: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Return the local steps [K] of devices that do the `asked` epochs, or steps, on `held` samples."""
        passes = [steps_per_epoch(many, self.local.batch, self.smallest) for many in held.tolist()]
        if self.local.epochs:
            return asked * np.array(passes, dtype=np.int64)
        return np.minimum(asked, passes) if self.local.one_pass else asked

    def expected(
        self, ids: Sequence[int], held: Sequence[int], bits: tuple[int, int], compared: int = 0
    ) -> Expected:
        """Return the expected work of devices in a round.

        Args:
            held: how many samples each device holds.
            bits: how many bits a downlink transfer and an uplink transfer have.
            compared: for how many other models each sample needs a forward pass.
        """
        share, batch = self._kept_apart(), self.local.batch
        many = np.array([own - kept_apart(own, share) for own in held], dtype=np.int64)
        steps = self._at_most(np.full(len(ids), self.local.most), many) * (many > 0)
        pairs = zip(steps.tolist(), many.tolist(), strict=True)
        processed = np.array([samples_in(done, own, batch, self.smallest) for done, own in pairs], np.int64)
        processed *= 2 if self.algorithm.trains_personal else 1
        tested = compared * processed + GRADIENT_PASSES * self.algorithm.whole_gradients * many
        return Expected(
            tuple(ids),
            tuple(map(int, held)),
            self.booked(steps, processed, tested),
            (bits[0],) * len(ids),
            (bits[1],) * len(ids),
        )

    def booked(
        self, steps: np.ndarray, processed: np.ndarray, tested: np.ndarray | int = 0
    ) -> tuple[int, ...]:
        """Return each device's number of samples for which computing time and energy are booked.

        Processed samples are those in the mini-batches of completed steps: for a device with D samples, D per local
        epoch, and D per step if D < B. Tested samples need only a forward pass (for early stopping, choice of a
        model, or a loss term's reference models): `all` counts a third of their number, rounded up, since a backward
        pass counts as two forward passes. Losses that devices report cost nothing: the first step computes them.
        """
        if self.how_booked == "nominal":
            return tuple((steps * self.local.batch).tolist())
        return tuple((processed - (-tested // 3 if self.how_booked == "all" else 0)).tolist())


def lengths(
    share: float, asked: Sequence[int], who: np.random.Generator, each: Sequence[np.random.Generator]
) -> list[int]:
    """Draw each device's number of epochs, or steps: all n asked for, or, for a straggler, uniform from 1 to n - 1.

    Stragglers are drawn in each round, and their updates count like all other updates. Their number is rounded up or
    down at random, so that its mean is exact even if devices are dispatched one by one. To drop stragglers instead,
    let fewer devices take part: `rounds.selector: {name: uniform, count: 5}` is like dropping five of ten devices.

    Source: Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020, section 5.2 (0, 50 or 90 % of ten
    devices are stragglers), as in the paper's public code.

    Args:
        share: share of stragglers, `learning.local.partial_work`.
        asked: epochs or steps of each device without stragglers; a single one cannot be shortened.
        who: generator that draws the stragglers.
        each: generators, one per device, that draw the numbers of epochs or steps of stragglers.
    """
    order, wanted = who.permutation(len(each)).tolist(), share * len(each)
    few = set(order[: math.floor(wanted + ROUNDING + who.random() * (1 - 2 * ROUNDING))])
    return [
        int(rng.integers(1, most)) if k in few and most > 1 else most
        for k, (most, rng) in enumerate(zip(asked, each, strict=True))
    ]
