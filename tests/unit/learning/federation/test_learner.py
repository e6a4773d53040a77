"""Test the learner on the digits, called as the engine calls it."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from edgefl.config import registry
from edgefl.contract import BEGIN, REPORTED_LOSS, Evaluation, Now, Opening, StageFacts
from edgefl.errors import Divergence
from edgefl.learning.drifts import Moment
from edgefl.learning.federation.learner import TorchLearner
from edgefl.learning.federation.stages import TrainStage
from edgefl.learning.federation.trainer import Trainer
from edgefl.learning.partitions import Staying
from edgefl.learning.warm_starts import OpeningModel
from edgefl.learning.warm_starts.similarity import Similarity
from tests.refusals import refused_at
from tests.unit.learning import digits_cell
from tests.unit.learning.digits_cell import DEVICES, EVERYONE, Normed, begin, opened, round_of

learner = partial(digits_cell.learner, warm_start="similarity")
pilot = opened  # the only stage of session 1


@dataclass(frozen=True)
class Played:
    """The results of a session in which every update arrives."""

    stages: list[StageFacts]
    final: Tensor
    evaluation: Evaluation
    trainer: Trainer

    @property
    def opening(self) -> Opening:
        return self.stages[-1].opening

    @property
    def spells(self) -> list[tuple[str, int | None]]:
        """The phase and the number of rounds of each stage."""
        return [(facts.phase, facts.rounds) for facts in self.stages]


def session(one: TorchLearner, number: int, rounds: int, ids: Sequence[int] = EVERYONE) -> Played:
    stages, done = [], Counter[str]()
    for stage in begin(one, number, ids, longest=rounds):
        facts = stage.facts
        stages.append(facts)
        for _ in range(facts.rounds or rounds):
            done[facts.phase] += 1
            round_of(stage, ids, done[facts.phase])
        played = (one.model.clone(), stage.evaluate(), stage.trainer)
    return Played(stages, *played)


def test_payload_is_32_bits_a_parameter() -> None:
    one = learner(cost={"flops_per_sample": 123.0})
    assert one.parameters == 64 * 10 + 10
    assert one.payload_bits == 32 * 650
    assert one.flops_per_sample == 123.0


def test_algorithm_1_session_by_session() -> None:
    """With P = 1, session 1 is the pilot, and later sessions have probes; from 4 on the similar session dominates."""
    one = learner(warm_start={"name": "similarity", "scale": 20.0, "probe_rounds": 2})
    finals, starts = {}, {}
    for number in range(1, 6):
        before = one.model.clone()
        played = session(one, number, 15)
        finals[number], starts[number] = played.final, played.opening
        assert played.spells == ([("pilot", None)] if number == 1 else [("probe", 2), ("train", None)])
        assert [facts.opening is not None for facts in played.stages[:-1]] == [False] * (number > 1)
        if number == 2:  # no model is saved yet, so session 2 continues from the current model
            assert starts[2].weights == {}
            assert starts[2].accuracy == _accuracy(played.trainer, before, starts[2].labels)
    assert starts[3].weights == {2: 1.0}, "the only saved model"
    assert set(starts[5].weights) == {2, 3, 4}
    assert max(starts[4].weights, key=lambda z: starts[4].weights[z]) == 2, (
        "sessions 2 and 4 have the same labels"
    )
    assert max(starts[5].weights, key=lambda z: starts[5].weights[z]) == 3
    combined = sum(weight * finals[z].double() for z, weight in starts[5].weights.items())
    assert _accuracy(played.trainer, combined.float(), starts[5].labels) == starts[5].accuracy
    assert sorted({*starts[1].labels, *starts[2].labels}) == list(range(10))
    assert starts[1].labels == starts[3].labels


def _accuracy(trainer: Trainer, model: Tensor, labels: Sequence[int]) -> float:
    test = trainer.training_data.test
    x = (test.x.double() - test.mean.double()) * test.scale.double()
    keep = torch.isin(test.y, torch.tensor(list(labels)))
    weight, bias = model[:640].view(10, 64).double(), model[640:].double()
    hits = (x.flatten(1) @ weight.T + bias).argmax(1) == test.y
    return float(hits[keep].double().mean())


def test_learning_rate_follows_the_progress_that_the_policy_tells() -> None:
    """If the policy reports no progress, the round's number sets the rate, which falls to zero within a session."""
    stage = pilot(learner(local={"lr": 0.4, "lr_power": 2.0}), ids=[0], longest=10)
    for round_, now, lr in (
        (1, BEGIN, 0.4),
        (6, BEGIN, 0.4 * 0.25),
        (1, Now(60.0, progress=0.5), 0.4 * 0.25),
    ):
        stage.train([0], round_, now)
        assert stage.federation.model.waiting_round([0]).lr == lr
    assert stage.federation.now.round.moment.time_s == 60.0
    rate = stage.trainer.learning_rate
    assert rate(11, longest=10) == 0.0
    # for all session lengths, the rate by progress equals the rate by round number, to the last bit
    for longest in range(1, 60):
        told = [rate(t, None, (t - 1) / longest) for t in range(1, longest + 1)]
        assert told == [rate(t, longest) for t in range(1, longest + 1)]
        assert told == [0.4 * (1 - (t - 1) / longest) ** 2.0 for t in range(1, longest + 1)]
    assert pilot(learner(local={"lr_power": 0.0})).trainer.learning_rate(1, longest=5) == 0.05


def test_the_test_data_are_those_of_the_labels_present() -> None:
    stage = pilot(learner(partition={"name": "dirichlet", "alpha": 0.05}), ids=[3])
    held = set(stage.trainer.training_data.train.labels[stage.trainer.device_data.samples(3)].tolist())
    assert set(stage.facts.opening.labels) == held != set(range(10))


def test_the_first_model_is_a_function_of_the_seed_alone() -> None:
    torch.manual_seed(1)
    first = learner().model
    torch.manual_seed(2)
    assert torch.equal(learner(algorithm="fedprox").model, first)


def test_loss_of_the_zero_model_is_log_c() -> None:
    """With zero weights, probabilities are uniform, so the cross-entropy is exactly log C."""
    one = learner()
    tensors, facts = one.state()
    one.restore({**tensors, "model.model": torch.zeros_like(one.model)}, facts)
    assert pilot(one).facts.opening.loss == pytest.approx(math.log(10), abs=1e-6)


def test_reported_losses_are_those_of_the_model_received() -> None:
    one = learner(local={"batch": 10_000})  # the first batch contains all of a device's samples
    ids = [0, 3, 5]
    stage = pilot(one, ids=ids, reports=True)
    received = one.model.clone()
    local = stage.train(ids, 1)
    train, losses = stage.trainer.training_data.train, []
    for id_ in ids:
        rows = torch.from_numpy(stage.trainer.device_data.samples(id_))
        logits = train.normalised(rows).flatten(1) @ received[:640].view(10, 64).T + received[640:]
        losses.append(float(torch.nn.functional.cross_entropy(logits, train.y[rows])))
    assert local.ids == tuple(ids)
    assert local.scalars[REPORTED_LOSS] == pytest.approx(tuple(losses), rel=1e-5)
    assert not pilot(learner(), ids=ids).train(ids, 1).scalars, "devices report only if a policy requests it"


@pytest.mark.parametrize(("share", "known"), [(0.0, [0, 2, 4]), (0.5, [0, 1, 2, 3, 4, 5]), (1.0, [1, 3, 5])])
def test_the_known_classes_are_those_that_devices_had_after_the_drift(share: float, known: list[int]) -> None:
    """Labels 0, 2 and 4 of session 1 are swapped with 1, 3 and 5, so the model to distil knows these instead."""
    drift = {"name": "label_swap", "at": 2, "share": share}
    partition = {"name": "iid", "label_sets": [[0, 2, 4], [1, 6]]}
    one = learner(warm_start="continuous", partition=partition, drift=drift)
    session(one, 1, 2)
    opened(one, 2)
    assert list(one.federation.now.known) == known


@pytest.mark.parametrize("algorithm", ["fedavg", "hypcluster", "feddrift", "local_only", "oracle"])
def test_a_session_opens_with_the_models_that_served_its_devices_before(algorithm: str) -> None:
    """With the same devices and data, and no warm start, session 2 starts with the last scores of session 1."""
    one = learner(
        algorithm=algorithm,
        warm_start="previous",
        partition="iid",
        local={"epochs": 2},
        drift={"name": "label_swap", "at": 1, "share": 1.0 if algorithm == "oracle" else 0.5},
    )
    last = session(one, 1, 3).evaluation
    opening = session(one, 2, 1).opening
    assert (opening.accuracy, opening.loss) == pytest.approx((last.accuracy, last.loss), rel=1e-6)


def test_the_oracles_devices_report_the_loss_of_their_own_concepts_model() -> None:
    """After the drift, the model for data after it is zero here, so the loss of drifted devices is log C."""
    one = learner(algorithm="oracle", drift={"name": "label_swap", "at": 1, "share": 0.5})
    tensors, facts = one.state()
    one.restore({**tensors, "twin.model": torch.zeros_like(one.model)}, facts)
    ids = list(range(DEVICES))
    local = pilot(one, ids=ids, reports=True).train(ids, 1)
    drifted = one.trainer.drifting.drifted(ids, Moment(1, 0.0))
    assert 0 < drifted.sum() < DEVICES
    zero = np.isclose(np.array(local.scalars[REPORTED_LOSS], float), math.log(10), rtol=0, atol=1e-6)
    assert zero.tolist() == drifted.tolist()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_models_of_their_own_are_tested_one_by_one(share: float) -> None:
    """Each device's model is tested on the test data with its concept, and scores are means over the devices."""
    drift = {"name": "label_swap", "at": 1, "share": share}
    one = learner(algorithm="local_only", drift=drift, warm_start="previous", partition="iid")
    stage = pilot(one)
    for round_ in (1, 2):
        round_of(stage, EVERYONE[:5], round_)
    found = stage.evaluate(EVERYONE)
    trainer, moment = stage.trainer, stage.federation.now.round.moment
    rows = stage.federation.model.deployed(EVERYONE, trainer.samples(EVERYONE, moment))
    assert len(torch.unique(rows, dim=0)) == 6, "five devices have trained; others keep the opening model"
    test, drifted = trainer.training_data.test, trainer.drifting.drifted(EVERYONE, moment)
    assert drifted.mean() == share
    scores = []
    for row, swapped in zip(rows, drifted, strict=True):
        logits = test.normalised(torch.arange(test.count)).flatten(1) @ row[:640].view(10, 64).T + row[640:]
        y = test.y[: test.count] ^ int(swapped)  # the drift swaps labels 0 and 1, 2 and 3, ...
        loss = torch.nn.functional.cross_entropy(logits, y)
        scores.append((float((logits.argmax(1) == y).double().mean()), float(loss)))
    assert (found.accuracy, found.loss) == pytest.approx(tuple(np.mean(scores, 0)), rel=1e-5)


# all warm starts are tested with MOON, which adds a term to the loss, and HypCluster, which has several models
PAIRS = [
    *((name, "similarity") for name in registry.names("algorithms")),
    *(
        (name, warm_start)
        for name in ("fedavg", "moon", "hypcluster")
        for warm_start in registry.names("warm_starts")
    ),
]


@pytest.mark.parametrize(("algorithm", "warm_start"), dict.fromkeys(PAIRS))
def test_every_warm_start_goes_with_every_algorithm(algorithm: str, warm_start: str) -> None:
    one = learner(algorithm=algorithm, warm_start=warm_start)
    for number in range(1, 5):
        played = session(one, number, 3)
        assert torch.isfinite(played.final).all()
        assert played.opening.warm_start == ("" if number == 1 else warm_start)
        assert sum(played.opening.weights.values()) == pytest.approx(1.0 if number > 2 else 0.0)
        assert played.evaluation.accuracy > 0.4, "twice as good as guessing one of five labels"


@pytest.mark.parametrize("algorithm", registry.names("algorithms"))
def test_probes_leave_no_trace(algorithm: str) -> None:
    """With or without probes, session 2 opens with the current model, so its final model is the same to the bit."""
    finals = []
    for warm_start in ("previous", {"name": "similarity", "probe_rounds": 2}):
        one = learner(algorithm=algorithm, warm_start=warm_start)
        finals.append([session(one, number, 3).final for number in (1, 2)])
    assert all(torch.equal(a, b) for a, b in zip(*finals, strict=True))


@pytest.mark.parametrize("name", ["scaffold", "feddyn"])
def test_the_second_probe_round_knows_the_first(name: str) -> None:
    """A probe keeps its devices' vectors between its rounds, so the second round differs from the first round."""
    one = learner(algorithm=name, warm_start={"name": "similarity", "probe_rounds": 2})
    session(one, 1, 3)
    probe = next(begin(one, 2, longest=3))
    round_of(probe)
    (vector,) = registry.get("algorithms", name).device_vectors
    own = probe.federation.probe.devices.rows(vector, EVERYONE, torch.zeros(one.parameters))
    assert own.abs().max() > 0


def test_continuous_holds_on_to_what_was_known() -> None:
    """With distillation, session 2 changes outputs for the classes of session 1 less than without distillation."""
    divergences = []
    for warm_start in ("previous", {"name": "continuous", "coefficient": 20.0}):
        one = learner(warm_start=warm_start, local={"lr": 0.02})
        before, after = session(one, 1, 10), session(one, 2, 10)
        test, known = before.trainer.training_data.test, before.opening.labels
        inputs = test.normalised(torch.arange(len(test.y))).flatten(1)
        logits = [
            (inputs @ final[:640].view(10, 64).T + final[640:])[:, known].log_softmax(1)
            for final in (before.final, after.final)
        ]
        divergences.append(float((logits[0].exp() * (logits[0] - logits[1])).sum(1).mean()))
    assert divergences[1] < 0.5 * divergences[0]


SURE = {"name": "similarity", "check": True, "scale": 20.0}


def test_a_check_is_one_more_probe_round_of_one_iteration() -> None:
    one = learner(warm_start=SURE)
    spells = {}
    for number in range(1, 5):
        stages, rounds = [], 0
        for stage in begin(one, number, longest=3):
            facts, before = stage.facts, one.model.clone()
            stages.append((facts.phase, facts.rounds))
            rounds += facts.phase == "probe"
            local = stage.train(EVERYONE, rounds or 1)
            assert set(local.iterations) == {1 if (facts.phase, rounds) == ("probe", 2) else 5}
            stage.aggregate(EVERYONE)
            assert torch.equal(one.model, before) == (not facts.evaluates)
        spells[number] = stages
    probe, train = ("probe", 1), ("train", None)
    assert spells == {
        1: [("pilot", None)],
        2: [probe, train],
        3: [probe, train],
        4: [probe, probe, train],  # two sessions are saved
    }


@pytest.mark.parametrize("arrived", [EVERYONE, []])
def test_the_check_keeps_the_better_model(arrived: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The previous model replaces a useless constructed model if devices' reports arrive."""
    one = learner(warm_start=SURE)
    for number in range(1, 4):
        session(one, number, 10)
    previous = one.model
    useless = OpeningModel(100 * torch.randn_like(previous), {2: 0.5, 3: 0.5})
    monkeypatch.setattr(Similarity, "opening", lambda self, *args: useless)
    stages = begin(one, 4, longest=3)
    probe = next(stages)
    round_of(probe)
    check = next(stages)
    check.train(EVERYONE, 2)
    if arrived:
        check.aggregate(arrived)
    opening = next(stages).facts.opening
    assert torch.equal(one.model, previous if arrived else useless.model)
    assert opening.weights == ({3: 1.0} if arrived else useless.weights)


def test_the_check_leaves_a_good_construction_alone() -> None:
    """Session 4 has the labels of session 2, so its constructed model beats the previous model, and is kept."""
    starts = []
    for check in (False, True):
        one = learner(warm_start={**SURE, "check": check})
        for number in range(1, 5):
            played = session(one, number, 10)
        starts.append((played.opening, played.final))
    assert starts[0][0] == starts[1][0]
    assert torch.equal(starts[0][1], starts[1][1])


def test_a_devices_vectors_follow_it_into_another_cell() -> None:
    training_data = digits_cell.data_of(digits_cell.settings_of(algorithm="scaffold"))
    here, there = (digits_cell.learner(data=training_data, algorithm="scaffold") for _ in range(2))
    session(here, 1, 2, ids=[0, 1, 2])
    zero = torch.zeros(here.parameters)
    own = training_data.devices.states.of(lambda: 1).rows("control", [1], zero)
    assert own.abs().max() > 0
    stage = pilot(there, ids=[1, 7], longest=2)
    sizes = np.array(list(stage.trainer.device_data.sizes([1, 7]).values()))
    expected = sizes[0] / sizes.sum() * own[0]
    torch.testing.assert_close(stage.federation.model.state["control"], expected)


def test_iterations_of_local_epochs_depend_on_the_data() -> None:
    how: dict[str, Any] = {"local": {"epochs": 2}, "algorithm": "fednova"}
    stage = pilot(learner(**how), longest=3)
    local = stage.train(EVERYONE, 1)
    sizes = stage.trainer.device_data.sizes(EVERYONE)
    assert local.iterations == tuple(2 * math.ceil(sizes[id_] / 16) for id_ in EVERYONE)
    assert len(set(local.iterations)) > 1
    assert local.samples == tuple(2 * sizes[id_] for id_ in EVERYONE), "every sample once per epoch"
    nominal = pilot(learner(**how, cost={"booked": "nominal"}), longest=3).train(EVERYONE, 1)
    assert nominal.samples == tuple(16 * steps for steps in local.iterations), "e B (J 27)"


def test_what_is_processed_is_booked() -> None:
    """Each of e = 5 steps uses all D samples if D < B; if D > B, the last batch of an epoch is smaller."""
    steps = 5

    def processed(held: int) -> int:
        epoch = [batch] * (held // batch) + [held % batch] * (held % batch > 0)
        return sum((epoch * steps)[:steps])

    for batch in (64, 128):
        one = learner(local={"batch": batch})
        stage = pilot(one, longest=3)
        sizes = stage.trainer.device_data.sizes(EVERYONE)
        assert min(sizes.values()) < batch <= max(sizes.values())
        session(one, 1, 3)
        for of_phase in (stage, next(begin(one, 2))):  # the pilot, and a probe of session 2
            sizes = of_phase.trainer.device_data.sizes(EVERYONE)
            local = of_phase.train(EVERYONE, 1)
            assert local.samples == tuple(processed(sizes[id_]) for id_ in EVERYONE)
            assert local.iterations == (steps,) * DEVICES
        assert of_phase.facts.phase == "probe"
        nominal = pilot(learner(local={"batch": batch}, cost={"booked": "nominal"}), longest=3)
        assert nominal.train(EVERYONE, 1).samples == (steps * batch,) * DEVICES


@pytest.mark.parametrize(
    ("changes", "beside"),
    [
        ({"algorithm": "fedprox"}, 0),
        ({"algorithm": "moon"}, 2),  # received and previous model
        ({"algorithm": {"name": "moon", "mu": 0}}, 0),
        ({"algorithm": "fedprox", "warm_start": "continuous"}, 1),  # the distilled model
        ({"algorithm": "moon", "warm_start": "continuous"}, 3),
    ],
)
def test_models_in_a_loss_term_cost_a_forward_pass(changes: dict[str, Any], beside: int) -> None:
    """A reference model's forward pass counts as a third: e B samples count as e B (1 + models / 3), rounded up."""
    trained, expected = [], []
    for booked in ("processed", "all"):
        one = learner(cost={"booked": booked}, **changes)
        session(one, 1, 1)
        stage = next(stage for stage in begin(one, 2) if isinstance(stage, TrainStage))
        expected.append(stage.expected(EVERYONE).samples)
        trained.append(stage.train(EVERYONE, 1).samples)
    for processed, counted in (trained, expected):
        assert counted == tuple(many + math.ceil(many * beside / 3) for many in processed)


@pytest.mark.parametrize(("booked", "payload"), [("all", "exchanged"), ("processed", "model")])
def test_a_check_books_its_two_passes_or_a_step(booked: str, payload: str) -> None:
    """A check counts as two models down, two tests and two losses up, or (as in J) as a model each way and a step."""
    one = learner(warm_start=SURE, local={"batch": 64}, cost={"booked": booked, "payload": payload})
    for number in range(1, 4):
        session(one, number, 3)
    stages = begin(one, 4)
    probe = next(stages)
    round_of(probe)
    check = next(stages)
    local = check.train(EVERYONE, 2)
    sizes = check.trainer.device_data.sizes(EVERYONE)
    step = [min(64, sizes[id_]) for id_ in EVERYONE]
    model = 32 * 650
    if booked == "all":
        assert local.samples == tuple(math.ceil(2 * many / 3) for many in step)
        assert (set(local.down_bits), set(local.up_bits)) == ({2 * model}, {2 * 32})
    else:
        assert local.samples == tuple(step)
        assert set(local.down_bits) == set(local.up_bits) == {model}


@pytest.mark.parametrize(
    "changes",
    [
        {"local": {"batch": 64}},  # the last batch of an epoch is smaller
        {"local": {"epochs": 3, "batch": 100}},
        {"local": {"steps": 5, "batch": 100, "one_pass": True}},
        {"algorithm": "apfl", "local": {"epochs": 1, "batch": 100}},
        {"algorithm": "fedl", "local": {"steps": 4, "batch": 64, "momentum": 0.0}},
        {
            "model": "resnet18",
            "local": {"epochs": 1, "batch": 9},
        },  # batch norm drops a last batch of one sample
        {"cost": {"booked": "nominal"}, "local": {"epochs": 1, "batch": 100}},
        # 0 is no decrease, so that devices do not stop early; tests for early stopping are not expected
        {"cost": {"booked": "processed"}, "local": {"epochs": 2, "batch": 16, "early_stopping": 0.0}},
    ],
)
def test_as_many_samples_are_processed_as_expected(changes: dict[str, Any]) -> None:
    stage = pilot(learner(**changes), longest=3)
    expected, local = stage.expected(EVERYONE), stage.train(EVERYONE, 1)
    assert expected.samples == local.samples
    assert expected.held == tuple(stage.trainer.device_data.sizes(EVERYONE).values())


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold", {"name": "hypcluster", "models": 3}, "feddrift"])
def test_what_is_expected_to_be_sent_is_sent(algorithm: Any) -> None:
    stage = pilot(learner(algorithm=algorithm))
    told, local = stage.expected([2, 3]), stage.train([2, 3], 1)
    assert (told.down_bits, told.up_bits) == (local.down_bits, local.up_bits)


class Uneven(Staying):
    """A partition in which device 4 has no data, and from session 2 on no device has data."""

    def key(self, session: int) -> int:
        return min(session, 2)

    def assign(self, labels: np.ndarray, devices: int, session: int, *how: Any) -> list[np.ndarray]:
        nothing = np.arange(0)
        if session > 1:
            return [nothing] * devices
        return [nothing if id_ == 4 else np.arange(id_, len(labels), devices) for id_ in range(devices)]


def test_a_device_without_data_does_nothing() -> None:
    for booked in ("nominal", "processed"):
        one = learner(warm_start="previous", partition=Uneven(), cost={"booked": booked})
        stage = pilot(one, ids=[3, 4], longest=3, reports=True)
        local = stage.train([3, 4], 1)
        assert (local.iterations, local.samples) == ((5, 0), (5 * 16, 0))
        loss, none = local.scalars[REPORTED_LOSS]
        assert loss is not None
        assert none is None
        trained = stage.federation.model.waiting_round([3, 4]).rows[0].clone()
        stage.aggregate([3, 4])
        torch.testing.assert_close(one.model, trained)
        stage.train([3, 4], 2)
        stage.aggregate([4])
        torch.testing.assert_close(one.model, trained)
        with refused_at("", "session 2"):
            next(begin(one, 2, ids=[4]))


def test_divergence_names_the_device_and_holds_the_last_finite_model() -> None:
    one = learner(local={"lr": 100.0}, algorithm={"name": "fedprox", "mu": 1e9})
    with refused_at("", "session 1, pilot round", "device", "learning.local.lr", kind=Divergence) as error:
        session(one, 1, 40)
    assert torch.isfinite(error.value.last["model"]).all()
    assert torch.equal(error.value.last["model"], one.model)


def test_a_model_without_parameters_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Normed, "build", lambda *_: nn.Flatten())
    with refused_at("learning.model", "no parameters to train"):
        learner(model=Normed())


def test_statistics_are_sent_averaged_and_used_in_tests() -> None:
    one = learner(model=Normed(), warm_start="similarity", algorithm="scaffold")
    assert one.parameters == 2 * 64 + 650
    assert one.payload_bits == 32 * (2 * one.parameters + 2 * 64)
    for number in range(1, 5):
        played = session(one, number, 3)
    tensors, _ = one.state()
    assert len(tensors["saved.0.gradient"]) == one.parameters, "the gradient excludes statistics"
    assert played.opening.weights.keys() == {2, 3}
    test, final = played.trainer.training_data.test, played.final
    mean, variance = final[one.parameters :].view(2, 64)
    x = (test.x.float() - test.mean) * test.scale
    x = (x.flatten(1) - mean) / (variance + 1e-5).sqrt() * final[:64] + final[64:128]
    logits = x @ final[128:768].view(10, 64).T + final[768:778]
    keep = torch.isin(test.y, torch.tensor(played.opening.labels))
    hits = (logits.argmax(1) == test.y)[keep]
    assert played.evaluation.accuracy == float(hits.double().mean())


def test_batch_norm_refuses_batches_of_one() -> None:
    with refused_at("learning.local.batch"):
        learner(model=Normed(), local={"batch": 1})


def test_one_step_probes_are_a_gradient() -> None:
    """If devices take one step without momentum over all their data, G_s is -lr times the gradient at w_pilot."""
    one = learner(
        local={"steps": 1, "batch": 10_000, "momentum": 0.0}, partition={"name": "iid", "overlap": 0.0}
    )
    session(one, 1, 2)
    pilot_model = one.model.clone()
    stages = begin(one, 2)
    probe = next(stages)
    round_of(probe)
    next(stages)
    held = np.concatenate([probe.trainer.device_data.samples(id_) for id_ in EVERYONE])
    train = probe.trainer.training_data.train
    w = pilot_model.clone().requires_grad_()
    logits = train.normalised(torch.from_numpy(held)).flatten(1) @ w[:640].view(10, 64).T + w[640:]
    torch.nn.functional.cross_entropy(logits, train.y[held]).backward()
    torch.testing.assert_close(probe.federation.gradient, -0.05 * w.grad, atol=1e-6, rtol=1e-4)
