"""Test updates of several rounds in flight, which are stored as trained, and rebased if stale."""

import numpy as np
import pytest
import torch

from edgefl.contract import Staleness
from edgefl.learning.algorithms import Algorithm, ServerState, Updates
from edgefl.learning.algorithms.apfl import Apfl
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.moon import Moon
from edgefl.learning.algorithms.scaffold import Scaffold
from edgefl.learning.data.batches import Batches, draw_batches
from edgefl.learning.updates.arrivals import Weighing
from edgefl.learning.updates.device_side import LOCAL_MODEL
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.trained_model import TrainedModel
from tests.unit.learning.six_devices import BATCH, DEVICES, HELD, LR, OWN, Plain, X, training

ROUNDING = 1e-6
FIRST, SECOND = [0, 2, 3], [1, 4]


def trained_model(algorithm: Algorithm | None = None, x: np.ndarray = X) -> TrainedModel:
    local = training(Plain(), x=x)
    begin = local.layout.flatten(local._module)
    model = TrainedModel(local, algorithm or FedAvg(), DeviceStates(DEVICES, torch.device("cpu")), begin)
    model.open(model.model, HELD)
    return model


def batches(ids: list[int], number: int) -> Batches:
    generators = [np.random.default_rng([number, k]) for k in ids]
    return draw_batches([OWN[k] for k in ids], [3] * len(ids), BATCH, generators)


def train(model: TrainedModel, ids: list[int], number: int, lr: float = LR) -> dict[int, np.ndarray]:
    """Train, and return the local models by device."""
    rows = model.train(ids, batches(ids, number), lr, []).round.rows
    return {id_: row.double().numpy() for id_, row in zip(ids, rows.clone(), strict=True)}


def shares(ids: list[int]) -> np.ndarray:
    sizes = np.array([HELD[id_] for id_ in ids], dtype=float)
    return sizes / sizes.sum()


def as_float64(model: TrainedModel) -> np.ndarray:
    return model.model.double().numpy()


def test_updates_of_one_model_are_averaged_whichever_round_they_are_of() -> None:
    model = trained_model()
    local = train(model, FIRST, 1) | train(model, SECOND, 2)
    taken = [0, 1, 4]
    model.aggregate(taken, HELD)
    assert np.abs(as_float64(model) - shares(taken) @ [local[id_] for id_ in taken]).max() < ROUNDING
    assert sorted(model.waiting) == [2, 3]


def test_stale_updates_move_todays_model_by_what_they_have_learned() -> None:
    """The next model is sum_k a_k (w + local_k - start_k), where device k began from the model start_k."""
    model = trained_model()
    local, start = train(model, FIRST, 1), as_float64(model)
    fresh = train(model, SECOND, 2)
    model.aggregate([0, 4], HELD)
    today = as_float64(model)
    fresh |= train(model, [0, 4, 5], 3)
    taken = [0, 1, 2]
    model.aggregate(taken, HELD)
    rows = [fresh[0], today + fresh[1] - start, today + local[2] - start]
    assert np.abs(as_float64(model) - shares(taken) @ rows).max() < ROUNDING
    assert np.abs(today - start).max() > 100 * ROUNDING, "they are stale"


def test_weights_of_stale_updates_are_those_of_the_contract() -> None:
    """The next model is w + scale sum_k p_k weight_k (local_k - start_k)."""
    model = trained_model()
    local, start = train(model, FIRST, 1), as_float64(model)
    local |= train(model, SECOND, 2)
    model.aggregate([0, 4], HELD)
    today, taken = as_float64(model), [1, 2, 3]
    local |= train(model, [5], 3)
    fresh = [*taken, 5]
    weighing = Weighing(Staleness("polynomial", exponent=1.0, divisor="weights", scale=0.7))
    model.aggregate(fresh, HELD, weighing)
    p = shares(fresh)
    s = np.array([1 / 2, 1 / 2, 1 / 2, 1.0])
    begun = np.array([start, start, start, today])
    change = np.array([local[id_] for id_ in fresh]) - begun
    expected = today + 0.7 * (p * s / (p @ s)) @ change
    assert np.abs(as_float64(model) - expected).max() < ROUNDING


@pytest.mark.parametrize(("cap", "expected"), [(None, 3), (2, 2), (5, 3)])
def test_algorithms_see_at_most_the_cap_of_the_staleness(cap: int | None, expected: int) -> None:
    """FADAS shortens its steps by the largest staleness, which `max_staleness` with `beyond: cap` limits."""
    seen = []

    class Seeing(FedAvg):
        def aggregate(
            self, model: torch.Tensor, updates: Updates, state: ServerState
        ) -> tuple[torch.Tensor, ServerState]:
            seen.append(updates.staleness)
            return super().aggregate(model, updates, state)

    model = trained_model(Seeing())
    train(model, [5], 1)
    for number in (2, 3, 4):
        train(model, FIRST, number)
        model.aggregate(FIRST, HELD)
    model.aggregate([5], HELD, Weighing(Staleness("constant", cap=cap)))
    assert seen == [0, 0, 0, expected]


def test_an_update_is_mixed_into_the_current_model() -> None:
    """FedAsync's next model is (1 - a) w + a local, with a = alpha s(tau)."""
    model = trained_model()
    local = train(model, FIRST, 1)
    model.aggregate([0], HELD)
    today = as_float64(model)
    model.aggregate([3], HELD, Weighing(Staleness("polynomial", base="current", scale=0.6)))
    share = 0.6 / np.sqrt(2)
    assert np.abs(as_float64(model) - (1 - share) * today - share * local[3]).max() < ROUNDING


def test_a_buffer_of_devices_with_one_sample_is_one_device_with_them_all() -> None:
    """As in FLSim, the sum of B devices' steps on one sample each equals one device's step on all B samples with B
    times the rate."""
    samples = [np.array([index]) for index in (3, 40, 77, 110)]
    many, one = trained_model(), trained_model()
    generators = [np.random.default_rng(k) for k in range(4)]
    many.train([0, 1, 2, 3], draw_batches(samples, [1] * 4, 1, generators), LR / 4, [])
    many.aggregate([0, 1, 2, 3], dict.fromkeys(range(4), 1), Weighing(Staleness("constant", divisor="none")))
    one.train([0], draw_batches([np.concatenate(samples)], [1], 4, generators[:1]), LR, [])
    one.aggregate([0], {0: 4}, Weighing(Staleness("constant")))
    assert np.abs(as_float64(many) - as_float64(one)).max() < ROUNDING
    assert np.abs(as_float64(one) - as_float64(trained_model())).max() > 100 * ROUNDING, "they have moved"


def test_the_model_is_the_mean_of_the_tiers_models_weighed_by_the_opposite_tiers_count() -> None:
    """After updates of the fast, fast, slow and middle tier, counts are (2, 1, 1), and weights (1, 1, 2) / 4."""
    tiers = Weighing(Staleness("constant", tiers=(0, 0, 1, 1, 2, 2)))
    model = trained_model()
    opening = as_float64(model)
    local = train(model, [4, 5], 1)
    local |= train(model, [2, 3], 2)
    train(model, [0, 1], 3)
    model.aggregate([0, 1], HELD, tiers)
    # the count of the fast tier is the weight of the slow tier, which has not made a model yet
    assert np.abs(as_float64(model) - opening).max() < ROUNDING
    fast = train(model, [0, 1], 4)
    model.aggregate([0, 1], HELD, tiers)
    assert np.abs(as_float64(model) - opening).max() < ROUNDING
    of = {0: shares([0, 1]) @ [fast[0], fast[1]], 2: shares([4, 5]) @ [local[4], local[5]]}
    model.aggregate([4, 5], HELD, tiers)
    assert np.abs(as_float64(model) - (of[0] + 2 * of[2]) / 3).max() < ROUNDING
    of[1] = shares([2, 3]) @ [local[2], local[3]]
    restored = trained_model()
    restored.restore(model.tensors())
    for one in (model, restored):
        one.aggregate([2, 3], HELD, tiers)
        assert np.abs(as_float64(one) - (of[0] + of[1] + 2 * of[2]) / 4).max() < ROUNDING
    assert np.abs(of[2] - opening).max() > 100 * ROUNDING, "they have moved"


def test_a_tier_without_devices_in_the_session_has_no_weight() -> None:
    """Of four tiers, those of ranks 0 and 2 have devices at first, so each is the opposite of the other."""
    tiers = Weighing(Staleness("constant", tiers=(0, 0, 1, 2, 2, 3)))
    few = {id_: HELD[id_] for id_ in (0, 1, 3, 4)}
    model = trained_model()
    local = train(model, [0, 1, 3, 4], 1)
    of = {0: shares([0, 1]) @ [local[0], local[1]], 2: shares([3, 4]) @ [local[3], local[4]]}
    model.aggregate([3, 4], few, tiers)
    model.aggregate([0, 1], few, tiers)
    both = (of[0] + of[2]) / 2
    assert np.abs(as_float64(model) - both).max() < ROUNDING
    # device 5 is the only one of the last tier, whose model is the global model until it has made one
    more = {**few, 5: HELD[5]}
    fast = train(model, [0, 1], 2)
    model.aggregate([0, 1], more, tiers)
    of[0] = shares([0, 1]) @ [fast[0], fast[1]]
    # counts are (2, 1, 0), and weights (0, 1, 2) / 3
    assert np.abs(as_float64(model) - (of[2] + 2 * both) / 3).max() < ROUNDING


def test_devices_keep_what_they_have_really_trained() -> None:
    """MOON compares with the device's own last model, not with its rebased stale update."""
    model = trained_model(Moon())
    local = train(model, FIRST, 1)
    model.aggregate([0], HELD)
    model.aggregate([3], HELD, Weighing(Staleness(base="current", scale=0.1)))
    kept = model.devices.rows(LOCAL_MODEL, [3], model.model)[0]
    assert np.abs(kept.double().numpy() - local[3]).max() < ROUNDING


def test_a_device_that_trains_anew_has_one_update() -> None:
    model = trained_model()
    train(model, FIRST, 1)
    local = train(model, [2], 2)
    model.aggregate([2], HELD)
    assert np.abs(as_float64(model) - local[2]).max() < ROUNDING


def test_memory_is_used_again_once_nothing_waits_in_it() -> None:
    model = trained_model()
    places = []
    for number, taken in enumerate([FIRST, FIRST, [0, 2], [0, 3], FIRST]):
        rows = model.train(FIRST, batches(FIRST, number), LR, []).round.rows
        places.append(rows.data_ptr())
        if number == 2:
            train(model, SECOND, 9)
        model.aggregate(taken, HELD)
    assert len(set(places[:3])) == 1
    assert places[3] not in places[:3], "others wait"


def test_each_device_keeps_what_its_own_learning_rate_says() -> None:
    """SCAFFOLD's next c_k is c_k - c + (start - local) / (a_k lr) with the device's lr; c_k and c are 0 at first."""
    model = trained_model(Scaffold())
    rates = dict.fromkeys(FIRST, LR) | dict.fromkeys(SECOND, LR / 4)
    start = as_float64(model)
    local = train(model, FIRST, 1) | train(model, SECOND, 2, LR / 4)
    taken = [0, 1, 3]
    model.aggregate(taken, HELD)
    travel = model._training.travel(np.array([3]))[0]
    for id_, control in zip(taken, model.devices.rows("control", taken, model.model), strict=True):
        expected = (start - local[id_]) / (travel * rates[id_])
        assert np.abs(control.double().numpy() - expected).max() < ROUNDING / LR


def test_who_is_dropped_holds_the_model_that_it_began_with() -> None:
    """A dropped device, whose samples have NaN, keeps the received model, whether one device or all are dropped."""
    for lost in ([2], FIRST):
        x = X.astype(np.float32)
        x[np.concatenate([OWN[id_] for id_ in lost])] = np.nan
        model = trained_model(x=x)
        start = as_float64(model)
        result = model.train(FIRST, batches(FIRST, 1), LR, [], drops=True)
        assert list(result.not_finite) == lost
        rows = result.round.rows.double().numpy()
        for id_, row in zip(FIRST, rows, strict=True):
            assert (np.abs(row - start).max() == 0.0) == (id_ in lost)


@pytest.mark.parametrize("algorithm", [FedAvg(), Apfl(alpha=0.3)])
@pytest.mark.parametrize("times", [1, 2])
def test_updates_on_their_way_come_back_from_tensors(algorithm: Algorithm, times: int) -> None:
    """Pending updates are restored, except for updates of the latest round if this round can be trained again.

    Before the round is trained again, another cell may take a snapshot, which contains the other updates.
    """
    model = restored = trained_model(algorithm)
    train(model, FIRST, 1)
    train(model, SECOND, 2)
    for _ in range(times):
        before, restored = restored, trained_model(algorithm)
        restored.restore(before.tensors())
    assert sorted(restored.waiting) == FIRST
    for one in (model, restored):
        train(one, SECOND, 2)
        one.aggregate([2, 4], HELD)
    assert torch.equal(model.model, restored.model)
    restored.restore(model.tensors())
    assert sorted(restored.waiting) == [0, 1, 3], "the model has changed"
    for one in (model, restored):
        one.aggregate([0, 1], HELD)
    assert torch.equal(model.model, restored.model)
