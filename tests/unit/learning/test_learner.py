"""The learner as the engine drives it, on the digits."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from edgefl.errors import EdgeflError
from edgefl.learning.cost import flops_per_sample
from edgefl.learning.learner import Material, TorchLearner
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.parameters import Layout
from edgefl.rng import Streams
from edgefl.scenario import Learning

DEVICES = 12
CPU = torch.device("cpu")


def learner(**changes: Any) -> TorchLearner:
    settings = {
        "dataset": "digits",
        "model": "logistic",
        "partition": {"name": "dirichlet", "alpha": 0.5, "overlap": 0.0},
        "batch": 16,
        "lr": 0.05,
        "warm_start": "similarity",
        **changes,
    }
    learning = Learning(**settings)
    return TorchLearner(learning, Material(learning, CPU), devices=DEVICES, streams=Streams(5))


def session(one: TorchLearner, number: int, rounds: int, ids: list[int] | None = None) -> Any:
    ids = list(range(DEVICES)) if ids is None else ids
    opening = one.open_session(number, ids, rounds)
    for v in range(1, opening.probe_rounds + 1):
        one.local_update(ids, "probe", v)
        one.aggregate(ids)
    start = one.begin_training()
    for t in range(1, rounds + 1):
        one.local_update(ids, opening.phase, t)
        one.aggregate(ids)
    final = one.model.clone()
    one.close_session()
    return opening, start, final


def test_sizes_of_the_papers_logistic_regression() -> None:
    """7,850 parameters; two matrix products with 7,840 weights, two FLOPs each, per direction."""
    module = Logistic().build((28, 28), 10)
    assert Layout.of(module).size == 7850
    assert flops_per_sample(module, (28, 28)) == 2 * 2 * 7840


def test_payload_is_32_bits_a_parameter() -> None:
    one = learner()
    assert one.parameters == 64 * 10 + 10
    assert one.payload_bits == 32 * 650
    assert learner(flops_per_sample=123.0).flops_per_sample == 123.0


def test_algorithm_1_session_by_session() -> None:
    """P = 1: session 1 plain, 2 and 3 probe, from 4 on the similar session dominates."""
    one = learner(warm_start={"name": "similarity", "scale": 20.0, "probe_rounds": 2})
    finals, starts = {}, {}
    for number in range(1, 6):
        before = one.model.clone()
        opening, start, finals[number] = session(one, number, 15)
        starts[number] = start
        assert opening.phase == ("pilot" if number == 1 else "train")
        assert opening.probe_rounds == (0 if number == 1 else 2)
        if number == 2:  # no saved model yet: it goes on from the existing one
            assert start.weights == {}
            assert start.accuracy == _accuracy(one, before, start.labels)
    assert starts[3].weights == {2: 1.0}, "the only saved model"
    assert set(starts[5].weights) == {2, 3, 4}
    assert max(starts[4].weights, key=starts[4].weights.get) == 2, "sessions 2 and 4 share their labels"
    assert max(starts[5].weights, key=starts[5].weights.get) == 3
    combined = sum(weight * finals[z].double() for z, weight in starts[5].weights.items())
    assert _accuracy(one, combined.float(), starts[5].labels) == starts[5].accuracy
    assert sorted({*starts[1].labels, *starts[2].labels}) == list(range(10))
    assert starts[1].labels == starts[3].labels


def _accuracy(one: TorchLearner, model: torch.Tensor, labels: Any) -> float:
    x = (one._material.test.x.double() - one._material.test.mean.double()) * one._material.test.scale.double()
    keep = torch.isin(one._material.test.y, torch.tensor(list(labels)))
    weight, bias = model[:640].view(10, 64).double(), model[640:].double()
    hits = (x.flatten(1) @ weight.T + bias).argmax(1) == one._material.test.y
    return float(hits[keep].double().mean())


def test_aggregation_weighs_by_data_size() -> None:
    one = learner(warm_start="previous")
    ids = [1, 4, 7]
    one.open_session(1, list(range(DEVICES)), 5)
    one.begin_training()
    one.local_update(list(range(DEVICES)), "pilot", 1)
    rows = one._global.last.rows.double().numpy()[ids]
    sizes = np.array([len(one._samples(id_)) for id_ in ids], dtype=float)
    one.aggregate(ids)
    expected = (sizes / sizes.sum()) @ rows
    assert np.abs(one.model.numpy() - expected).max() < 1e-6
    assert one.version == 1


def test_learning_rate_decays_to_zero_within_a_session() -> None:
    one = learner(lr=0.4, lr_power=2.0)
    one.open_session(1, [0], 10)
    assert [one._learning_rate(t) for t in (1, 6)] == pytest.approx([0.4, 0.4 * 0.25])
    assert learner(lr_power=0.0)._learning_rate(1) == 0.05


def test_the_test_data_are_those_of_the_labels_present() -> None:
    one = learner(partition={"name": "dirichlet", "alpha": 0.05})
    held = set(one._material.labels[one._samples(3)].tolist())
    one.open_session(1, [3], 5)
    assert set(one.begin_training().labels) == held != set(range(10))


def test_the_first_model_is_a_function_of_the_seed_alone() -> None:
    torch.manual_seed(1)
    first = learner().model
    torch.manual_seed(2)
    assert torch.equal(learner(algorithm="fedprox").model, first)


def test_divergence_is_an_error_with_a_remedy() -> None:
    one = learner(lr=100.0, algorithm={"name": "fedprox", "mu": 1e9})
    with pytest.raises(EdgeflError, match=r"training diverged in session 1.*lower learning\.lr"):
        session(one, 1, 40)


def test_an_impossible_partition_is_refused_at_once() -> None:
    with pytest.raises(EdgeflError, match="feasible overlaps") as error:
        learner(partition={"name": "dirichlet", "overlap": 0.3})
    assert error.value.place == ("learning", "partition")


def test_loss_of_the_zero_model_is_log_c() -> None:
    """Zero weights give uniform probabilities: cross-entropy log C exactly."""
    one = learner()
    one.open_session(1, list(range(DEVICES)), 5)
    one._global.model = torch.zeros_like(one.model)
    start = one.begin_training()
    assert start.loss == pytest.approx(math.log(10), abs=1e-6)


def test_reported_loss_is_the_received_models_mean_over_devices() -> None:
    one = learner(batch=10_000)  # the first batch is all a device has
    ids = [0, 3, 5]
    one.open_session(1, ids, 5)
    one.begin_training()
    received = one.model.clone()
    one.local_update(ids, "pilot", 1)
    losses = []
    for id_ in (0, 5):
        rows = torch.from_numpy(one._samples(id_))
        x = one._material.train.normalised(rows).flatten(1)
        logits = x @ received[:640].view(10, 64).T + received[640:]
        losses.append(float(torch.nn.functional.cross_entropy(logits, one._material.train.y[rows])))
    assert one.reported_loss([0, 5]) == pytest.approx(sum(losses) / 2, rel=1e-5)
