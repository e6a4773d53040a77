"""The learner: models, data, algorithm and warm start behind the few words the engine speaks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from edgefl.contract import Evaluation, Opening, Phase, Start
from edgefl.errors import EdgeflError, about
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.cost import flops_per_sample
from edgefl.learning.datasets import Dataset
from edgefl.learning.device_data import DeviceSplit
from edgefl.learning.evaluation import evaluate
from edgefl.learning.local_training import Batches, LocalTraining, draw_batches
from edgefl.learning.models import Model
from edgefl.learning.parameters import Layout
from edgefl.learning.partitions import Facts, Partition
from edgefl.learning.warm_starts import Saved, WarmStart
from edgefl.rng import Streams
from edgefl.scenario import Learning


@dataclass
class _Track:
    """A model under training with its algorithm's state: the global one, or a probe's auxiliary one."""

    model: Tensor
    state: Any


class Material:
    """The data on the torch device; loaded once for the learners of all cells."""

    def __init__(self, settings: Learning, device: torch.device) -> None:
        dataset: Dataset = settings.dataset
        with about("learning", "dataset"):
            data = dataset.load()
        self.classes = data.num_classes
        self.labels = data.train.y
        self.groups = data.train.groups
        self.input_shape: tuple[int, ...] = data.train.x.shape[1:]
        self.device = device
        self.train = DeviceSplit(data.train, data.mean, data.std, device)
        self.test = DeviceSplit(data.test, data.mean, data.std, device)


class TorchLearner:
    """Trains for real. Sessions, device ids and iterations go in and out; models stay inside."""

    def __init__(
        self,
        settings: Learning,
        material: Material,
        *,
        devices: int,
        streams: Streams,
        homes_m: np.ndarray | None = None,
        sites_m: np.ndarray | None = None,
    ) -> None:
        """
        Args:
            devices: all devices of the run, present or not.
            homes_m: [devices, 2] where they are at time 0, for partitions by place.
            sites_m: [cells, 2] base stations, likewise.
        """
        self._facts = Facts(material.groups, homes_m, sites_m)
        self._settings = settings
        self._streams = streams
        self._population = devices
        self._algorithm: Algorithm = settings.algorithm
        self._warm_start: WarmStart = settings.warm_start
        self._partition: Partition = settings.partition
        model: Model = settings.model
        self._train_labels = material.labels
        self._test = material.test
        self._train = material.train
        input_shape, device = material.input_shape, material.device
        self._module = build_module(model, input_shape, material.classes, streams)
        with about("learning", "model"):
            _check_trainable(self._module)
        self._layout = Layout.of(self._module)
        counted = flops_per_sample(self._module, input_shape)
        initial = self._layout.flatten(self._module).to(device)
        self._module.to(device)
        self._training = LocalTraining(model, self._module, self._layout, self._train, settings.momentum)

        self.payload_bits = settings.bits_per_parameter * self._layout.size
        self.flops_per_sample = (
            float(counted) if settings.flops_per_sample == "counted" else settings.flops_per_sample
        )
        self.batch = settings.batch
        self.version = 0

        self._global = _Track(initial, None)
        self._probe: _Track | None = None
        self._pilot_finals: list[Tensor] = []
        self._pilot: Tensor | None = None
        self._saved: list[Saved] = []
        self._gradient: Tensor | None = None
        self._session = 0
        self._longest = 1
        self._labels: list[int] = []
        self._assignment: tuple[int, list[np.ndarray]] = (-1, [])
        self._received: tuple[list[int], Tensor, Batches]
        self._updates: tuple[list[int], Tensor] = ([], initial.new_empty((0, initial.numel())))
        with about("learning", "partition"):
            self._assign(1)  # what these data cannot serve is refused before anything is written

    @property
    def parameters(self) -> int:
        """M, the number of trainable parameters."""
        return self._layout.size

    @property
    def model(self) -> Tensor:
        """[M] the global model."""
        return self._global.model

    def open_session(self, session: int, ids: Sequence[int], longest: int) -> Opening:
        self._session, self._longest = session, longest
        self._assign(session)
        held = np.concatenate([self._samples(id_) for id_ in ids])
        self._labels = np.unique(self._train_labels[held]).tolist()
        self._gradient = None
        if session <= self._settings.pilot_sessions:
            return Opening("pilot")
        if self._warm_start.probes:
            if self._pilot is None:
                self._pilot = self._warm_start.pilot(self._pilot_finals)
            self._probe = _Track(self._pilot, self._algorithm.init_state(self._pilot))
        return Opening("train", self._warm_start.probes, self._warm_start.probe_participants)

    def begin_training(self) -> Start:
        name, weights = "", {}
        model = self._global.model
        if self._session > self._settings.pilot_sessions:
            if self._probe is not None:
                assert self._pilot is not None
                self._gradient = self._probe.model - self._pilot
                self._probe = None
            opening = self._warm_start.opening(model, self._saved, self._gradient)
            model, weights = opening.model, opening.weights
            name = type(self._warm_start).__module__.rpartition(".")[2]
        self._global = _Track(model, self._algorithm.init_state(model))
        accuracy, loss = self._test_global()
        return Start(name, weights, self._labels, accuracy, loss)

    def local_update(self, ids: Sequence[int], phase: Phase, round_: int) -> Mapping[int, int]:
        track = self._probe if phase == "probe" else self._global
        assert track is not None
        batches = draw_batches(
            [self._samples(id_) for id_ in ids],
            self._settings.steps,
            self._settings.batch,
            [self._streams("batches", id_, self._session, phase, round_) for id_ in ids],
        )
        lr = self._learning_rate(1 if phase == "probe" else round_)
        self._received = (list(ids), track.model, batches)
        rows = self._training.run(track.model, batches, lr, self._algorithm, track.state)
        self._updates = (list(ids), rows)
        return dict.fromkeys(ids, self._settings.steps)

    @torch.no_grad()
    def reported_loss(self, ids: Sequence[int]) -> float:
        trained, model, batches = self._received
        rows = [trained.index(id_) for id_ in ids]
        device = model.device
        samples = torch.from_numpy(batches.rows[rows, 0]).to(device).reshape(-1)
        weights = torch.from_numpy(batches.weights[rows, 0]).to(device).reshape(-1)
        logits = functional_call(self._module, self._layout.views(model), (self._train.normalised(samples),))
        losses = functional.cross_entropy(logits, self._train.y[samples], reduction="none")
        return float(losses @ weights) / len(rows)

    def aggregate(self, ids: Sequence[int]) -> None:
        trained, rows = self._updates
        arrived = [trained.index(id_) for id_ in sorted(ids)]
        sizes = np.array([len(self._samples(trained[row])) for row in arrived], dtype=np.float64)
        weights = torch.as_tensor(sizes / sizes.sum(), dtype=rows.dtype, device=rows.device)
        if len(arrived) < len(trained):
            rows = rows[torch.tensor(arrived, device=rows.device)]
        track = self._probe or self._global
        track.model, track.state = self._algorithm.aggregate(track.model, rows, weights, track.state)
        if not torch.isfinite(track.model).all():
            raise EdgeflError(
                f"training diverged in session {self._session}: the model is not finite; "
                f"lower learning.lr (now {self._settings.lr})"
            )
        if self._probe is None:
            self.version += 1

    def evaluate(self) -> Evaluation | None:
        return Evaluation(*self._test_global())

    def close_session(self) -> None:
        model = self._global.model
        if self._session <= self._settings.pilot_sessions:
            self._pilot_finals.append(model)
        else:
            self._saved.append(Saved(self._session, model, self._gradient))

    def _test_global(self) -> tuple[float, float]:
        return evaluate(self._module, self._layout, self._global.model, self._test, self._labels)

    def _learning_rate(self, round_: int) -> float:
        """Polynomial decay within a session (J section VI); the papers leave its power open."""
        return self._settings.lr * (1 - (round_ - 1) / self._longest) ** self._settings.lr_power

    def _assign(self, session: int) -> None:
        key = self._partition.key(session)
        if self._assignment[0] != key:
            samples = self._partition.assign(
                self._train_labels, self._population, session, self._streams, self._facts
            )
            self._assignment = (key, samples)

    def _samples(self, id_: int) -> np.ndarray:
        return self._assignment[1][id_]


def build_module(
    model: Model, input_shape: tuple[int, ...], classes: int, streams: Streams
) -> torch.nn.Module:
    """The model's module with initial parameters that are a function of the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(streams("model").integers(2**62)))
        return model.build(input_shape, classes)


def _check_trainable(module: torch.nn.Module) -> None:
    """Refuse what training of stacked devices would get wrong: state per device and random layers.

    Raises:
        EdgeflError: the module has buffers, such as batch statistics, or dropout.
    """
    buffers = [name for name, _ in module.named_buffers()]
    if buffers:
        raise EdgeflError(
            f"has buffers such as {buffers[0]} (batch statistics), which local training does not carry per"
            " device yet; choose a model without, e.g. logistic"
        )
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0:
            raise EdgeflError(
                f"has dropout ({name}), which local training of stacked devices does not draw yet; choose a"
                " model without, e.g. logistic"
            )
