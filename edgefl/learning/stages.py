"""The stages of a session: probes, a check, training. They keep no state but the federation's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from edgefl.contract import BEGIN, REPORTED_LOSS, Evaluation, LocalRound, Now, StageFacts
from edgefl.learning import theory
from edgefl.learning.federation import At, Federation, Reports
from edgefl.learning.models import OutputTerm
from edgefl.learning.trained_model import TrainedModel
from edgefl.learning.trainer import PERSONAL_ACCURACY, TEST_SAMPLES, Trainer
from edgefl.learning.warm_starts import OpeningModel, WarmStart


@dataclass(frozen=True)
class TrainStage:
    """The stage of training the global model; in the first P sessions its phase is called pilot."""

    trainer: Trainer
    federation: Federation
    warm_start: WarmStart

    @property
    def facts(self) -> StageFacts:
        phase = "pilot" if self._is_pilot else "train"
        return StageFacts(phase, rounds=None, opening=self.federation.now.opening)

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        federation, session, trainer = self.federation, self.federation.now, self.trainer
        take_in(trainer, federation, [federation.model, federation.twin], ids, self.facts.phase, round_)
        session.begin_round(self.facts.phase, round_, now.time_s)
        local = self._local_round(ids, trainer.learning_rate(round_, session.longest, now.progress))
        further: dict[str, tuple[float | None, ...]] = {}
        if session.reports:
            further[REPORTED_LOSS] = trainer.losses_received(federation.model)
        if trainer.device_tests is not None:
            tested = trainer.due(session.moment.round)
            further[PERSONAL_ACCURACY] = (
                trainer.accuracies(self._personal_models(ids), ids, session) if tested else (None,) * len(ids)
            )
            further[TEST_SAMPLES] = trainer.test_samples(ids)
        return replace(local, scalars={**local.scalars, **further}) if further else local

    def aggregate(self, ids: Sequence[int]) -> None:
        self.trainer.aggregate(self.federation.model, ids, self.federation.now)

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        trainer, now = self.trainer, self.federation.now
        tested = list(present) or sorted(now.members)  # if nobody is there any more
        if trainer.due(now.moment.round):
            evaluation = trainer.test(self._deployed(tested), now, tested)
        else:
            evaluation = trainer.untested(now, tested)
        recording = trainer.settings.theory
        if recording is None:
            return evaluation
        due = now.moment.round % recording.every == 0
        measured = (
            theory.measure(trainer, self.federation.model, now.at) if due else dict.fromkeys(theory.COLUMNS)
        )
        return replace(evaluation, scalars={**evaluation.scalars, **measured})

    def _deployed(self, ids: Sequence[int]) -> Tensor:
        """Return the model with which these devices are served, [M + Q], or one of each, [K, M + Q]."""
        samples = self.trainer.samples(ids, self.federation.now.moment)
        return self.federation.model.deployed(ids, samples)

    def _local_round(self, ids: Sequence[int], lr: float) -> LocalRound:
        federation, anchor = self.federation, self._anchor()
        return self.trainer.train(federation.model, ids, federation.now, lr, [anchor] if anchor else [])

    def _personal_models(self, ids: Sequence[int]) -> Tensor:
        return self.federation.model.trained_personal()

    @property
    def _is_pilot(self) -> bool:
        return self.federation.now.number <= self.trainer.settings.pilot_sessions

    def _anchor(self) -> OutputTerm | None:
        if self._is_pilot:
            return None
        previous = self.federation.previous
        known = torch.zeros(self.trainer.training_data.classes, dtype=torch.bool, device=previous.device)
        known[self.federation.now.known] = True
        return self.warm_start.anchor(previous, known)


@dataclass(frozen=True)
class ProbeStage:
    """The stage that trains an auxiliary model from w_pilot to measure the session's gradient; then it is dropped."""

    trainer: Trainer
    federation: Federation
    warm_start: WarmStart

    @property
    def facts(self) -> StageFacts:
        start = self.warm_start
        return StageFacts("probe", start.probes, start.probe_participants, evaluates=False)

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        federation, session = self.federation, self.federation.now
        assert federation.probe is not None
        take_in(self.trainer, federation, [federation.probe], ids, "probe", round_)
        session.begin_round("probe", round_, now.time_s, moves_on=False)
        settings = self.trainer.settings
        lr = settings.lr * settings.probe_lr
        return self.trainer.train(federation.probe, ids, session, lr, [])

    def aggregate(self, ids: Sequence[int]) -> None:
        assert self.federation.probe is not None
        self.trainer.aggregate(self.federation.probe, ids, self.federation.now)
        self.federation.now.probed = True

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        return None


@dataclass(frozen=True)
class CheckStage:
    """The stage of one round in which devices report the loss of the constructed and of the previous model.

    Nothing is trained. Two forward passes on a mini-batch cost less than the one iteration that is booked.
    """

    trainer: Trainer
    federation: Federation
    warm_start: WarmStart

    @property
    def facts(self) -> StageFacts:
        return StageFacts("probe", 1, self.warm_start.probe_participants, evaluates=False)

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        federation, session = self.federation, self.federation.now
        take_in(self.trainer, federation, [], ids, "probe", round_)
        session.begin_round("probe", round_, now.time_s, moves_on=False)
        opening = construct(self.trainer, federation, self.warm_start).model
        local, (of_opening, of_previous) = self.trainer.compare(
            ids, session, [opening, federation.model.model]
        )
        session.check = Reports(of_opening, of_previous)
        return local

    def aggregate(self, ids: Sequence[int]) -> None:
        self.federation.now.check.arrived = list(ids)

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        return None


def take_in(
    trainer: Trainer,
    federation: Federation,
    tracks: Sequence[TrainedModel | None],
    ids: Sequence[int],
    phase: str,
    round_: int,
) -> None:
    """Let those of a round's participants that are new join the session, and the tracks that are trained.

    New is also who has been in another cell's session since it was in this one. From now on the session is tested
    on the labels of the new ones too. A round that is trained again after a restart has had this already; one that
    was interrupted in the middle of it has all of it again, and comes to the same.
    """
    now, training_data = federation.now, trainer.training_data
    if now.at == At(now.number, phase, round_):
        return
    newcomers = sorted({*ids} - now.members | training_data.from_elsewhere(trainer.cell, ids))
    if not newcomers:
        return
    members = now.members | set(newcomers)
    for track in tracks:
        if track is not None:
            track.join(newcomers, trainer.device_data.sizes(members))
    now.labels = sorted({*now.labels, *trainer.device_data.labels(newcomers)})
    now.members = members
    training_data.serve(trainer.cell, newcomers)


def construct(trainer: Trainer, federation: Federation, warm_start: WarmStart) -> OpeningModel:
    """Construct the opening model of a session after the pilot ones, with the gradient that probes measured."""
    if federation.probe is not None and federation.now.probed:
        assert federation.pilot is not None
        change, _ = trainer.layout.split(federation.probe.model - federation.pilot)
        federation.gradient = change.clone()
    return warm_start.opening(federation.model.model, federation.saved, federation.gradient)
