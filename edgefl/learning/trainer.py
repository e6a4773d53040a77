"""The training and testing of a cell's models, without state from round to round."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from edgefl.contract import Evaluation, LocalRound
from edgefl.errors import Divergence
from edgefl.learning.batches import Batches, draw_batches, keep_apart, steps_per_epoch
from edgefl.learning.evaluation import evaluate, first_batch_losses
from edgefl.learning.federation import At, Progress
from edgefl.learning.holdings import Holdings
from edgefl.learning.local_training import LocalTraining
from edgefl.learning.material import Material
from edgefl.learning.models import Model, OutputTerm
from edgefl.learning.parameters import ModelLayout
from edgefl.learning.settings import LearningSettings
from edgefl.learning.track import Diverged, Track
from edgefl.rng import Streams


@dataclass(frozen=True)
class Trainer:
    """What a cell trains and tests its models with; none of it changes during a run but the holdings.

    Args:
        module: the model's module, on the torch device, in evaluation mode.
        payload_bits: bits of a transfer in a round without training, each way.
        cell: its number.
    """

    settings: LearningSettings
    material: Material
    holdings: Holdings
    streams: Streams
    module: nn.Module
    training: LocalTraining
    payload_bits: int
    cell: int = 0

    @property
    def layout(self) -> ModelLayout:
        """Where parameters and statistics lie in a model's vector."""
        return self.training.layout

    def learning_rate(self, round_: int, longest: int) -> float:
        """Return a round's learning rate: polynomial decay within a session (J VI; the papers omit its power)."""
        return self.settings.lr * (1 - (round_ - 1) / longest) ** self.settings.lr_power

    def train(
        self, track: Track, ids: Sequence[int], at: At, lr: float, terms: Sequence[OutputTerm]
    ) -> LocalRound:
        """Do the local training of a round.

        Raises:
            Divergence: a local model is not finite.
        """
        ids = sorted(ids)
        batches = self._draw(ids, at)
        try:
            result = track.train(ids, batches, lr, terms)
        except Diverged as diverged:
            raise self._divergence(diverged, at, track) from diverged
        return LocalRound(
            tuple(ids),
            tuple(result.steps.tolist()),
            self._booked(at, result.steps, result.samples),
            tuple(result.down_bits.tolist()),
            tuple(result.up_bits.tolist()),
            {name: tuple(values.tolist()) for name, values in result.scalars.items()},
        )

    def aggregate(self, track: Track, ids: Sequence[int], now: Progress) -> None:
        """Aggregate the updates of these devices.

        Raises:
            Divergence: the new model is not finite.
        """
        try:
            track.aggregate(ids, self.holdings.sizes(now.members))
        except Diverged as diverged:
            raise self._divergence(diverged, now.at, track) from diverged

    def test(self, model: Tensor, labels: Sequence[int]) -> Evaluation:
        """Test a model [M + Q]: accuracy and loss on the test data of these labels."""
        return Evaluation(*evaluate(self.module, self.layout, model, self.material.test, labels))

    def losses_received(self, track: Track) -> tuple[float | None, ...]:
        """Compute the received model's loss on each device's first mini-batch of the last round; None: no data."""
        last = track.last
        positions = [k for k in range(len(last.ids)) if last.batches.steps[k]]
        losses = iter(self._first_losses(last.received_by(positions), last.batches, positions))
        return tuple(next(losses) if steps else None for steps in last.batches.steps)

    def compare(
        self, ids: Sequence[int], at: At, models: Sequence[Tensor]
    ) -> tuple[LocalRound, list[dict[int, float]]]:
        """Compute models' [M + Q] losses on each device's first mini-batch, by device; nothing is trained."""
        ids = sorted(ids)
        batches = self._draw(ids, at)
        positions = [k for k in range(len(ids)) if batches.steps[k]]
        losses = [
            dict(zip((ids[k] for k in positions), self._first_losses(model, batches, positions), strict=True))
            for model in models
        ]
        steps = np.minimum(batches.steps, 1)
        bits = (self.payload_bits,) * len(ids)
        booked = self._booked(at, steps, batches.processed(steps))
        return LocalRound(tuple(ids), tuple(steps.tolist()), booked, bits, bits), losses

    def _booked(self, at: At, steps: np.ndarray, processed: np.ndarray) -> tuple[int, ...]:
        """Return the samples whose computing time and energy are booked."""
        nominal = self.settings.booked == "nominal"
        return tuple((steps * self.settings.batch_in(at.phase) if nominal else processed).tolist())

    def _first_losses(self, models: Tensor, batches: Batches, positions: Sequence[int]) -> list[float]:
        return first_batch_losses(self.module, self.layout, models, self.material.train, batches, positions)

    def _draw(self, ids: Sequence[int], at: At) -> Batches:
        samples = [self.holdings.samples(id_) for id_ in ids]
        apart: list[np.ndarray] = []
        share = self.settings.algorithm.keeps_apart()
        if share:
            key = self.holdings.key
            splits = [
                keep_apart(indices, share, self.streams("validation", id_, key))
                for id_, indices in zip(ids, samples, strict=True)
            ]
            samples, apart = [train for train, _ in splits], [watched for _, watched in splits]
        (wanted, epochs), batch = self.settings.length_in(at.phase), self.settings.batch_in(at.phase)
        smallest = self.training.smallest_batch
        steps = [wanted] * len(ids)
        if epochs:
            steps = [epochs * steps_per_epoch(len(indices), batch, smallest) for indices in samples]
        generators = [self.streams("batches", id_, *at) for id_ in ids]
        return draw_batches(samples, steps, batch, generators, smallest, apart)

    def _divergence(self, diverged: Diverged, at: At, track: Track) -> Divergence:
        whose = (
            "the aggregated model" if diverged.device is None else f"the model of device {diverged.device}"
        )
        return Divergence(
            f"training diverged in {at}: {whose} is not finite; lower learning.lr (now {self.settings.lr})",
            track.tensors(),
        )


def build_module(model: Model, input_shape: tuple[int, ...], classes: int, streams: Streams) -> nn.Module:
    """Build the model's module with initial parameters that are a function of the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(streams("model").integers(2**62)))
        return model.build(input_shape, classes)
