"""Test members of a session: devices that join or leave it, and the state they keep for their data."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms.feddyn import FedDyn
from edgefl.learning.algorithms.moon import Moon
from edgefl.learning.algorithms.scaffold import Scaffold
from edgefl.learning.federation.learner import TorchLearner
from edgefl.learning.federation.stages import TrainStage
from edgefl.learning.settings import LearningSettings
from edgefl.learning.updates.device_side import LOCAL_MODEL
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.rng import Streams
from tests.unit.learning import digits_cell
from tests.unit.learning.digits_cell import CPU, DEVICES, begin, round_of

ROUNDING = 3e-6  # error of sums of a dozen vectors over ten rounds; without `join` it is 0.01 or more

CORRECTING: list[tuple[Algorithm, str]] = [(Scaffold(), "control"), (FedDyn(alpha=0.2), "gradient")]


def learner(algorithm: Any, populations: Sequence[range] = (), **changes: Any) -> TorchLearner:
    standing = {"name": "dirichlet", "alpha": 0.3}  # data stay with their devices
    given = {"partition": standing, "local": {"steps": 3, "lr_power": 0}, "algorithm": algorithm, **changes}
    return digits_cell.learner(populations=populations, **given)


opened = partial(digits_cell.opened, longest=10)


def session(one: TorchLearner, number: int, ids: Sequence[int], rounds: int = 3) -> None:
    for stage in begin(one, number, ids, longest=10):
        for round_ in range(1, rounds + 1):
            round_of(stage, ids, round_)


def vectors(stage: TrainStage, name: str) -> np.ndarray:
    """Return all devices' kept vectors [N, M], with zeros for devices that keep none."""
    track = stage.federation.model
    zero = torch.zeros(stage.trainer.layout.parameters.size)
    return track.devices.rows(name, range(DEVICES), zero).double().numpy()


def off(stage: TrainStage, name: str) -> float:
    """Return the distance of the server's vector from the mean of members' vectors by data size."""
    members = sorted(stage.federation.now.members)
    sizes = np.array(list(stage.trainer.device_data.sizes(members).values()), dtype=float)
    mean = sizes / sizes.sum() @ vectors(stage, name)[members]
    return float(np.abs(stage.federation.model.state[name].double().numpy() - mean).max())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("algorithm", "name"), CORRECTING)
def test_the_servers_vector_stays_the_mean_of_its_members(algorithm: Algorithm, name: str, seed: int) -> None:
    """The server's vector is the members' mean for any arrivals, departures, participants and lost uploads."""
    rng = np.random.default_rng(seed)
    one = learner(algorithm)
    session(one, 1, [0, 1, 2, 3, 8])
    session(one, 2, [7, 8, 9])
    present = {0, 1, 2, 7}
    stage = opened(one, 3, sorted(present))
    joined = 0
    for round_ in range(1, 11):
        present ^= set(rng.choice(DEVICES, 2, replace=False).tolist())  # two devices arrive or leave
        ids = sorted(rng.choice(sorted(present), max(1, len(present) // 2), replace=False).tolist())
        joined += len(set(ids) - stage.federation.now.members)
        stage.train(ids, round_)
        assert off(stage, name) < ROUNDING, "the vector that devices receive"
        arrived = [id_ for id_ in ids if rng.random() < 0.7]
        if arrived:
            stage.aggregate(arrived)
        assert off(stage, name) < ROUNDING
    assert joined >= 3
    assert np.abs(vectors(stage, name)).max() > 1e4 * ROUNDING


@pytest.mark.parametrize(("algorithm", "name"), CORRECTING)
def test_former_members_do_not_join(algorithm: Algorithm, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No device joins a session by leaving and returning, or by not being selected."""

    def nobody(*args: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(type(algorithm), "join", nobody)
    one = learner(algorithm)
    for number in (1, 2):
        stage = opened(one, number, [0, 1, 2, 3])
        for round_, ids in enumerate(([0, 1], [2], [0, 1, 2, 3]), start=1):
            round_of(stage, ids, round_)


@pytest.mark.parametrize(("algorithm", "name"), CORRECTING)
def test_to_join_twice_is_to_join_once(algorithm: Algorithm, name: str) -> None:
    """A device that joined before the state was saved does not join again after it is restored."""
    one = learner(algorithm)
    session(one, 1, [7, 8, 9])
    stage = opened(one, 2, [0, 1, 2])
    round_of(stage, [0, 1, 2])
    track, device_data = stage.federation.model, stage.trainer.device_data
    once = []
    for _ in range(2):
        track.join([8, 9], device_data.sizes([0, 1, 2, 8, 9]))
        once.append((track.state[name], vectors(stage, name)))
    assert torch.equal(once[0][0], once[1][0])
    assert np.array_equal(once[0][1], once[1][1])


def test_a_device_that_joins_feddyn_begins_without_a_past() -> None:
    """A newcomer's h_k from another session, which would shift the model, is dropped; members keep their h_k."""
    one = learner(FedDyn(alpha=0.01))
    session(one, 1, [7, 8])
    stage = opened(one, 2, [0, 1, 7])
    before = vectors(stage, "gradient")
    stage.train([0, 1, 7, 8], 1)
    after = vectors(stage, "gradient")
    assert np.abs(before[8]).max() > 100 * ROUNDING
    assert not after[8].any()
    assert np.array_equal(after[:8], before[:8])
    assert stage.federation.model.state["gradient"].abs().max() < ROUNDING, "the gradient is still 0"


def test_feddyn_sends_its_shift_until_an_update_has_arrived() -> None:
    one = learner(FedDyn(), cost={"payload": "exchanged"})
    model = one.payload_bits
    first = opened(one, 1, [0, 1, 2])
    assert first.train([0, 1, 2], 1).down_bits == (model,) * 3, "no vector to shift"
    first.aggregate([0, 1, 2])
    stage = opened(one, 2, [0, 1, 3])
    shifted = 2 * model
    assert stage.train([0, 1, 5], 1).down_bits == (shifted, shifted, model), "device 5 joins with zeros"
    stage.aggregate([0, 5])
    assert stage.train([0, 1, 3, 5], 2).down_bits == (model, shifted, shifted, model)
    assert learner(FedDyn()).payload_bits == model


def test_labels_of_a_device_that_joins_are_tested_from_its_first_round_on() -> None:
    one = learner("fedavg", partition="two_shard")
    stage = opened(one, 1, [0, 1])
    own = stage.trainer.device_data
    new = next(id_ for id_ in range(2, DEVICES) if set(own.labels([id_])) - set(own.labels([0, 1])))
    assert stage.facts.opening.labels == own.labels([0, 1])
    # the new device has left by the last round, but its labels still count, as it was a member in this session
    for round_, (ids, members) in enumerate(
        (([0], [0, 1]), ([0, new], [0, 1, new]), ([1], [0, 1, new])), start=1
    ):
        stage.train(ids, round_)
        trainer = stage.trainer
        expected = trainer.tester.evaluate(one.model, trainer.training_data.test, own.labels(members))
        tested = stage.evaluate()
        assert (tested.accuracy, tested.loss) == expected
    assert stage.facts.opening.labels == own.labels([0, 1]), "the opening's labels"
    assert opened(one, 2, [3]).federation.now.known == own.labels([0, 1, new])


@pytest.mark.parametrize(("algorithm", "name"), [*CORRECTING, (Moon(), LOCAL_MODEL)])
@pytest.mark.parametrize("overlap", [None, 0.0])
def test_devices_remember_with_equal_data(algorithm: Algorithm, name: str, overlap: float | None) -> None:
    partition = {"name": "dirichlet", "alpha": 0.3, "overlap": overlap}
    one = learner(algorithm, partition=partition)
    session(one, 1, range(DEVICES))
    stage = opened(one, 2, range(DEVICES))
    stands = overlap is None
    assert vectors(stage, name).any() == stands
    if name == "control":
        assert stage.federation.model.state[name].any() == stands


def test_a_first_round_with_new_data_is_that_of_a_new_device() -> None:
    """With new data, MOON has no previous model and no term, so session 2 begins with a round of FedAvg."""
    finals = []
    for algorithm in (Moon(mu=5.0), "fedavg"):
        one = learner(algorithm, partition={"name": "dirichlet", "alpha": 0.3, "overlap": 0.0})
        opened(one, 1, range(DEVICES)).train(range(DEVICES), 1)
        stage = opened(one, 2, range(DEVICES))
        stage.train(range(DEVICES), 1)
        finals.append(stage.federation.model.waiting_round(range(DEVICES)).rows.clone())
    torch.testing.assert_close(*finals, atol=ROUNDING, rtol=0)


def test_rows_are_seen_with_the_data_they_are_of() -> None:
    """A device's state is visible only with its data, so in a cell with other data the device has no state."""
    states = DeviceStates(4, CPU)
    first, second = states.of(lambda: 1), states.of(lambda: 2)
    missing = torch.tensor([-1.0, -1.0])
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    first.keep("vector", [0, 2], rows)
    second.keep("vector", [2], 10 * rows[1:])

    def seen(view: DeviceStates) -> list[list[float]]:
        return view.rows("vector", [0, 1, 2], missing).tolist()

    expected = [[[1, 2], [-1, -1], [-1, -1]], [[-1, -1], [-1, -1], [30, 40]]]
    assert [seen(first), seen(second)] == expected
    copied = DeviceStates(4, CPU)
    copied.restore(states.tensors())
    assert [seen(copied.of(lambda: 1)), seen(copied.of(lambda: 2))] == expected
    second.forget("vector", [2])
    assert seen(second)[2] == [-1, -1]
    first.shift("vector", [0, 1], torch.ones(2))
    assert seen(first) == [[2, 3], [1, 1], [-1, -1]]


A, B = range(5), range(5, 12)


def test_populations_hold_the_deals_of_the_first_sessions_for_good() -> None:
    partition = {"name": "dirichlet", "alpha": 0.3, "overlap": 0.2}
    both = learner("fedavg", [A, B], partition=partition).trainer.device_data
    held = [both.samples(id_).tolist() for id_ in (*A, *B)]
    for number, ids in enumerate((A, B), start=1):
        of = LearningSettings(dataset="digits", model="logistic", partition=partition).partition
        alone = of.assign(both._labels, len(ids), number, Streams(5))
        assert [both.samples(id_).tolist() for id_ in ids] == [own.tolist() for own in alone]
    first, second = set(both.labels(A)), set(both.labels(B))
    assert (len(first), len(second), len(first & second)) == (6, 6, 2)
    for number in (2, 3, 4):
        both.deal(number)
        assert [both.samples(id_).tolist() for id_ in (*A, *B)] == held


def test_what_stands_anyway_is_dealt_to_all_populations_together() -> None:
    alone, both = (learner("fedavg", groups, partition="half").trainer.device_data for groups in ([], [A, B]))
    assert all(np.array_equal(alone.samples(id_), both.samples(id_)) for id_ in (*A, *B))


@pytest.mark.parametrize(("algorithm", "name"), [*CORRECTING, (Moon(), LOCAL_MODEL)])
def test_a_population_comes_back_as_it_went(algorithm: Algorithm, name: str) -> None:
    """When a population returns, its devices have their data and states again, even after a restart."""
    partition = {"name": "dirichlet", "alpha": 0.3, "overlap": 0.0}
    one = learner(algorithm, [A, B], partition=partition)
    session(one, 1, A)
    left = opened(one, 2, B)
    held = [left.trainer.device_data.samples(id_).tolist() for id_ in A]
    remembered = vectors(left, name)
    assert (remembered[A].any(axis=1) == [len(own) > 0 for own in held]).all()
    assert not remembered[B].any()
    for round_ in (1, 2):
        round_of(left, B, round_)
    fresh = learner(algorithm, [A, B], partition=partition)
    fresh.trainer.training_data.devices.restore(*one.trainer.training_data.devices.state())
    fresh.restore(*one.state())
    for now in (one, fresh):
        stage = opened(now, 3, A)
        assert [stage.trainer.device_data.samples(id_).tolist() for id_ in A] == held
        there = vectors(stage, name)
        if name == "gradient":  # except for FedDyn's shift, which is common to all devices
            assert np.ptp(there[A] - remembered[A], axis=0).max() < ROUNDING
        else:
            assert np.array_equal(there[A], remembered[A])
        assert there[B].any()


@pytest.mark.parametrize(("algorithm", "name"), CORRECTING)
def test_who_comes_back_from_another_cell_joins_again(algorithm: Algorithm, name: str) -> None:
    """A device that returns from another cell joins again, as it brings vectors that the server does not know."""
    here = learner(algorithm)
    there = learner(algorithm, data=here.trainer.training_data, cell=1)
    stage, other = opened(here, 1, [0, 1, 2]), opened(there, 1, [5, 6])
    for round_ in (1, 2):
        round_of(stage, [0, 1, 2], round_)
        other.train([2, 5, 6], round_)
        assert off(other, name) < ROUNDING
        other.aggregate([2, 5, 6])
    assert off(stage, name) > 100 * ROUNDING
    round_of(stage, [0, 1], 3)
    stage.train([0, 2], 4)
    assert off(stage, name) < ROUNDING
    stage.aggregate([0, 2])
    assert off(stage, name) < ROUNDING


@pytest.mark.parametrize(("algorithm", "name"), CORRECTING)
def test_a_round_that_is_trained_again_has_taken_its_newcomers_in(algorithm: Algorithm, name: str) -> None:
    """A round that is trained again keeps its newcomers' `join`, even if a newcomer has moved to another cell."""
    one = learner(algorithm)
    session(one, 1, [5, 6])
    there = learner(algorithm, data=one.trainer.training_data, cell=1)
    stage = opened(one, 2, [0, 1])
    round_of(stage, [0, 1, 5])
    stage.train([0, 1, 5], 2)
    before = stage.federation.model.waiting_round([0, 1, 5]).rows.clone()
    opened(there, 1, [5, 7])
    fresh = learner(algorithm)
    fresh.trainer.training_data.devices.restore(*one.trainer.training_data.devices.state())
    fresh.restore(*one.state())
    again = next(fresh.stages())
    again.train([0, 1, 5], 2)
    assert torch.equal(again.federation.model.state[name], stage.federation.model.state[name])
    rows = again.federation.model.waiting_round([0, 1, 5]).rows
    assert torch.equal(rows[:2], before[:2]), "no device waits for the third"
