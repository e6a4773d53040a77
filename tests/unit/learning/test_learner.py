"""The learner as the engine drives it, on the digits."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl import registry
from edgefl.errors import EdgeflError
from edgefl.learning.cost import flops_per_sample
from edgefl.learning.learner import Material, TorchLearner
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.parameters import TensorLayout
from edgefl.learning.settings import LearningSettings
from edgefl.learning.warm_starts import OpeningModel
from edgefl.learning.warm_starts.similarity import Similarity
from edgefl.rng import Streams

DEVICES = 12
CPU = torch.device("cpu")


SETTINGS: dict[str, Any] = {
    "dataset": "digits",
    "model": "logistic",
    "partition": {"name": "dirichlet", "alpha": 0.5, "overlap": 0.0},
    "batch": 16,
    "lr": 0.05,
}


def learner(**changes: Any) -> TorchLearner:
    learning = LearningSettings(**{**SETTINGS, "warm_start": "similarity", **changes})
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
    assert TensorLayout.of(module).size == 7850
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


# ---- every warm start with every algorithm


@pytest.mark.parametrize("algorithm", registry.names("algorithms"))
@pytest.mark.parametrize("warm_start", registry.names("warm_starts"))
def test_every_warm_start_goes_with_every_algorithm(algorithm: str, warm_start: str) -> None:
    one = learner(algorithm=algorithm, warm_start=warm_start)
    for number in range(1, 5):
        _, start, final = session(one, number, 3)
        assert torch.isfinite(final).all()
        assert start.warm_start == ("" if number == 1 else warm_start)
        assert sum(start.weights.values()) == pytest.approx(1.0 if number > 2 else 0.0)
        assert one.evaluate().accuracy > 0.4, "twice as good as guessing one of five labels"


@pytest.mark.parametrize("algorithm", registry.names("algorithms"))
def test_probes_leave_no_trace(algorithm: str) -> None:
    """Session 2 opens with the current model whatever the warm start; so its end is the same, to the bit."""
    finals = []
    for warm_start in ("previous", {"name": "similarity", "probe_rounds": 2}):
        one = learner(algorithm=algorithm, warm_start=warm_start)
        finals.append([session(one, number, 3)[2] for number in (1, 2)])
    assert all(torch.equal(a, b) for a, b in zip(*finals, strict=True))


@pytest.mark.parametrize("name", ["scaffold", "feddyn"])
def test_the_second_probe_round_knows_the_first(name: str) -> None:
    """A probe keeps its own devices' vectors: G_s of two rounds is not that of two first rounds."""
    one = learner(algorithm=name, warm_start={"name": "similarity", "probe_rounds": 2})
    session(one, 1, 3)
    ids = list(range(DEVICES))
    one.open_session(2, ids, 3)
    one.local_update(ids, "probe", 1)
    one.aggregate(ids)
    assert one._probe is not None
    vector = next(iter(one._probe._algorithm.device_vectors))
    zero = torch.zeros(one.parameters)
    assert one._probe._devices.rows(vector, ids, zero).abs().max() > 0


def test_continuous_holds_on_to_what_was_known() -> None:
    """On the classes of session 1, the final model's distribution stays nearer to the model it came from."""
    divergences = []
    for warm_start in ("previous", {"name": "continuous", "coefficient": 20.0}):
        one = learner(warm_start=warm_start, lr=0.02)
        _, start, before = session(one, 1, 10)
        _, _, after = session(one, 2, 10)
        x = one._material.test
        logits = []
        for model in (before, after):
            inputs = x.normalised(torch.arange(len(x.y))).flatten(1)
            logits.append((inputs @ model[:640].view(10, 64).T + model[640:])[:, start.labels].log_softmax(1))
        divergences.append(float((logits[0].exp() * (logits[0] - logits[1])).sum(1).mean()))
    assert divergences[1] < 0.5 * divergences[0]


# ---- the check round

SURE = {"name": "similarity", "check": True, "scale": 20.0}


def test_a_check_is_one_more_probe_round_of_one_iteration() -> None:
    one = learner(warm_start=SURE)
    rounds = {}
    for number in range(1, 5):
        ids = list(range(DEVICES))
        opening = one.open_session(number, ids, 3)
        rounds[number] = opening.probe_rounds
        for v in range(1, opening.probe_rounds + 1):
            iterations = one.local_update(ids, "probe", v)
            assert set(iterations.values()) == {1 if v == 2 else 5}
            version = one.version
            one.aggregate(ids)
            assert one.version == version
        one.begin_training()
        one.local_update(ids, opening.phase, 1)
        one.aggregate(ids)
        one.close_session()
    assert rounds == {1: 0, 2: 1, 3: 1, 4: 2}, "from two saved sessions on"


@pytest.mark.parametrize("arrived", [list(range(DEVICES)), []])
def test_the_check_keeps_the_better_model(arrived: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A constructed model that is useless gives way to the previous one, if the devices' reports arrive."""
    one = learner(warm_start=SURE)
    for number in range(1, 4):
        session(one, number, 10)
    previous = one.model
    useless = OpeningModel(100 * torch.randn_like(previous), {2: 0.5, 3: 0.5})
    monkeypatch.setattr(Similarity, "opening", lambda self, *args: useless)
    ids = list(range(DEVICES))
    one.open_session(4, ids, 3)
    one.local_update(ids, "probe", 1)
    one.aggregate(ids)
    one.local_update(ids, "probe", 2)
    if arrived:
        one.aggregate(arrived)
    start = one.begin_training()
    assert torch.equal(one.model, previous if arrived else useless.model)
    assert start.weights == ({3: 1.0} if arrived else useless.weights)


def test_the_check_leaves_a_good_construction_alone() -> None:
    """Session 4 has the labels of session 2: its model is better there than that of session 3."""
    starts = []
    for check in (False, True):
        one = learner(warm_start={**SURE, "check": check})
        for number in range(1, 5):
            _, start, final = session(one, number, 10)
        starts.append((start, final))
    assert starts[0][0] == starts[1][0]
    assert torch.equal(starts[0][1], starts[1][1])


# ---- devices keep their vectors


def test_a_devices_vectors_follow_it_into_another_cell() -> None:
    settings = LearningSettings(**SETTINGS, algorithm="scaffold")
    material = Material(settings, CPU)
    here, there = (TorchLearner(settings, material, devices=DEVICES, streams=Streams(5)) for _ in range(2))
    session(here, 1, 2, ids=[0, 1, 2])
    zero = torch.zeros(here.parameters)
    own = material.states(DEVICES).rows("control", [1], zero)
    assert own.abs().max() > 0
    there.open_session(1, [1, 7], 2)
    there.begin_training()
    sizes = np.array([len(there._samples(k)) for k in (1, 7)])
    expected = sizes[0] / sizes.sum() * own[0]
    torch.testing.assert_close(there._global.state["control"], expected)


def test_a_device_that_joins_a_session_counts_with_its_data() -> None:
    one = learner(algorithm="scaffold", warm_start="previous")
    one.open_session(1, [0, 1], 3)
    one.begin_training()
    one.local_update([0, 1, 5], "pilot", 1)
    one.aggregate([0, 1, 5])
    assert list(one._held()) == [0, 1, 5]
    zero = torch.zeros(one.parameters)
    weights = np.array(list(one._held().values())) / sum(one._held().values())
    mean = one._material.states(DEVICES).mean("control", [0, 1, 5], weights, zero)
    torch.testing.assert_close(one._global.state["control"], mean, atol=1e-5, rtol=1e-4)


# ---- what the engine is told


def test_iterations_of_local_epochs_depend_on_the_data() -> None:
    one = learner(epochs=2, algorithm="fednova")
    ids = list(range(DEVICES))
    one.open_session(1, ids, 3)
    one.begin_training()
    iterations = one.local_update(ids, "pilot", 1)
    assert iterations == {id_: 2 * math.ceil(len(one._samples(id_)) / 16) for id_ in ids}
    assert len(set(iterations.values())) > 1


def test_the_payload_can_count_all_that_is_exchanged() -> None:
    assert learner(algorithm="scaffold").payload_bits == 32 * 650
    assert learner(algorithm="scaffold", payload="exchanged").payload_bits == 2 * 32 * 650
    assert learner(algorithm="fedacg", payload="exchanged").payload_bits == 32 * 650


def test_a_device_without_data_does_nothing() -> None:
    one = learner(warm_start="previous")
    one._assignment[1][4] = np.arange(0)
    ids = [3, 4]
    one.open_session(1, ids, 3)
    one.begin_training()
    assert one.local_update(ids, "pilot", 1) == {3: 5, 4: 0}
    trained = one._global.last.rows[0].clone()
    one.aggregate(ids)
    torch.testing.assert_close(one.model, trained)
    assert one.reported_loss([4]) == 0.0
    one._assignment = (one._partition.key(2), [np.arange(0)] * DEVICES)
    with pytest.raises(EdgeflError, match="no device of session 2 has any data"):
        one.open_session(2, [4], 3)


def test_divergence_names_the_device_and_saves_the_last_finite_model(tmp_path: Path) -> None:
    one = learner(lr=100.0, algorithm={"name": "fedprox", "mu": 1e9})
    one.rescue = tmp_path / "last-finite.pt"
    with pytest.raises(
        EdgeflError,
        match=r"diverged in session 1, pilot round \d+: the model of device \d+ .*last-finite\.pt",
    ):
        session(one, 1, 40)
    saved = torch.load(one.rescue)
    assert torch.isfinite(saved["model"]).all()
    assert saved["at"].startswith("session 1, pilot round ")
    assert torch.equal(saved["model"], one.model)


def test_threads_do_not_change_the_result() -> None:
    finals = []
    for threads in (1, 2):
        settings = LearningSettings(**SETTINGS, algorithm="moon", memory_gb=1e-9)
        material = Material(settings, CPU, threads=threads)
        one = TorchLearner(settings, material, devices=DEVICES, streams=Streams(5))
        finals.append(session(one, 1, 3)[2])
    assert torch.equal(*finals)


# ---- batch norm


class Normed(Model):
    """A model with statistics."""

    typical_input = (8, 8)
    typical_classes = 10

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, classes))


def test_statistics_are_sent_averaged_and_used_in_tests() -> None:
    one = learner(model=Normed(), warm_start="similarity", algorithm="scaffold")
    assert one.parameters == 2 * 64 + 650
    assert one.payload_bits == 32 * (one.parameters + 2 * 64)
    for number in range(1, 5):
        _, start, final = session(one, number, 10)
    assert one._saved[0].gradient is not None
    assert len(one._saved[0].gradient) == one.parameters, "statistics are no gradient"
    assert start.weights.keys() == {2, 3}
    mean, variance = final[one.parameters :].view(2, 64)
    x = (one._material.test.x.float() - one._material.test.mean) * one._material.test.scale
    x = (x.flatten(1) - mean) / (variance + 1e-5).sqrt() * final[:64] + final[64:128]
    logits = x @ final[128:768].view(10, 64).T + final[768:778]
    keep = torch.isin(one._material.test.y, torch.tensor(start.labels))
    hits = (logits.argmax(1) == one._material.test.y)[keep]
    assert one.evaluate().accuracy == float(hits.double().mean())


def test_batch_norm_refuses_batches_of_one() -> None:
    with pytest.raises(EdgeflError, match="batches of one sample") as error:
        learner(model=Normed(), batch=1)
    assert error.value.place == ("learning", "batch")
