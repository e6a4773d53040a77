"""Train and test a cell's models, without state from round to round."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor, nn

from edgefl.config import outside
from edgefl.contract import (
    TRAINING,
    VALIDATION_SCORE,
    DeviceScores,
    Evaluation,
    LocalRound,
    averages,
)
from edgefl.errors import Divergence
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.drifts import Moment
from edgefl.learning.federation.drifting import Drifting
from edgefl.learning.federation.federation import At, RoundFacts
from edgefl.learning.federation.round_work import RoundWork
from edgefl.learning.federation.training_data import TrainingData
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.models import OutputTerm
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.scores import metrics
from edgefl.learning.scores.device_tests import DeviceTests, Scores, score
from edgefl.learning.scores.tester import ModelTester
from edgefl.learning.settings import LearningSettings
from edgefl.learning.updates.rows import blocks
from edgefl.learning.updates.trained_model import Diverged, TrainedModel
from edgefl.learning.updates.updates import Amounts
from edgefl.rng import Streams

# extra columns of devices.csv and rounds.csv
EPOCHS, PERSONAL_ACCURACY, TEST_SAMPLES = "epochs", "accuracy_personal", "test_samples"
ACCURACY_STD, ACCURACY_BY_SAMPLES = "accuracy_std", "accuracy_by_samples"
ACCURACY_WORST_TENTH = "accuracy_worst_tenth"
VALIDATED = [VALIDATION_SCORE, "loss_validation"]

Foretell = Callable[[LocalRound, int], None]


@dataclass(frozen=True)
class Trainer:
    """Train and test a cell's models. The only state that changes during a run is the data dealt to devices.

    Args:
        module: the model's module, on the torch device, in evaluation mode.
        tester: object that runs the module on test data.
        cell: number of the cell.
        drifting: the samples that each device has before and after a drift.
        device_tests: test data of each device, or None if all devices are tested on all test data of the labels.
        device_validation: validation samples of each device, or None without such samples, or if all share them.
    """

    settings: LearningSettings
    training_data: TrainingData
    device_data: DeviceData
    streams: Streams
    module: nn.Module
    tester: ModelTester
    training: LocalTraining
    cell: int
    drifting: Drifting
    device_tests: DeviceTests | None = None
    device_validation: DeviceTests | None = None

    @property
    def layout(self) -> ModelLayout:
        """The positions of parameters and statistics in a model's vector."""
        return self.training.layout

    @property
    def work(self) -> RoundWork:
        """The settings with which this cell draws rounds and books their work."""
        settings, deal = self.settings, self.device_data.key
        return RoundWork(
            settings.local,
            settings.algorithm,
            settings.cost.booked,
            self.streams,
            self.cell,
            deal,
            self.training.smallest_batch,
        )

    def learning_rate(
        self, round_: int, longest: int | None, progress: float | None = None, *, of_run: int = 1
    ) -> float:
        """Return the devices' learning rate in a round, according to the schedule.

        Args:
            longest: maximum number of rounds in the session, or None if the session has no maximum.
            progress: share of the session that has passed; by default, the share of `longest` rounds that has passed.
            of_run: rounds of the global model so far, in all sessions, including this one.
        """
        if progress is None:
            progress = (round_ - 1) / longest if longest else 0.0
        settings = self.settings
        return settings.local.lr * settings.local.lr_schedule.share(
            settings.local.lr_power, settings.local.lr_floor, round_=round_, progress=progress, of_run=of_run
        )

    def train(
        self,
        model: TrainedModel,
        ids: Sequence[int],
        facts: RoundFacts,
        lr: float,
        terms: Sequence[OutputTerm],
        concept: bool | None = None,
        *,
        drops: bool = False,
        foretell: Foretell | None = None,
    ) -> LocalRound:
        """Run the local training of a round's devices, and return their work.

        Args:
            drops: whether updates that are not finite are dropped.
            concept: as in `Drifting.rows`.
            foretell: function called before training with the round, still without scalars, and the round's number;
                not called if training may change more than scalars, for example which updates are finite.

        Raises:
            Divergence: a local model is not finite, and the server does not drop it.
        """
        ids = sorted(ids)
        batches = self.work.draw(ids, self.samples(ids, facts.moment, concept), facts)
        local = self.settings.local
        stop = local.stop if local.early_stopping is not None else None

        def foretold(amounts: Amounts) -> None:
            if foretell is not None and not drops:
                foretell(self._local_round(ids, amounts), facts.at.round)

        with self.naming_divergence(model, facts.at):
            result = model.train(ids, batches, lr, terms, stop, facts.at, drops=drops, foretell=foretold)
        scalars: dict[str, tuple[float | None, ...]] = {
            name: tuple(values.tolist()) for name, values in result.scalars.items()
        }
        scalars |= {name: (None,) * len(ids) for name in result.after if name not in scalars}
        if len(batches.validation):
            epochs = result.steps / np.maximum(1, batches.per_epoch)
            scalars[EPOCHS] = tuple(epochs.tolist())
        done = self._local_round(ids, result)
        after = {**dict.fromkeys(scalars, TRAINING), **result.after}
        return replace(done, scalars=scalars, after=after, not_finite=result.not_finite)

    def _local_round(self, ids: Sequence[int], of: Amounts) -> LocalRound:
        # a personal model trains on the same mini-batches as the local model
        processed = of.samples * (2 if self.settings.algorithm.trains_personal else 1)
        return LocalRound(
            tuple(ids),
            tuple(of.steps.tolist()),
            self.work.booked(of.steps, processed, of.tested),
            tuple(of.down_bits.tolist()),
            tuple(of.up_bits.tolist()),
        )

    @contextmanager
    def naming_divergence(self, model: TrainedModel, at: At) -> Iterator[None]:
        """Turn an error about a model that is not finite into an error that names the place in the run.

        Raises:
            Divergence: a model is not finite.
        """
        try:
            yield
        except Diverged as diverged:
            raise self._divergence(diverged, at, model) from diverged

    def due(self, round_: int) -> bool:
        """Return whether the global model is tested after this round."""
        return round_ % self.settings.evaluation.every == 0

    def test(
        self, model: Tensor, labels: Sequence[int], moment: Moment, present: Sequence[int]
    ) -> Evaluation:
        """Test a model [M + Q], or one per present device [K, M + Q], on these labels' test data."""
        further: dict[str, float | None] = {**self.drifting.column(present, moment)}
        if self.device_tests is not None:
            scores = self._scores(model, present, moment)
            accuracy, loss, deviation = scores.mean()
            pooled = {
                ACCURACY_STD: deviation,
                ACCURACY_BY_SAMPLES: scores.by_samples(),
                ACCURACY_WORST_TENTH: scores.worst_tenth(),
            }
            task = self.training_data.task
            of_task = dict.fromkeys(task.columns) if loss is None else task.further(loss)
            further = {**pooled, **of_task, **further}
            return Evaluation(accuracy, loss, further, self._written_down(present, scores, moment))
        split = self.training_data.test
        accuracy, loss = self.drifting.test(self.tester, model, split, labels, present, moment)
        return Evaluation(accuracy, loss, {**self.training_data.task.further(loss), **further})

    def further_metrics(self, model: Tensor, labels: Sequence[int]) -> dict[str, float | None]:
        """Compute the extra metrics that the settings name for a model [M + Q] on these labels' test data."""
        names = self.settings.evaluation.metrics
        if not names:
            return {}
        test = self.training_data.test
        found = metrics.measure(names, self.tester, model, test, labels)
        return {name: value if math.isfinite(value) else None for name, value in found.items()}

    def validate(
        self, model: Tensor, labels: Sequence[int], moment: Moment, present: Sequence[int]
    ) -> dict[str, float | None]:
        """Test a model on validation samples as `test` does; return columns of rounds.csv, {} without samples."""
        split = self.training_data.validation
        if split is None:
            return {}
        if self.device_validation is not None:
            scores = self._scores(model, present, moment, self.device_validation, split)
            accuracy, loss, _ = scores.mean()
        else:
            accuracy, loss = self.drifting.test(self.tester, model, split, labels, present, moment)
        return dict(zip(VALIDATED, (accuracy, loss), strict=True))

    def untested(self, moment: Moment, present: Sequence[int]) -> Evaluation:
        """Return the evaluation of an untested round; the columns that a test would fill are None.

        The share of drifted devices is known without a test.
        """
        names = (
            [ACCURACY_STD, ACCURACY_BY_SAMPLES, ACCURACY_WORST_TENTH] if self.device_tests is not None else []
        )
        names += [*self.training_data.task.columns, *self.settings.evaluation.metrics]
        names += VALIDATED if self.training_data.validation is not None else []
        return Evaluation(None, None, dict.fromkeys(names) | self.drifting.column(present, moment))

    def accuracies(self, models: Tensor, ids: Sequence[int], moment: Moment) -> tuple[float | None, ...]:
        """Test each device's own model [K, M + Q], in order of id; None for a device without test data."""
        ids = sorted(ids)
        scores = self._scores(models, ids, moment)
        return tuple(
            a if known else None for a, known in zip(scores.accuracy.tolist(), scores.known, strict=True)
        )

    def _written_down(self, ids: Sequence[int], scores: Scores, moment: Moment) -> DeviceScores | None:
        """Return these devices' scores as rows of evaluation.csv, or None if the round is not recorded."""
        every = self.settings.evaluation.scores_every
        if every is None or moment.round % every:
            return None
        samples: dict[str, tuple[float | None, ...]] = {"samples": tuple(scores.samples.tolist())}
        return DeviceScores(tuple(ids), samples | scores.columns())

    def with_personal(
        self, evaluation: Evaluation, model: TrainedModel, ids: Sequence[int], moment: Moment
    ) -> Evaluation:
        """Add the mean accuracy of these devices' personal models; None without a personal model or test data."""
        names = averages(PERSONAL_ACCURACY)
        holders = model.side.holders(ids) if self.due(moment.round) else []
        scores = Scores.of(
            [self._scores(own, some, moment) for some, own in self.own_models(model, holders, moment)]
        )
        mean, _, deviation = scores.mean()
        averaged = dict(zip(names, (mean, deviation, scores.by_samples()), strict=True))
        devices = evaluation.devices
        if devices is not None:
            place = {id_: k for k, id_ in enumerate(holders)}
            own = {
                name: tuple(values[place[id_]] if id_ in place else None for id_ in devices.ids)
                for name, values in scores.columns("_personal").items()
            }
            devices = replace(devices, columns={**devices.columns, **own})
        return replace(evaluation, scalars={**evaluation.scalars, **averaged}, devices=devices)

    def own_models(
        self, model: TrainedModel, holders: Sequence[int], moment: Moment
    ) -> Iterator[tuple[Sequence[int], Tensor]]:
        """Yield groups of devices that keep a personal model, and the group's personal models [k, M + Q]."""
        for begin, end in blocks(len(holders), model.model):
            some = holders[begin:end]
            own = model.personal(some, self.samples(some, moment))
            assert own is not None
            yield some, own

    def test_samples(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return the number of each device's own test samples, in order of id."""
        assert self.device_tests is not None
        return tuple(len(self.device_tests.samples(id_)) for id_ in sorted(ids))

    def _scores(
        self,
        model: Tensor,
        ids: Sequence[int],
        moment: Moment,
        tests: DeviceTests | None = None,
        split: SplitInMemory | None = None,
    ) -> Scores:
        tests, split = tests or self.device_tests, split or self.training_data.test
        assert tests is not None
        held = [tests.samples(id_) for id_ in ids]
        return score(self.tester, model, split, self.drifting.rows(held, split, ids, moment))

    def samples(self, ids: Sequence[int], moment: Moment, concept: bool | None = None) -> list[np.ndarray]:
        """Return the indices of each device's training samples at a moment; `concept` is as in `Drifting.rows`."""
        self.device_data.bring(ids)
        held = [self.device_data.samples(id_) for id_ in ids]
        return self.drifting.rows(held, self.training_data.train, ids, moment, concept)

    def _divergence(self, diverged: Diverged, at: At, model: TrainedModel) -> Divergence:
        own = outside.place_of(getattr(self.settings.algorithm.aggregate, "__code__", None))
        whose, further = f"the aggregated model{f', made by {own}aggregate(),' * bool(own)}", ""
        if diverged.device is not None:
            whose = f"the model of device {self.training_data.devices.ids[diverged.device]}"
            further = ", or let the server drop such updates (rounds.not_finite: drop)"
        parts = self.training_data.task.losses, *self.settings.methods_on_models
        places = {part: outside.place_of(getattr(part, "__code__", None)) for part in parts}
        if own := ", ".join(f"{where}{part.__qualname__}()" for part, where in places.items() if where):
            further += f"; or correct your own {own}"
        return Divergence(
            f"training diverged in {at}: {whose} is not finite; lower learning.local.lr (now"
            f" {self.settings.local.lr}){further}",
            model.tensors(),
        )
