"""Call a cell's learner on the digits as the engine calls it."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from edgefl.config import registry
from edgefl.contract import SessionStart
from edgefl.learning.datasets.digits import Digits
from edgefl.learning.federation.learner import TorchLearner
from edgefl.learning.federation.stages import TrainStage
from edgefl.learning.federation.training_data import TrainingData
from edgefl.learning.models import Model
from edgefl.learning.settings import LearningSettings
from edgefl.rng import Streams
from edgefl.testing.cell import within

DEVICES = 12
EVERYONE = list(range(DEVICES))
CPU = torch.device("cpu")
DIGITS = Digits().load()  # shared by all learners, as they never write to a data set


class Normed(Model):
    """A model with batch norm's statistics, and with dropout if `dropout` is above 0."""

    typical_input = (8, 8)
    typical_classes = 10
    dropout: float = 0.0

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        layers = [nn.Flatten(), nn.BatchNorm1d(64), nn.Dropout(self.dropout), nn.Linear(64, classes)]
        return nn.Sequential(*layers)


def settings_of(**learning: Any) -> LearningSettings:
    """Return settings, including a drift or several epochs if the algorithm requires them."""
    algorithm = learning.get("algorithm", "fedavg")
    if algorithm == "oracle":
        learning = {"drift": {"at": 2}, **learning}
    if isinstance(algorithm, str) and registry.get("algorithms", algorithm)().keeps_apart():
        learning = within({"local": {"epochs": 2}}, learning)
    given: dict[str, Any] = {
        "dataset": "digits",
        "model": "logistic",
        "partition": {"name": "dirichlet", "alpha": 0.5, "overlap": 0.0},
        "local": {"batch": 16, "lr": 0.05},
        "cost": {"flops_per_sample": 1.0},  # counting FLOPs takes longer than the rest of a test
    }
    return LearningSettings(**within(given, learning))


def data_of(settings: LearningSettings, devices: int = DEVICES, threads: int = 1) -> TrainingData:
    return TrainingData(settings, CPU, devices=devices, threads=threads, load=lambda _: DIGITS)


def learner(
    threads: int = 1,
    populations: Sequence[range] = (),
    data: TrainingData | None = None,
    cell: int = 0,
    **learning: Any,
) -> TorchLearner:
    """Make a learner; data: the data that it shares with the learner of another cell, if it shares any."""
    settings = settings_of(**learning)
    data = data or data_of(settings, threads=threads)
    return TorchLearner(settings, data, streams=Streams(5), populations=populations, cell=cell)


def begin(
    one: TorchLearner, number: int = 1, ids: Sequence[int] = EVERYONE, longest: int = 5, reports: bool = False
) -> Iterator[Any]:
    """Return the stages of a session."""
    return one.session(SessionStart(number, tuple(ids), longest, reports))


def opened(one: TorchLearner, number: int = 1, ids: Sequence[int] = EVERYONE, **how: Any) -> TrainStage:
    """Return the only stage of a session without probes."""
    stage = next(begin(one, number, ids, **how))
    assert isinstance(stage, TrainStage)
    return stage


def round_of(stage: Any, ids: Sequence[int] = EVERYONE, number: int = 1) -> Any:
    """Train and aggregate a round in which every update arrives; return the results of the devices' training."""
    local = stage.train(ids, number)
    stage.aggregate(ids)
    return local
