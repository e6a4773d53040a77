"""What a run trains, and where: of one federation, or of several together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edgefl.engine.federation.seat import Seat
from edgefl.learning.memory import Need
from edgefl.run_directory.score import ACCURACY
from edgefl.run_directory.snapshot import Snapshotable, TrainingParts

if TYPE_CHECKING:  # a run without learning never waits for PyTorch to load
    import torch


@dataclass(frozen=True)
class Training:
    """What a run trains, and where. A run that trains nothing has no journal: the engine alone is as fast.

    further: circumstances in which it is trained, beside those of all runs. cells: cell, or `Seat` where several
    federations share the cells -> its learner with PyTorch. score: name of that by which models are judged. needs: of
    memory, for certain.
    """

    state: TrainingParts
    torch_device: "torch.device"
    further: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[Any, Any] = field(default_factory=dict)
    score: str = ACCURACY
    needs: Sequence[Need] = ()


# learners by cell or `Seat`, what run.json says of model and machine, and what is trained; None: nothing is
Built = tuple[dict[Any, Any], dict[str, Any], Training | None]


def together(several: Mapping[str, Built]) -> Built:
    """Return what federations that share the cells have together.

    Where their models are judged by different scores, run.json says which is whose, else which is all's.
    """
    trained = {name: training for name, (_, _, training) in several.items() if training is not None}
    learners = {
        Seat(cell, name): learner for name, (own, _, _) in several.items() for cell, learner in own.items()
    }
    federations: dict[str, dict[str, Any]] = {
        name: {"model": said["model"]} for name, (_, said, _) in several.items()
    }
    where = next((several[name][1]["device"] for name in trained), "cpu")
    said: dict[str, Any] = {
        "device": where,
        "model": {"name": None, "parameters": None},
        "federations": federations,
    }
    if not trained:
        return learners, said, None
    scores = {name: training.score for name, training in trained.items()}
    if len(set(scores.values())) > 1:
        for name, score in scores.items():
            federations[name]["score"] = score
    elif (score := next(iter(scores.values()))) != ACCURACY:
        said["score"] = score
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
    cells = {
        Seat(cell, name): own for name, training in trained.items() for cell, own in training.cells.items()
    }
    needs = [need for training in trained.values() for need in training.needs]
    return (
        learners,
        said,
        Training(
            TrainingParts(parts), next(iter(trained.values())).torch_device, further, cells, needs=needs
        ),
    )
