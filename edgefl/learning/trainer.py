"""How a cell's models are trained and tested: no state from round to round."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from edgefl.contract import Evaluation, LocalRound
from edgefl.errors import Divergence
from edgefl.learning.batches import Batches, draw_batches, steps_per_epoch
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
    """Everything that is needed to train and to test, and that does not change.

    Args:
        module: the model's, on the torch device, in evaluation mode.
        payload_bits: of a transfer, each way.
    """

    settings: LearningSettings
    material: Material
    holdings: Holdings
    streams: Streams
    module: nn.Module
    training: LocalTraining
    payload_bits: int

    @property
    def layout(self) -> ModelLayout:
        """Where parameters and statistics lie in a model's vector."""
        return self.training.layout

    def learning_rate(self, round_: int, longest: int) -> float:
        """Polynomial decay within a session (J section VI); the papers leave its power open."""
        return self.settings.lr * (1 - (round_ - 1) / longest) ** self.settings.lr_power

    def train(
        self, track: Track, ids: Sequence[int], at: At, lr: float, terms: Sequence[OutputTerm]
    ) -> LocalRound:
        """Local training of a round.

        Raises:
            Divergence: a local model is not finite.
        """
        ids = sorted(ids)
        batches = self._draw(ids, at)
        try:
            track.train(ids, batches, lr, terms)
        except Diverged as diverged:
            raise self._divergence(diverged, at, track) from diverged
        return self._booked(ids, batches.steps.tolist(), batches)

    def aggregate(self, track: Track, ids: Sequence[int], now: Progress) -> None:
        """Take in the updates of these devices.

        Raises:
            Divergence: the new model is not finite.
        """
        try:
            track.aggregate(ids, self.holdings.sizes(now.members))
        except Diverged as diverged:
            raise self._divergence(diverged, now.at, track) from diverged

    def test(self, model: Tensor, labels: Sequence[int]) -> Evaluation:
        """Accuracy and loss of a model [M + Q] on the test data of these labels."""
        return Evaluation(*evaluate(self.module, self.layout, model, self.material.test, labels))

    def losses_received(self, track: Track) -> tuple[float | None, ...]:
        """Of each device of the last round, the loss of the model that it received, on its first mini-batch."""
        last = track.last
        positions = [k for k in range(len(last.ids)) if last.batches.steps[k]]
        losses = iter(self._first_losses(last.received_by(positions), last.batches, positions))
        return tuple(next(losses) if steps else None for steps in last.batches.steps)

    def compare(
        self, ids: Sequence[int], at: At, models: Sequence[Tensor]
    ) -> tuple[LocalRound, list[dict[int, float]]]:
        """The losses of models [M + Q] on each device's first mini-batch, by device; nothing is trained."""
        ids = sorted(ids)
        batches = self._draw(ids, at)
        positions = [k for k in range(len(ids)) if batches.steps[k]]
        losses = [
            dict(zip((ids[k] for k in positions), self._first_losses(model, batches, positions), strict=True))
            for model in models
        ]
        return self._booked(ids, [int(steps > 0) for steps in batches.steps], batches), losses

    def _booked(self, ids: Sequence[int], iterations: Sequence[int], batches: Batches) -> LocalRound:
        """What the engine hears of a round."""
        samples = [steps * self.settings.batch for steps in iterations]
        if self.settings.booked == "processed":
            samples = [
                int(sizes[:steps].sum()) for sizes, steps in zip(batches.sizes, iterations, strict=True)
            ]
        bits = (self.payload_bits,) * len(ids)
        return LocalRound(tuple(ids), tuple(iterations), tuple(samples), bits, bits)

    def _first_losses(self, models: Tensor, batches: Batches, positions: Sequence[int]) -> list[float]:
        return first_batch_losses(self.module, self.layout, models, self.material.train, batches, positions)

    def _draw(self, ids: Sequence[int], at: At) -> Batches:
        samples = [self.holdings.samples(id_) for id_ in ids]
        epochs, batch = self.settings.epochs, self.settings.batch
        smallest = self.training.smallest_batch
        steps = [self.settings.steps] * len(ids)
        if epochs:
            steps = [epochs * steps_per_epoch(len(held), batch, smallest) for held in samples]
        generators = [self.streams("batches", id_, *at) for id_ in ids]
        return draw_batches(samples, steps, batch, generators, smallest)

    def _divergence(self, diverged: Diverged, at: At, track: Track) -> Divergence:
        whose = (
            "the aggregated model" if diverged.device is None else f"the model of device {diverged.device}"
        )
        return Divergence(
            f"training diverged in {at}: {whose} is not finite; lower learning.lr (now {self.settings.lr})",
            track.state_tensors(),
        )


def build_module(model: Model, input_shape: tuple[int, ...], classes: int, streams: Streams) -> nn.Module:
    """The model's module with initial parameters that are a function of the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(streams("model").integers(2**62)))
        return model.build(input_shape, classes)
