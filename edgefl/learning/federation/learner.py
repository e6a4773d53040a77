"""The learner that trains with PyTorch, an `edgefl.contract.Learner` with data, algorithm and warm start."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgefl.config import registry
from edgefl.contract import VALIDATION_SCORE, Opening, SessionStart, Stage
from edgefl.errors import EdgeflError
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.drifts import Moment
from edgefl.learning.federation.cell_building import begun_module, device_tests, local_training
from edgefl.learning.federation.clairvoyance import TrainBothStage
from edgefl.learning.federation.drifting import Drifting
from edgefl.learning.federation.federation import Federation, Progress, RoundFacts, TensorState
from edgefl.learning.federation.stages import CheckStage, Hooks, ProbeStage, TrainStage, construct
from edgefl.learning.federation.trainer import Trainer
from edgefl.learning.federation.training_data import TrainingData
from edgefl.learning.local.cost import flops_per_sample
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.partitions import PartitionInputs
from edgefl.learning.scores.tester import ModelTester
from edgefl.learning.settings import LearningSettings
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.release import release_of
from edgefl.learning.updates.trained_model import TrainedModel
from edgefl.learning.updates.transfers import Transfers
from edgefl.learning.warm_starts import Final, OpeningModel, Saved, WarmStart
from edgefl.learning.warm_starts._answers import pilot_of, retained_by
from edgefl.rng import Streams


class TorchLearner:
    """The PyTorch learner of one cell; callers see sessions, device ids and iterations, but no models.

    Args:
        homes_m: [devices, 2] positions of the devices at time 0, for partitions and drifts by location.
        sites_m: [cells, 2] positions of the base stations, for partitions and drifts by location.
        cell: number of the cell, for drifts that are limited to some cells.
        populations: device ids of each population that keeps its data; if empty, all devices are one population.
        kept: [devices] share of each device's dealt training samples that the device keeps; by default 1.

    Attributes:
        federation: the models of the cell, and the progress of the cell's session.
        trainer: the object that trains and tests the cell's models.
        doubts: notes on the model and the data that the user should read before the run begins.
    """

    def __init__(
        self,
        settings: LearningSettings,
        training_data: TrainingData,
        *,
        streams: Streams,
        homes_m: np.ndarray | None = None,
        sites_m: np.ndarray | None = None,
        cell: int = 0,
        populations: Sequence[range] = (),
        kept: np.ndarray | None = None,
    ) -> None:
        self._settings = settings
        self.hooks = Hooks()
        self.stage_of_training: Callable[..., TrainStage] = TrainStage
        module, doubts = begun_module(settings, training_data, streams)
        self.doubts = (*doubts, *training_data.notes)
        flops = settings.cost.flops_per_sample
        if flops == "counted":
            flops = float(flops_per_sample(module, training_data.inputs.shape))
        self.flops_per_sample = flops
        training = local_training(settings, training_data, module)
        layout = training.layout
        self._warm_start: WarmStart = settings.warm_start.of_model(layout.parameters)
        self.parameters = layout.parameters.size  # M, the number of trainable parameters
        self.payload_bits = settings.cost.bits(
            self.parameters, layout.statistics.size, settings.algorithm.vectors_up
        )
        devices = training_data.devices
        inputs = PartitionInputs(training_data.train.groups, homes_m, sites_m, kept)
        device_data = training_data.dealt(settings.partition, inputs, streams, populations)
        tests_of = partial(device_tests, settings.evaluation, training_data.train, device_data, streams)
        self.trainer = Trainer(
            settings=settings,
            training_data=training_data,
            device_data=device_data,
            streams=streams,
            module=module,
            tester=ModelTester(training_data.model, module, training_data.thread_pool),
            training=training,
            cell=cell,
            drifting=Drifting.of(settings.drift, inputs, devices.count, cell, streams),
            device_tests=tests_of(training_data.test),
            device_validation=tests_of(training_data.validation),
        )
        self.sees_time = self.trainer.drifting.sees_time
        self._initial = layout.flatten(module)
        self.federation = Federation(self._trained_model(devices.states, self._initial), self._initial)
        if settings.algorithm.knows_drift:
            # the models have separate buffers, since updates of both models wait for the server at the same time
            self.stage_of_training = TrainBothStage
            again = local_training(settings, training_data, module)
            self.federation.twin = self._trained_model(devices.new_states(), self._initial, again, "twin")

    @property
    def model(self) -> Tensor:
        """The global model [M + Q]."""
        return self.federation.model.model

    @property
    def train_stage(self) -> TrainStage:
        """The training stage of the current session."""
        stage = self.stage_of_training(self.trainer, self.federation, self._warm_start)
        stage.hooks = self.hooks
        return stage

    @property
    def device_data(self) -> DeviceData:
        """The training samples of each device."""
        return self.trainer.device_data

    def session(self, start: SessionStart) -> Iterator[Stage]:
        """Yield the stages of a session: probes and a check if the warm start needs them, then training.

        Raises:
            EdgeflError: the session's devices have no data.
        """
        device_data, federation = self.trainer.device_data, self.federation
        last, known = federation.now, self._known()  # before the samples are dealt again
        device_data.deal(start.number)
        labels = device_data.labels(start.ids)
        if not labels:
            raise EdgeflError(
                f"no device of session {start.number} has any data: choose a partition in which every device has"
                " samples, or fewer devices",
                ("learning", "partition"),
            )
        self.trainer.training_data.devices.serve(self.trainer.cell, start.ids)
        federation.gradient = federation.probe = None
        federation.previous = federation.model.model
        if start.number == self._settings.pilot_sessions + 1 and self._settings.after_pilot == "restart":
            self._restart()
            known = ()
        federation.now = Progress(
            replace(start, ids=()),
            known,
            last.ended,
            RoundFacts(moment=Moment(last.ended + 1, last.round.moment.time_s)),
            labels=labels,
            members=frozenset(start.ids),
        )
        if self._probes:
            self._open_probe()
        else:
            self._open_training()
        yield from self.stages()

    def stages(self) -> Iterator[Stage]:
        """Yield the stages of the open session, from the current one on; then close the session."""
        kinds: dict[str, Callable[..., Stage]] = {"probe": ProbeStage, "check": CheckStage}
        now = self.federation.now
        while now.stage:
            if now.stage == "train":
                yield self.train_stage
            else:
                yield kinds[now.stage](self.trainer, self.federation, self._warm_start)
            if now.stage == "train":
                self._close()
            elif now.stage == "probe" and self._warm_start.checks(self.federation.saved):
                now.stage = "check"
            else:
                self._open_training()

    def state(self) -> TensorState:
        """Return the learner's state for a snapshot: tensors by name, and facts."""
        return self.federation.state()

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Replace the learner's state by a state that `state` returned."""
        probe = self._trained_model(self.trainer.training_data.devices.new_states(), self._initial)
        self.federation.restore(tensors, facts, probe)
        # a snapshot of a run with a different warm start may contain more saved sessions
        self.federation.saved = retained_by(self._warm_start, self.federation.saved)
        self.trainer.device_data.deal(max(1, self.federation.now.session.number))

    @property
    def _is_pilot(self) -> bool:
        return self.federation.now.session.number <= self._settings.pilot_sessions

    @property
    def _probes(self) -> bool:
        return self._warm_start.probes > 0 and not self._is_pilot

    def _known(self) -> Sequence[int]:
        """Return the classes that members hold at the end of the last session, after any drift."""
        last, trainer = self.federation.now, self.trainer
        if self._settings.drift is None or not trainer.training_data.task.of_classes or not last.members:
            return last.labels
        train, samples = trainer.training_data.train, trainer.samples(sorted(last.members), last.round.moment)
        classes: list[int] = train.y[torch.from_numpy(np.concatenate(samples))].unique().tolist()
        return classes

    def _restart(self) -> None:
        """Return to the run's untrained model, as if the opening session were the first."""
        federation = self.federation
        for one in (federation.model, federation.twin):
            if one is not None:
                one.model, one.state = self._initial, {}
        federation.previous = torch.zeros_like(self._initial)

    def _trained_model(
        self,
        devices: DeviceStates,
        model: Tensor,
        training: LocalTraining | None = None,
        name: str = "model",
    ) -> TrainedModel:
        trainer, settings = self.trainer, self._settings
        kept = devices.of(lambda: trainer.device_data.key)
        return TrainedModel(
            training or trainer.training,
            settings.algorithm,
            kept,
            model,
            Transfers.of(settings, trainer.layout, kept),
            trainer.streams.below("chance", trainer.cell, name),
            release_of(settings, trainer.layout, devices),
        )

    def _open_probe(self) -> None:
        federation, now = self.federation, self.federation.now
        if federation.pilot is None:
            federation.pilot = pilot_of(self._warm_start, federation.finals, self._initial)
            federation.finals = []
        # a probe gets new device vectors, so that it neither reads nor changes the global model's vectors
        states = self.trainer.training_data.devices.new_states()
        federation.probe = self._trained_model(states, federation.pilot)
        federation.probe.open(federation.pilot, self.trainer.device_data.sizes(now.members))
        now.stage = "probe"

    def _open_training(self) -> None:
        """Construct the session's opening model, and begin training."""
        federation, now = self.federation, self.federation.now
        sizes = self.trainer.device_data.sizes(now.members)
        name, opening = "", OpeningModel(federation.model.model, {})
        if not self._is_pilot:
            name = registry.name_of("warm_starts", self._warm_start)
            opening = construct(self.trainer, federation, self._warm_start)
            if now.check.prefer_previous(sizes):
                opening = OpeningModel(federation.model.model, {now.session.number - 1: 1.0})
        federation.probe = None
        federation.model.open(opening.model, sizes)
        if federation.twin is not None:
            federation.twin.open(federation.twin.model, sizes)
        ids = sorted(now.members)
        tested = self.trainer.test(self.train_stage.deployed(ids), now.labels, now.round.moment, ids)
        now.opening = Opening(name, opening.weights, now.labels, tested.accuracy, tested.loss)
        now.stage = "train"

    def _close(self) -> None:
        """End the session, and save its last model for warm starts."""
        federation, now = self.federation, self.federation.now
        if self._is_pilot:
            # test with every warm start, so that runs that differ only in the warm start can share pilot sessions
            tested = self.trainer.test(self.model, now.labels, now.round.moment, sorted(now.members))
            judged = self.trainer.validate(self.model, now.labels, now.round.moment, sorted(now.members)).get(
                VALIDATION_SCORE, tested.accuracy
            )
            federation.finals.append(Final(self.model, judged or 0.0))
        else:
            federation.saved.append(Saved(now.session.number, self.model, federation.gradient))
            federation.saved = retained_by(self._warm_start, federation.saved)
        now.stage, now.ended = "", now.trained
