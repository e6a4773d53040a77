"""Frozen parameters are downloaded once, or by each cell, with the first round of a device that arrives."""

from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from edgefl import EdgeflError, load_scenario
from edgefl.contract import SessionStart
from edgefl.learning.federation.learner import TorchLearner
from edgefl.learning.models import Model
from edgefl.run.plan import prepare

FROZEN, TRAINED = 32 * (64 * 5 + 5), 32 * (5 * 10 + 10)
BASE: dict[str, Any] = {
    "name": "frozen",
    "devices": {"count": 3},
    "layout": {"rings": 1},
    "radio": {"shadowing": "spatial"},
    "sessions": {"name": "schedule", "count": 1, "rounds": 9},
}


class Frozen(Model):
    """A frozen layer below a trained one."""

    typical_input: ClassVar = (8, 8)
    typical_classes: ClassVar = 10

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        frozen = nn.Linear(torch.Size(input_shape).numel(), 5).requires_grad_(False)
        return nn.Sequential(nn.Flatten(), frozen, nn.Linear(5, classes))


def learners(base_model: str, model: Any = None) -> dict[int, TorchLearner]:
    learning = {"dataset": "digits", "partition": "iid", "model": model or Frozen(), "batch": 16}
    return prepare(
        load_scenario({**BASE, "learning": {**learning, "base_model": base_model}}), device="cpu"
    ).learners


def down_bits(cells: dict[int, TorchLearner]) -> list[tuple[int, ...]]:
    """Of cell 0's rounds of devices 0 and 1, whose first does not arrive from device 1; then of cell 1's of all."""
    found, ids = [], (0, 1, 2)
    stage = next(iter(cells[0].session(SessionStart(1, ids, 9))))
    for round_, arrived in ((1, [0]), (2, [0, 1]), (3, [0, 1])):
        found.append(stage.train((0, 1), round_).down_bits)
        stage.aggregate(arrived)
    stage = next(iter(cells[1].session(SessionStart(1, ids, 9))))
    found.append(stage.train(ids, 1).down_bits)
    return found


@pytest.mark.parametrize(
    ("base_model", "first", "elsewhere"), [("held", 0, 0), ("once", FROZEN, 0), ("each_cell", FROZEN, FROZEN)]
)
def test_frozen_bits_are_booked_where_they_are_downloaded(
    base_model: str, first: int, elsewhere: int
) -> None:
    assert down_bits(learners(base_model)) == [
        (TRAINED + first, TRAINED + first),
        (TRAINED, TRAINED + first),  # device 1's first download did not arrive
        (TRAINED, TRAINED),
        (TRAINED + elsewhere, TRAINED + elsewhere, TRAINED + first),  # device 2 is new everywhere
    ]


def test_a_snapshot_remembers_who_has_the_base() -> None:
    cells = learners("once")
    stage = next(iter(cells[0].session(SessionStart(1, (0, 1), 9))))
    stage.train((0, 1), 1)
    stage.aggregate([1])
    data, again = cells[0].trainer.training_data, learners("once")[0].trainer.training_data
    again.restore(*data.state())
    assert again.lacks_base(0, (0, 1), each_cell=False).tolist() == [True, False]


def test_without_frozen_parameters_it_is_refused() -> None:
    with pytest.raises(EdgeflError, match=r"learning.base_model: no parameter of this model is frozen"):
        learners("once", "logistic")
