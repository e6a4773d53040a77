"""The learner: models, data, algorithm and warm start behind the few words the engine speaks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from edgefl.contract import Evaluation, Opening, Phase, Start
from edgefl.errors import EdgeflError, about
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.batches import Batches, draw_batches, keep_apart, steps_per_epoch
from edgefl.learning.cost import flops_per_sample
from edgefl.learning.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Dataset
from edgefl.learning.device_states import DeviceStates
from edgefl.learning.evaluation import evaluate, first_batch_losses
from edgefl.learning.gradients import Precision
from edgefl.learning.local_rounds import LocalResult, Payload
from edgefl.learning.local_training import LocalTraining
from edgefl.learning.models import Model, OutputTerm
from edgefl.learning.parameters import ModelLayout
from edgefl.learning.partitions import Facts, Partition
from edgefl.learning.settings import LearningSettings
from edgefl.learning.task import require_labels
from edgefl.learning.track import Diverged, Track
from edgefl.learning.warm_starts import Final, OpeningModel, Saved, WarmStart
from edgefl.rng import Streams


class Material:
    """What the learners of all cells share: data on the torch device, and what devices keep.

    Args:
        threads: of local training on a CPU; results do not depend on it.
    """

    def __init__(self, settings: LearningSettings, device: torch.device, *, threads: int = 1) -> None:
        dataset: Dataset = settings.dataset
        with about("learning", "dataset"):
            data = dataset.load()
            require_labels(data)
        self.classes = data.num_classes
        self.labels = data.train.y
        self.groups = data.train.groups
        self.input_shape: tuple[int, ...] = data.train.x.shape[1:]
        self.device = device
        self.threads = threads
        self.train = SplitInMemory(data.train, data.mean, data.std, device)
        self.test = SplitInMemory(data.test, data.mean, data.std, device)
        self._states: DeviceStates | None = None

    def states(self, devices: int) -> DeviceStates:
        """The vectors of all devices: a device that changes the cell takes its own along."""
        if self._states is None:
            self._states = DeviceStates(devices, self.device)
        return self._states


class TorchLearner:
    """Trains for real. Sessions, device ids and iterations go in and out; models stay inside.

    Args:
        devices: all devices of the run, present or not.
        homes_m: [devices, 2] where they are at time 0, for partitions by place.
        sites_m: [cells, 2] base stations, likewise.

    Attributes:
        rescue: file for the last finite model, written if training diverges; none: nowhere.
    """

    def __init__(
        self,
        settings: LearningSettings,
        material: Material,
        *,
        devices: int,
        streams: Streams,
        homes_m: np.ndarray | None = None,
        sites_m: np.ndarray | None = None,
    ) -> None:
        self._facts = Facts(material.groups, homes_m, sites_m)
        self._settings = settings
        self._streams = streams
        self._population = devices
        self._material = material
        self._algorithm: Algorithm = settings.algorithm
        self._warm_start: WarmStart = settings.warm_start
        self._partition: Partition = settings.partition
        self._module = build_module(settings.model, material.input_shape, material.classes, streams).eval()
        self._layout = ModelLayout.of(self._module)
        # counting imports much of PyTorch's compiler: not where the scenario gives the number
        self.flops_per_sample = (
            float(flops_per_sample(self._module, material.input_shape))
            if settings.flops_per_sample == "counted"
            else settings.flops_per_sample
        )
        self._initial = self._layout.flatten(self._module).to(material.device)
        self._module.to(material.device)
        self._training = LocalTraining(
            settings.model,
            self._module,
            material.train,
            settings.momentum,
            batching=settings.batching,
            precision=Precision(settings.precision == "bf16", settings.channels_last),
            memory_bytes=int(settings.memory_gb * 1e9) if settings.memory_gb else None,
            threads=material.threads,
        )
        if settings.batch < self._training.smallest_batch:
            raise EdgeflError("batch norm cannot train on batches of one sample", ("learning", "batch"))
        self._payload = Payload(settings.bits_per_parameter, settings.payload == "exchanged")
        self.payload_bits = self._payload.bits(self._layout, self._algorithm.vectors_up)
        self.batch = settings.batch
        self.version = 0
        self.rescue: Path | None = None

        self._global = Track(
            self._training, self._algorithm, material.states(devices), self._initial, self._payload
        )
        self._probe: Track | None = None
        self._probed = False  # whether a probe's update has arrived
        self._check: _Check | None = None
        self._finals: list[Final] = []
        self._pilot: Tensor | None = None
        self._saved: list[Saved] = []
        self._gradient: Tensor | None = None
        self._anchor: OutputTerm | None = None
        self._session, self._longest, self._at = 0, 1, ""
        self._labels: list[int] = []
        self._members: set[int] = set()
        self._assignment: tuple[int, list[np.ndarray]] = (-1, [])
        with about("learning", "partition"):
            self._assign(1)  # what these data cannot serve is refused before anything is written

    @property
    def parameters(self) -> int:
        """M, the number of trainable parameters."""
        return self._layout.parameters.size

    @property
    def model(self) -> Tensor:
        """[M + Q] the global model."""
        return self._global.model

    def open_session(self, session: int, ids: Sequence[int], longest: int) -> Opening:
        before = self._labels
        self._session, self._longest = session, longest
        self._members = set(ids)
        self._assign(session)
        held = np.concatenate([self._samples(id_) for id_ in ids])
        if not len(held):
            raise EdgeflError(f"no device of session {session} has any data", ("learning", "partition"))
        self._labels = np.unique(self._material.labels[held]).tolist()
        self._gradient = self._anchor = self._probe = self._check = None
        if session <= self._settings.pilot_sessions:
            return Opening("pilot")
        known = torch.zeros(self._material.classes, dtype=torch.bool, device=self.model.device)
        known[before] = True
        self._anchor = self._warm_start.anchor(self.model, known)
        probes = self._warm_start.probes
        if probes:
            if self._pilot is None:
                self._pilot = self._warm_start.pilot(self._finals, self._initial)
                self._finals = []
            # its own device vectors too: a probe starts afresh and leaves no trace
            scratch = DeviceStates(self._population, self._material.device)
            self._probe = Track(self._training, self._algorithm, scratch, self._pilot, self._payload)
            self._probe.open(self._pilot, self._held())
            self._probed = False
            if self._warm_start.checks(self._saved):
                self._check, probes = _Check(), probes + 1
        return Opening("train", probes, self._warm_start.probe_participants)

    def begin_training(self) -> Start:
        name, opening = "", OpeningModel(self.model, {})
        if self._session > self._settings.pilot_sessions:
            name = type(self._warm_start).__module__.rpartition(".")[2]
            opening = self._opening()
            if self._check and self._check.prefers_previous(self._held()):
                opening = OpeningModel(self.model, {self._session - 1: 1.0})
        self._probe = self._check = None
        self._global.open(opening.model, self._held())
        accuracy, loss = self._test_global()
        return Start(name, opening.weights, self._labels, accuracy, loss)

    def local_update(self, ids: Sequence[int], phase: Phase, round_: int) -> Mapping[int, int]:
        self._at = f"session {self._session}, {phase} round {round_}"
        self._members |= set(ids)
        ids = sorted(ids)
        batches = self._draw(ids, phase, round_)
        if phase == "probe":
            assert self._probe is not None
            if round_ > self._warm_start.probes:
                return self._compare(ids, batches)
            done = self._train(self._probe, ids, batches, self._learning_rate(1))
        else:
            done = self._train(self._global, ids, batches, self._learning_rate(round_), self._anchor)
        return {id_: int(steps) for id_, steps in zip(ids, done.steps, strict=True)}

    def reported_loss(self, ids: Sequence[int]) -> float:
        last = self._global.last
        positions = [k for k, id_ in enumerate(last.ids) if id_ in set(ids) and last.batches.steps[k]]
        losses = self._first_losses(last.received_by(positions), last.batches, positions)
        return float(np.mean(losses)) if losses else 0.0

    def aggregate(self, ids: Sequence[int]) -> None:
        if self._check is not None and self._check.running:
            self._check.arrived = list(ids)
            return
        track = self._probe or self._global
        if self._probe is None:
            self.version += 1
        else:
            self._probed = True
        before = track.model
        try:
            track.aggregate(ids, self._held())
        except Diverged as diverged:
            raise self._divergence(diverged, before) from diverged

    def evaluate(self) -> Evaluation | None:
        return Evaluation(*self._test_global())

    def close_session(self) -> None:
        if self._session <= self._settings.pilot_sessions:
            accuracy = self._test_global()[0] if self._warm_start.probes else 0.0
            self._finals.append(Final(self.model, accuracy))
        else:
            self._saved.append(Saved(self._session, self.model, self._gradient))
            self._saved = self._warm_start.retain(self._saved)

    def _train(
        self, track: Track, ids: list[int], batches: Batches, lr: float, anchor: OutputTerm | None = None
    ) -> LocalResult:
        try:
            return track.train(ids, batches, lr, [anchor] if anchor else [])
        except Diverged as diverged:
            raise self._divergence(diverged, track.model) from diverged

    def _opening(self) -> OpeningModel:
        if self._probe is not None and self._probed:
            assert self._pilot is not None
            change, _ = self._layout.split(self._probe.model - self._pilot)
            self._gradient = change.clone()
        return self._warm_start.opening(self.model, self._saved, self._gradient)

    def _compare(self, ids: list[int], batches: Batches) -> Mapping[int, int]:
        """A check round: the devices find the losses of two models on a mini-batch; nothing is trained.

        Two forward passes cost less than the one iteration that is booked for them.
        """
        assert self._check is not None  # no other round comes after the probes
        positions = [k for k in range(len(ids)) if batches.steps[k]]
        self._check.running = True
        for losses, model in (
            (self._check.opening, self._opening().model),
            (self._check.previous, self.model),
        ):
            found = self._first_losses(model, batches, positions)
            losses.update({ids[k]: loss for k, loss in zip(positions, found, strict=True)})
        return {id_: int(batches.steps[k] > 0) for k, id_ in enumerate(ids)}

    def _first_losses(self, models: Tensor, batches: Batches, positions: Sequence[int]) -> list[float]:
        return first_batch_losses(
            self._module, self._layout, models, self._material.train, batches, positions
        )

    def _draw(self, ids: Sequence[int], phase: Phase, round_: int) -> Batches:
        samples, validation = [self._samples(id_) for id_ in ids], []
        share = self._algorithm.keeps_apart()
        if share:
            key = self._assignment[0]
            pairs = [
                keep_apart(held, share, self._streams("validation", id_, key))
                for id_, held in zip(ids, samples, strict=True)
            ]
            samples, validation = [train for train, _ in pairs], [apart for _, apart in pairs]
        epochs, batch = self._settings.epochs, self._settings.batch
        smallest = self._training.smallest_batch
        steps = [self._settings.steps] * len(ids)
        if epochs:
            steps = [epochs * steps_per_epoch(len(own), batch, smallest) for own in samples]
        generators = [self._streams("batches", id_, self._session, phase, round_) for id_ in ids]
        return draw_batches(samples, steps, batch, generators, smallest, validation)

    def _divergence(self, diverged: Diverged, finite: Tensor) -> EdgeflError:
        whose = (
            "the aggregated model" if diverged.device is None else f"the model of device {diverged.device}"
        )
        message = (
            f"training diverged in {self._at}: {whose} is not finite; "
            f"lower learning.lr (now {self._settings.lr})"
        )
        if self.rescue is not None:
            torch.save(
                {"at": self._at, "device": diverged.device, "model": finite, "state": self._global.state},
                self.rescue,
            )
            message += f"; the last finite model is in {self.rescue}"
        return EdgeflError(message)

    def _test_global(self) -> tuple[float, float]:
        return evaluate(self._module, self._layout, self.model, self._material.test, self._labels)

    def _learning_rate(self, round_: int) -> float:
        """Polynomial decay within a session (J section VI); the papers leave its power open."""
        return self._settings.lr * (1 - (round_ - 1) / self._longest) ** self._settings.lr_power

    def _assign(self, session: int) -> None:
        key = self._partition.key(session)
        if self._assignment[0] != key:
            labels = self._material.labels
            samples = self._partition.assign(labels, self._population, session, self._streams, self._facts)
            self._assignment = (key, samples)

    def _samples(self, id_: int) -> np.ndarray:
        return self._assignment[1][id_]

    def _held(self) -> dict[int, int]:
        """Samples of each device that the session has seen, in order of id."""
        return {id_: len(self._samples(id_)) for id_ in sorted(self._members)}


class _Check:
    """Losses of the opening and of the previous model, as devices report them."""

    def __init__(self) -> None:
        self.running = False
        self.opening: dict[int, float] = {}
        self.previous: dict[int, float] = {}
        self.arrived: list[int] = []

    def prefers_previous(self, samples: Mapping[int, int]) -> bool:
        """Whether the reports that arrived, weighted by data, speak for the previous model."""
        better = [
            samples[id_] * (self.opening[id_] - self.previous[id_])
            for id_ in self.arrived
            if id_ in self.opening
        ]
        return sum(better) > 0


def build_module(
    model: Model, input_shape: tuple[int, ...], classes: int, streams: Streams
) -> torch.nn.Module:
    """The model's module with initial parameters that are a function of the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(streams("model").integers(2**62)))
        return model.build(input_shape, classes)
