"""Test that server and devices keep consistent state with codecs in both directions."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from edgefl.config import registry
from edgefl.contract import SessionStart
from edgefl.learning.updates.arrivals import joined
from edgefl.learning.updates.transfers import HELD
from edgefl.learning.updates.updates import TrainedRound
from tests.unit.learning.federation.test_resume import DEVICES, Cell, settings

CODECS = registry.names("codecs")
ROUNDS = 40
ALL = tuple(range(DEVICES))


def played(algorithm: str, rounds: int = ROUNDS, **how: str) -> Any:
    """Return the stage after a training, shared by tests that do not continue it."""
    key = (algorithm, rounds, *sorted(how.items()))
    if key not in PLAYED:
        PLAYED[key] = play(algorithm, rounds, **how)
    return PLAYED[key]


PLAYED: dict[Any, Any] = {}


def play(algorithm: str, rounds: int = ROUNDS, parameters: dict[str, Any] | None = None, **how: Any) -> Any:
    """Train with all devices but one, in turn, and with a lost update in every third round; return the stage."""
    chosen = settings(algorithm, "previous", cost={"payload": "exchanged"}, **how)
    if parameters:
        chosen = chosen.model_copy(update={"algorithm": chosen.algorithm.model_copy(update=parameters)})
    stage = next(Cell(chosen).one.session(SessionStart(1, ALL, longest=rounds + 3)))
    for round_ in range(1, rounds + 1):
        ids = [id_ for id_ in ALL if id_ != round_ % DEVICES]
        stage.train(ids, round_)
        stage.aggregate(ids[1:] if round_ % 3 == 0 else ids)
    return stage


def shares(stage: Any) -> np.ndarray:
    sizes = np.array(list(stage.trainer.device_data.sizes(list(ALL)).values()), dtype=float)
    return sizes / sizes.sum()


def kept_mean(stage: Any, name: str) -> Tensor:
    """Return the mean of the devices' vectors, by data size."""
    rows = stage.federation.model.devices.rows(name, ALL, torch.zeros(stage.federation.model.model.shape))
    return torch.from_numpy(shares(stage)) @ rows.double()


def model_of(stage: Any) -> Tensor:
    made: Tensor = stage.federation.model.model.double()
    return made


def off(server: Tensor, devices: Tensor) -> float:
    """Return the distance of the server's vector from the devices' mean, relative to the mean's norm."""
    return float((server - devices).norm() / devices.norm())


IDENTITY = 1e-5
EPS = float(torch.finfo(torch.float32).eps)


@pytest.mark.parametrize("codec", CODECS)
def test_scaffolds_control_is_the_mean_of_its_devices_whatever_they_receive(codec: str) -> None:
    stage = played("scaffold", downlink_codec=codec)
    assert off(stage.federation.model.state["control"], kept_mean(stage, "control")) < IDENTITY


@pytest.mark.parametrize("way", ["uplink_codec", "downlink_codec"])
@pytest.mark.parametrize(
    ("algorithm", "vector", "scale"),
    [
        ("feddc", "drift", 1.0),
        # changes are divided by lr and by the displacement of two steps with momentum 0.9
        ("feddc", "control", 1 / (0.05 * 2.9)),
        ("scaffold", "control", 1 / (0.05 * 2.9)),
        ("feddyn", "gradient", 0.01),  # alpha
        ("ca2fl", "cached", 1.0),
    ],
)
@pytest.mark.parametrize("codec", ["top_k", "qsgd"])
def test_server_and_devices_sum_the_same_whichever_way_is_coded(
    algorithm: str, vector: str, scale: float, way: str, codec: str
) -> None:
    """Sums agree up to the rounding of one difference of float32 models per round."""
    stage = played(algorithm, **{way: codec})
    apart = stage.federation.model.state[vector] - kept_mean(stage, vector)
    assert float(apart.norm()) < ROUNDS * EPS * scale * float(model_of(stage).norm())


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("algorithm", ["fedavgm", "fednova"])
def test_special_cases_of_fedavg_hold_with_a_downlink_codec(algorithm: str, codec: str) -> None:
    """With a downlink codec, fedavgm without momentum and FedNova with equal steps still equal FedAvg."""
    parameters = {"beta": 0.0} if algorithm == "fedavgm" else {}
    coded = model_of(play(algorithm, 10, parameters, downlink_codec=codec))
    plain = model_of(played("fedavg", 10, downlink_codec=codec))
    assert off(coded, plain) < IDENTITY


def test_the_server_takes_the_change_alone_of_what_a_device_trained_from_another_model() -> None:
    """The next model is w plus the mean of the devices' changes from their own starts, which all differ from w."""
    stage = play("fedavg", 2, downlink_codec={"name": "top_k", "share": 0.05})
    ids = [id_ for id_ in ALL if stage.federation.model.devices.has(HELD, [id_])[0]]
    before = model_of(stage)
    stage.train(ids, 3)
    trained = stage.federation.model.waiting[ids[0]].round
    assert (trained.start.double() - before).norm(dim=1).min() > 1e-3
    weights = torch.from_numpy(shares(stage))[ids]
    by_hand = before + weights @ (trained.rows - trained.start).double() / weights.sum()
    stage.aggregate(ids)
    assert (model_of(stage) - by_hand).abs().max() < 1e-6


@pytest.mark.parametrize("codec", CODECS)
def test_differences_are_their_codecs_memory(codec: str) -> None:
    """CA2FL's devices keep h_k and no residual: h_k serves as the codec's memory."""
    stage = play("ca2fl", 3, uplink_codec=codec)
    names = ("residual", "estimate", "factor")
    assert not any(stage.federation.model.devices.has(f"uplink codec: {name}", ALL).any() for name in names)
    assert stage.federation.model.devices.has("cached", ALL).all()


def test_updates_of_several_rounds_keep_what_they_would_have_received() -> None:
    """With overlapping rounds, here three, a device's change is applied to the uncoded model of its round."""
    stage = play("fedavg", 6, downlink_codec={"name": "top_k", "share": 0.05})
    model = stage.federation.model
    updates = []
    for round_, id_ in ((7, 1), (8, 2), (9, 3)):
        stage.train([id_, 5], round_)
        updates.append(model.waiting[id_])
        stage.aggregate([5])
    one = joined(updates)
    again = TrainedRound.of(updates[0].round.part([0]).tensors()).meant
    assert torch.equal(one.meant[0], again)
    sent, start = one.undone([0, 1, 2], one.rows, one.start)
    assert len({update.round.version for update in updates}) == 3
    assert (sent - start - (one.rows - one.start)).abs().max() < 1e-6
    assert (start - one.start).abs().amax(1).min() > 1e-4
