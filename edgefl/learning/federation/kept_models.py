"""Collect the models of a cell to write to files: global, personal, and the models that serve devices."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from edgefl.learning.federation.learner import TorchLearner
from edgefl.learning.modules.model_files import stacked_state, whole_state
from edgefl.learning.updates.rows import blocks

GLOBAL, SERVED, PERSONAL = "global", "served", "personal"
DEVICES, MODEL_OF = "devices", "model_of_device"


def about(learner: TorchLearner) -> dict[str, Any]:
    """Return the origin of a learner's models: cell, session, phase, and the round within the phase and the run."""
    now = learner.federation.now
    at = now.round.at
    return {
        "cell": learner.trainer.cell,
        "session": at.session,
        "phase": at.phase,
        "round": at.round,
        "round_of_run": now.round.moment.round,  # rounds of the global model
    }


def collections(learner: TorchLearner, *, personal: bool) -> Iterator[tuple[str, Mapping[str, Tensor]]]:
    """Yield a cell's models by kind: the global model, the models that serve devices, and personal models.

    global: the module's `state_dict`. served: if several models serve devices, [C, *shape] by name, with `devices`
    [k] and `model_of_device` [k]. personal: [k, *shape] by name, with `devices` [k]. `devices` are the ids of devices
    whose last session was in this cell.
    """
    layout, model = learner.trainer.layout, learner.federation.model
    yield GLOBAL, whole_state(learner.trainer.module, layout, model.model)
    ids = learner.trainer.training_data.devices.last_in(learner.trainer.cell)
    if not learner.trainer.settings.algorithm.keeps_own_model():
        distinct, which = _served(learner, ids)
        if len(distinct):
            yield SERVED, {**stacked_state(layout, distinct), DEVICES: _ids(learner, ids), MODEL_OF: which}
    elif personal and (holders := model.side.holders(ids)):
        moment = learner.federation.now.round.moment
        rows = [stacked_state(layout, own) for _, own in learner.trainer.own_models(model, holders, moment)]
        joined = {name: torch.cat([part[name] for part in rows]) for name in rows[0]}
        yield PERSONAL, {**joined, DEVICES: _ids(learner, holders)}


def _served(learner: TorchLearner, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the models [C, M + Q] that serve devices, and each device's index [k]; empty if one model serves all."""
    model, stage = learner.federation.model.model, learner.train_stage
    distinct, which = model.new_empty((0, len(model))), []
    for begin, end in blocks(len(ids), model):
        rows = stage.deployed(ids[begin:end])
        if rows.dim() == 1 and not learner.trainer.settings.algorithm.knows_drift:
            return distinct, torch.empty(0, dtype=torch.int64)
        for row in rows.expand(end - begin, -1):
            same = (distinct == row).all(1).nonzero()
            if not len(same):
                distinct = torch.cat([distinct, row[None]])
            which.append(int(same[0]) if len(same) else len(distinct) - 1)
    return distinct, torch.tensor(which, dtype=torch.int64)


def _ids(learner: TorchLearner, numbers: Sequence[int]) -> Tensor:
    ids = learner.trainer.training_data.devices.ids
    return torch.tensor([ids[number] for number in numbers], dtype=torch.int64)
