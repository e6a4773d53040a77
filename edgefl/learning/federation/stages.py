"""The stages of a session: probes, a check and training. Stages have no state of their own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from edgefl.contract import (
    AGGREGATION,
    BEGIN,
    REPORTED_LOSS,
    REPORTED_NORM,
    TRAINING,
    Evaluation,
    Expected,
    LocalRound,
    Now,
    StageFacts,
    Staleness,
)
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.drifts import Moment
from edgefl.learning.federation import theory
from edgefl.learning.federation.federation import At, Federation, Reports, RoundFacts
from edgefl.learning.federation.first_losses import compare, losses_received
from edgefl.learning.federation.trainer import PERSONAL_ACCURACY, TEST_SAMPLES, Foretell, Trainer
from edgefl.learning.models import OutputTerm
from edgefl.learning.tensors import in_double
from edgefl.learning.updates import answers
from edgefl.learning.updates.arrivals import Weighing
from edgefl.learning.updates.trained_model import TrainedModel
from edgefl.learning.updates.updates import Update
from edgefl.learning.warm_starts import OpeningModel, WarmStart
from edgefl.learning.warm_starts._answers import opening_of

OF_LOCAL_MODELS = (PERSONAL_ACCURACY, REPORTED_NORM)


class _SessionStage:
    """Base class of a session's stages, which change only the federation's state."""

    def __init__(self, trainer: Trainer, federation: Federation, warm_start: WarmStart) -> None:
        self.trainer, self.federation, self.warm_start = trainer, federation, warm_start

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        return None

    def expected(self, ids: Sequence[int]) -> Expected:
        """Return the expected work of these devices in a round that trains the global model.

        Left out: savings by early stopping or partial work, and the cost of tests and of choosing a model.
        """
        trainer, model = self.trainer, self.federation.model
        sizes = trainer.device_data.sizes(ids)
        held, compared = [sizes[id_] for id_ in ids], model.compared(self._terms())
        return trainer.work.expected(ids, held, model.expected_bits(), compared)

    def _terms(self) -> list[OutputTerm]:
        """Return the terms that the warm start adds to the local loss."""
        return []

    @property
    def overlapping(self) -> Staleness | None:
        """The weights of stale updates in this stage, or None if the stage's rounds do not overlap."""
        return None

    def _begin(
        self, models: Sequence[TrainedModel], ids: Sequence[int], phase: str, number: int, now: Now
    ) -> RoundFacts:
        """Begin a round that trains these models: admit new participants, and drop updates that did not arrive."""
        progress = self.federation.now
        at = At(progress.session.number, phase, number)
        self._take_in(models, ids, at)
        if self.overlapping is None:
            for model in models:
                model.waiting = {}
        # a round that does not train the global model uses the moment of the next round that trains it
        of_global = number if self.federation.model in models else 1
        if self.overlapping is not None:  # overlapping rounds use the moment of the next model
            progress.models = max(progress.models, now.models or 0)
            of_global = progress.models + 1
        progress.round = RoundFacts(at, Moment(progress.before + of_global, now.time_s))
        progress.measured = {}
        return progress.round

    def _take_in(self, models: Sequence[TrainedModel], ids: Sequence[int], at: At) -> None:
        """Admit a round's new participants to the session and to the models that it trains.

        A device that has been in another cell's session since it was last in this cell's session is also new. From
        this round on, the session is also tested on the new participants' labels. A round that is trained again after
        a restart has already admitted its participants; an interrupted admission is repeated, with the same result.
        """
        now, trainer = self.federation.now, self.trainer
        if now.round.at[:2] == at[:2] and now.round.at.round >= at.round:
            return
        newcomers = sorted(
            {*ids} - now.members | trainer.training_data.devices.from_elsewhere(trainer.cell, ids)
        )
        if not newcomers:
            return
        members = now.members | set(newcomers)
        for model in models:
            model.join(newcomers, trainer.device_data.sizes(members))
        now.labels = sorted({*now.labels, *trainer.device_data.labels(newcomers)})
        now.members = members
        trainer.training_data.devices.serve(trainer.cell, newcomers)

    def _aggregate(
        self, model: TrainedModel, ids: Sequence[int], weights: Sequence[float] | None = None
    ) -> None:
        """Aggregate the updates of these devices; if rounds do not overlap, all other updates are lost."""
        now = self.federation.now
        if self.overlapping is None:
            model.waiting = {id_: model.waiting[id_] for id_ in ids}
        sizes, at = self.trainer.device_data.sizes(now.members), now.round.at
        with self.trainer.naming_divergence(model, at):
            reweighed = None if weights is None else dict(zip(ids, weights, strict=True))
            model.aggregate(ids, sizes, Weighing(self.overlapping, reweighed), (*at, now.models))


@dataclass
class Hooks:
    """Functions that training calls, shared by all stages of a learner because they may change during a session.

    watch: called with every evaluation of the global model. foretell: as in `Trainer.train`.
    """

    watch: Callable[[Evaluation], None] | None = None
    foretell: Foretell | None = None


class TrainStage(_SessionStage):
    """The stage that trains the global model; in the first P sessions its phase is called pilot."""

    hooks: Hooks

    @property
    def facts(self) -> StageFacts:
        phase = "pilot" if self._is_pilot else "train"
        return StageFacts(phase, rounds=None, opening=self.federation.now.opening)

    @property
    def overlapping(self) -> Staleness | None:
        return self.federation.now.session.overlapping

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        session, trainer = self.federation.now.session, self.trainer
        facts = self._begin(self._models, ids, self.facts.phase, round_, now)
        of_run = (
            facts.moment.round
        )  # if rounds overlap, the number of the next model, not that of the dispatch
        of_session = of_run - self.federation.now.before
        lr = trainer.learning_rate(of_session, session.longest, now.progress, of_run=of_run)
        local = self._local_round(ids, facts, lr)
        further: dict[str, tuple[float | None, ...]] = {}
        if session.reports:
            further[REPORTED_LOSS] = self._losses_received(ids)
            local = replace(local, after={**local.after, REPORTED_LOSS: TRAINING})
        if session.norms:
            received, trained = (trainer.layout.split(rows)[0] for rows in self._received_and_trained(ids))
            further[REPORTED_NORM] = tuple(in_double(trained - received).norm(dim=1).tolist())
            local = replace(local, after={**local.after, REPORTED_NORM: TRAINING})
        if trainer.device_tests is not None:
            tested = trainer.due(facts.moment.round)
            further[PERSONAL_ACCURACY] = (
                trainer.accuracies(self._personal_models(ids), ids, facts.moment)
                if tested
                else (None,) * len(ids)
            )
            further[TEST_SAMPLES] = trainer.test_samples(ids)
            # a personal model exists once the device's update has arrived, a local model after training
            kept = trainer.settings.algorithm.keeps_own_model()
            local = replace(
                local,
                after={**local.after, PERSONAL_ACCURACY: AGGREGATION if kept else TRAINING},
                averaged={} if kept else {PERSONAL_ACCURACY: TEST_SAMPLES},
            )
        return _told(replace(local, scalars={**local.scalars, **further}))

    def uploaded(self, ids: Sequence[int]) -> Mapping[str, tuple[float, ...]]:
        return self.federation.model.uploaded(ids, self.trainer.device_data.sizes(set(ids)))

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        participants = list(self.federation.model.waiting.values())
        for model in self._models:
            self._aggregate(model, ids, weights)
        now = self.federation.now
        if self.overlapping is not None:
            now.models += 1
            moment = replace(now.round.moment, round=now.before + now.models)
            now.round = replace(now.round, moment=moment)
        self.federation.now.measured = self._measured(participants)

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        trainer, now, model = self.trainer, self.federation.now, self.federation.model
        # test for the devices present, or for the session's members if no device is present
        tested, moment = (
            list(present) or sorted(now.members),
            now.round.moment,
        )
        if trainer.due(moment.round):
            deployed = self.deployed(tested)
            evaluation = trainer.test(deployed, now.labels, moment, tested)
            validated = trainer.validate(deployed, now.labels, moment, tested)
            further = trainer.further_metrics(deployed, now.labels)
            evaluation = replace(evaluation, scalars={**evaluation.scalars, **further, **validated})
        else:
            evaluation = trainer.untested(moment, tested)
        if trainer.device_tests is not None and trainer.settings.algorithm.keeps_own_model():
            evaluation = trainer.with_personal(evaluation, model, tested, moment)
        measured = now.measured or self._measured(list(model.waiting.values()))
        evaluation = replace(evaluation, scalars={**evaluation.scalars, **measured})
        if self.hooks.watch is not None:
            self.hooks.watch(evaluation)
        return evaluation

    @property
    def _models(self) -> list[TrainedModel]:
        """The models that this stage trains."""
        return [self.federation.model]

    def _measured(self, updates: Sequence[Update]) -> dict[str, float | None]:
        """Return the columns theory_* for these updates' round, None if not measured; {} without `theory`."""
        at, moment = self.federation.now.round.at, self.federation.now.round.moment
        every = self.trainer.settings.theory
        if every is None:
            return {}
        rounds = {id(update.round): update.round for update in updates}
        if moment.round % every or len(rounds) != 1:
            return dict.fromkeys(theory.COLUMNS)
        (trained,) = rounds.values()
        return theory.measure(self.trainer, trained, self.federation.model.model, at)

    def deployed(self, ids: Sequence[int]) -> Tensor:
        """Return the model that serves these devices, [M + Q] for all, or [K, M + Q] one for each device."""
        samples: Sequence[np.ndarray] = ()
        if type(self.trainer.settings.algorithm).deployed is not Algorithm.deployed:
            samples = self.trainer.samples(ids, self.federation.now.round.moment)
        return self.federation.model.deployed(ids, samples)

    def _local_round(self, ids: Sequence[int], facts: RoundFacts, lr: float) -> LocalRound:
        drops = self.federation.now.session.drops
        return self.trainer.train(
            self.federation.model, ids, facts, lr, self._terms(), drops=drops, foretell=self.hooks.foretell
        )

    def _personal_models(self, ids: Sequence[int]) -> Tensor:
        model = self.federation.model
        return model.side.trained_personal(model.waiting_round(ids))

    def _losses_received(self, ids: Sequence[int]) -> tuple[float | None, ...]:
        return losses_received(self.trainer, self.federation.model.waiting_round(ids))

    def _received_and_trained(self, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return the models that devices received, [M + Q] or [K, M + Q], and the local models [K, M + Q]."""
        trained = self.federation.model.waiting_round(ids)
        return trained.start, trained.rows

    @property
    def _is_pilot(self) -> bool:
        return self.federation.now.session.number <= self.trainer.settings.pilot_sessions

    def _terms(self) -> list[OutputTerm]:
        if self._is_pilot:
            return []
        previous = self.federation.previous
        data = self.trainer.training_data
        known = torch.ones(data.classes, dtype=torch.bool, device=previous.device)
        if data.task.of_classes:
            known.fill_(False)[list(self.federation.now.known)] = True
        method = self.warm_start.anchor
        anchor = answers.term(method, method(previous, known), "learning", "warm_start")
        return [] if anchor is None else [anchor]


def _told(local: LocalRound) -> LocalRound:
    """Drop the scalars of local models that are not finite."""
    if not local.not_finite:
        return local
    lost = [id_ in local.not_finite for id_ in local.ids]
    scalars = {
        name: tuple(None if gone else value for value, gone in zip(values, lost, strict=True))
        if name in OF_LOCAL_MODELS
        else values
        for name, values in local.scalars.items()
    }
    return replace(local, scalars=scalars)


class ProbeStage(_SessionStage):
    """The stage that trains an auxiliary model from w_pilot to measure the session's gradient."""

    @property
    def facts(self) -> StageFacts:
        start = self.warm_start
        return StageFacts("probe", start.probes, start.probe_participants, evaluates=False)

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        facts = self._begin([self._model], ids, "probe", round_, now)
        settings = self.trainer.settings
        lr, drops = settings.local.lr * settings.local.probe_lr, self.federation.now.session.drops
        return self.trainer.train(self._model, ids, facts, lr, [], drops=drops)

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        self._aggregate(self._model, ids, weights)
        self.federation.now.probed = True

    @property
    def _model(self) -> TrainedModel:
        assert self.federation.probe is not None
        return self.federation.probe


class CheckStage(_SessionStage):
    """A stage of one round, in which devices report the losses of the constructed and the previous model.

    Nothing is trained: devices run forward passes of two models on a mini-batch; with `booked: processed` these
    passes count as an iteration.
    """

    @property
    def facts(self) -> StageFacts:
        return StageFacts("probe", 1, self.warm_start.probe_participants, evaluates=False)

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        federation = self.federation
        facts = self._begin([], ids, "probe", round_, now)
        opening = construct(self.trainer, federation, self.warm_start).model
        local, (of_opening, of_previous) = compare(
            self.trainer, ids, facts, [opening, federation.model.model]
        )
        federation.now.check = Reports(of_opening, of_previous)
        return local

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        self.federation.now.check = replace(self.federation.now.check, arrived=list(ids))


def construct(trainer: Trainer, federation: Federation, warm_start: WarmStart) -> OpeningModel:
    """Construct a session's opening model after the pilot sessions, from the gradient that the probe measured."""
    if federation.probe is not None and federation.now.probed:
        assert federation.pilot is not None
        change, _ = trainer.layout.split(federation.probe.model - federation.pilot)
        federation.gradient = change.clone()
    return opening_of(warm_start, federation.model.model, federation.saved, federation.gradient)
