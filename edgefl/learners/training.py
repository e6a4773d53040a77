"""What a run trains, and where: of one federation, or of several together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edgefl.engine.federation.seat import Seat
from edgefl.errors import EdgeflError
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

    Raises:
        EdgeflError: their models are judged by different scores, for which tables have one column.
    """
    trained = {name: training for name, (_, _, training) in several.items() if training is not None}
    learners = {
        Seat(cell, name): learner for name, (own, _, _) in several.items() for cell, learner in own.items()
    }
    federations = {name: {"model": said["model"]} for name, (_, said, _) in several.items()}
    where = next((several[name][1]["device"] for name in trained), "cpu")
    said = {"device": where, "model": {"name": None, "parameters": None}, "federations": federations}
    if not trained:
        return learners, said, None
    first, *others = trained
    score = trained[first].score
    for name in others:
        if trained[name].score != score:
            raise EdgeflError(
                f"{name} is judged by {trained[name].score}, and {first} by {score}: a run's tables have one column"
                " for the score; give both a task with the same",
                ("federations", name),
            )
    if score != ACCURACY:
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
        Training(TrainingParts(parts), trained[first].torch_device, further, cells, score, needs),
    )
