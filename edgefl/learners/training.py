"""The training of a run: its state, its torch device and facts about it, for one federation or several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edgefl.learning.memory import Need
from edgefl.run_directory.score import ACCURACY
from edgefl.run_directory.snapshot import Snapshotable, TrainingParts

if TYPE_CHECKING:  # a run without learning does not load PyTorch
    import torch

# federation, or an empty name -> cell -> its learner
Learners = Mapping[str, Mapping[int, Any]]


@dataclass(frozen=True)
class Training:
    """The training of a run: its state, its torch device and facts about it; a run without training keeps no journal.

    further: facts for run.json that only some runs have. cells: learners that train with PyTorch, by federation and
    cell. score: name of the models' score. needs: lower bounds of the memory that training needs. precisions:
    precisions of the gradients. processor: name of the processor.
    """

    state: TrainingParts
    torch_device: "torch.device"
    further: Mapping[str, str] = field(default_factory=dict)
    cells: Learners = field(default_factory=dict)
    score: str = ACCURACY
    needs: Sequence[Need] = ()
    precisions: frozenset[str] = frozenset()
    processor: str = "cpu"


# learners of one federation by cell, run.json's entries on model and machine, and the training, if any
Built = tuple[dict[int, Any], dict[str, Any], Training | None]


def together(several: Mapping[str, Built]) -> tuple[Learners, dict[str, Any], Training | None]:
    """Combine the learners and the training of a run's federations; run.json keeps each federation's entries."""
    learners = {name: own for name, (own, _, _) in several.items()}
    if set(several) == {""}:
        return learners, *several[""][1:]
    trained = {name: training for name, (_, _, training) in several.items() if training is not None}
    said: dict[str, Any] = {
        "device": next((several[name][1]["device"] for name in trained), "cpu"),
        "model": {"name": None, "parameters": None},
        "federations": {
            name: {key: value for key, value in own.items() if key != "device"}
            for name, (_, own, _) in several.items()
        },
    }
    if not trained:
        return learners, said, None
    parts: dict[str, Snapshotable] = {
        f"{part} of {name}": own
        for name, training in trained.items()
        for part, own in training.state.parts.items()
    }
    further = {
        f"{key} of {name}": content
        for name, training in trained.items()
        for key, content in training.further.items()
    }
    cells = {name: training.cells[""] for name, training in trained.items()}
    where = next(iter(trained.values())).torch_device
    precisions = frozenset().union(*(training.precisions for training in trained.values()))
    return learners, said, Training(TrainingParts(parts), where, further, cells, precisions=precisions)
