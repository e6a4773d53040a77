"""Test settings that the papers' authors used in their runs, but did not describe in the papers."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from edgefl.learning.federation.learner import TorchLearner
from edgefl.learning.federation.stages import TrainStage
from edgefl.learning.models import Outputs
from edgefl.learning.modules.parameters import TensorLayout
from edgefl.learning.partitions._label_sets import RecurringLabels
from edgefl.learning.partitions.dirichlet_mix import DirichletMix
from edgefl.learning.settings import LearningSettings
from edgefl.learning.warm_starts import Saved
from edgefl.learning.warm_starts.continuous import Continuous
from edgefl.learning.warm_starts.similarity import Similarity
from edgefl.rng import Streams
from tests.refusals import refused_at
from tests.unit.learning import digits_cell
from tests.unit.learning.digits_cell import DEVICES, EVERYONE, begin, opened, round_of

learner = partial(digits_cell.learner, partition={"name": "dirichlet_mix", "overlap": 0.0})


def play(one: TorchLearner, number: int, rounds: int = 2) -> list[TrainStage]:
    """Play a session in which every update arrives; return its training stages."""
    trained = []
    for stage in begin(one, number, longest=rounds):
        for round_ in range(1, (stage.facts.rounds or rounds) + 1):
            round_of(stage, number=round_)
        if isinstance(stage, TrainStage):
            trained.append(stage)
    return trained


def test_the_rate_decays_to_its_floor() -> None:
    """The rate is (lr - floor)(1 - (t-1)/T)^p + floor: halfway 0.2 (0.7 x 0.5^2 + 0.3) with a floor of 0.3 lr."""
    trainer = play(learner(local={"lr": 0.2, "lr_power": 2.0, "lr_floor": 0.3}), 1, rounds=1)[0].trainer
    rates = [trainer.learning_rate(t, longest=10) for t in (1, 6, 11)]
    assert rates == pytest.approx([0.2, 0.2 * (0.7 * 0.25 + 0.3), 0.06])


def test_a_rate_over_the_run_goes_on_in_the_next_session() -> None:
    """Over eight rounds, two per session, the rate falls linearly to zero, without a restart in each session."""
    one = learner(local={"lr": 0.2, "lr_schedule": {"name": "polynomial", "rounds": 8}})
    found = []
    for number in (1, 2, 3):
        for stage in begin(one, number, longest=2):
            for round_ in range(1, (stage.facts.rounds or 2) + 1):
                stage.train(EVERYONE, round_)
                if isinstance(stage, TrainStage):
                    found.append(stage.federation.model.waiting_round(EVERYONE).lr)
                stage.aggregate(EVERYONE)
    assert found == pytest.approx([0.2 * (1 - t / 8) for t in range(6)])


def test_a_probe_has_a_rate_of_its_own() -> None:
    """In one step without momentum, the change of a given model is proportional to the rate."""

    def change(**how: Any) -> torch.Tensor:
        local = {"steps": 1, "momentum": 0.0, "lr_power": 0.0, **how}
        one = learner(local=local, warm_start="similarity")
        play(one, 1, rounds=1)
        play(one, 2, rounds=1)
        return one.federation.saved[0].gradient

    torch.testing.assert_close(change(probe_lr=0.5), change() / 2, rtol=1e-3, atol=1e-7)


def test_a_round_is_at_most_one_pass_over_a_devices_data() -> None:
    """Devices with about 59 samples train on batches of 25, 25 and the remaining samples, and then stop."""
    one = learner(local={"batch": 25, "one_pass": True})
    stage = opened(one)
    local = stage.train(EVERYONE, 1)
    held = [len(one.device_data.samples(id_)) for id_ in EVERYONE]
    assert all(50 < count < 75 for count in held)
    assert local.iterations == (3,) * DEVICES
    assert local.samples == tuple(held)
    few = learner(local={"batch": 25, "one_pass": True, "steps": 2})
    assert opened(few).train(EVERYONE, 1).iterations == (2,) * DEVICES


def test_one_pass_and_epochs_exclude_each_other() -> None:
    with refused_at("one_pass", "epochs"):
        LearningSettings(dataset="digits", model="logistic", local={"one_pass": True, "epochs": 2})


def test_a_restart_is_a_run_without_pilot() -> None:
    """Session 2 begins with the untrained model, and ends as if there had been no session 1."""
    piloted, fresh = (learner(after_pilot=how) for how in ("restart", "continue"))
    untrained = piloted.model.clone()
    play(piloted, 1)
    assert not torch.equal(piloted.model, untrained)
    stage = opened(piloted, 2, longest=2)
    assert torch.equal(piloted.model, untrained)
    assert stage.facts.opening is not None
    for one, of in ((stage, piloted), (opened(fresh, 2, longest=2), fresh)):
        round_of(one)
        assert not torch.equal(of.model, untrained)
    assert torch.equal(piloted.model, fresh.model)


def test_a_restarted_session_distils_the_model_of_zeros() -> None:
    """The loss term is KL(uniform || p) over all classes; without known classes there is no such term."""
    for classes, terms in (("all", 1), ("known", 0)):
        one = learner(after_pilot="restart", warm_start={"name": "continuous", "classes": classes})
        play(one, 1)
        stage = opened(one, 2, longest=2)
        anchors = stage._terms()
        assert len(anchors) == terms
        assert not any(anchor.references[0].any() for anchor in anchors)


def test_distillation_over_all_classes() -> None:
    term = Continuous(classes="all").anchor(torch.zeros(2), torch.tensor([True, False, False]))
    p = np.exp([0.2, 5.0, -1.0])
    p /= p.sum()
    outputs = Outputs(torch.tensor([[0.2, 5.0, -1.0]]), torch.zeros(1))
    teacher = Outputs(torch.zeros(1, 3), torch.zeros(1))
    assert float(term.loss(outputs, [teacher])) == pytest.approx(-np.log(3 * p).mean(), rel=1e-5)


LAYOUT = TensorLayout(
    ("0.weight", "0.bias", "1.weight"), (torch.Size([1, 2]), torch.Size([1]), torch.Size([2]))
)


def test_unit_tensors_averages_distances_of_directions_and_leaves_biases_out() -> None:
    """The first tensors are orthogonal: sqrt(2) apart. The last tensors are opposite: 2 apart. Biases are ignored."""
    one = Similarity(distance="unit_tensors").of_model(LAYOUT)
    g, h = torch.tensor([3.0, 4.0, 7.0, 1.0, 0.0]), torch.tensor([40.0, -30.0, -7.0, -0.1, 0.0])
    assert float(one.between(g, h)) == pytest.approx((2**0.5 + 2) / 2)
    assert float(one.between(g, 3 * g)) == pytest.approx(0, abs=1e-12)


def test_unit_tensors_weighs_sessions_by_these_distances() -> None:
    one = Similarity(distance="unit_tensors", scale=1.0).of_model(LAYOUT)
    new = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0])
    past = [Saved(2, torch.zeros(5), 5 * new), Saved(3, torch.ones(5), -new)]
    weights = one.opening(torch.zeros(5), past, new).weights
    assert weights[2] / weights[3] == pytest.approx(np.exp(2.0))  # distances 0 and 2


def test_the_learner_says_where_a_models_weights_lie() -> None:
    one = learner(warm_start={"name": "similarity", "distance": "unit_tensors"})
    warm_start: Any = one._warm_start
    assert warm_start._weights == (slice(0, 640),)  # 64 x 10 weights, followed by the biases


@pytest.mark.parametrize(
    ("classes", "overlap", "first", "second"),
    [
        (10, 0.0, range(5), range(5, 10)),
        (10, 0.2, range(5), range(4, 9)),
        (10, 0.6, range(7), range(3, 10)),
        (10, 0.8, range(8), range(2, 10)),
        (10, 0.1, range(5), range(5, 10)),  # floor(10 / 1.9) = 5 labels per set; floor(0.5) = 0 shared
        (200, 0.2, range(111), range(89, 200)),  # 200 / 1.8 = 111.1 labels; 22.2 are shared
        (4, 0.8, range(3), range(1, 4)),  # 4 / 1.2 = 3.3 labels; 2.4 are shared
    ],
)
def test_overlap_of_a_set_in_label_order(classes: int, overlap: float, first: range, second: range) -> None:
    partition = DirichletMix(overlap=overlap, overlap_of="set", label_order="ascending")
    sets = [partition.session_labels(s, classes, Streams(1)).tolist() for s in (1, 2, 3)]
    assert sets == [list(first), list(second), list(first)]


def test_label_order_is_the_only_difference() -> None:
    """The paper's ordered label sets have the same sizes and overlaps as random label sets."""
    ordered: RecurringLabels = DirichletMix(overlap=0.2, label_order="ascending")
    sets = [ordered.session_labels(s, 10, Streams(1)).tolist() for s in (1, 2)]
    assert sets == [[0, 1, 2, 3, 4, 5], [4, 5, 6, 7, 8, 9]]
    random = DirichletMix(overlap=0.2, overlap_of="set")
    one, other = (set(random.session_labels(s, 10, Streams(1)).tolist()) for s in (1, 2))
    assert (len(one), len(other), len(one & other)) == (5, 5, 1)
