"""Test that a fresh learner with a restored state continues bit for bit as if not interrupted."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load, save

from edgefl.config import registry
from edgefl.contract import SessionStart
from edgefl.learning.federation.learner import TorchLearner
from edgefl.learning.settings import LearningSettings
from edgefl.rng import Streams
from edgefl.testing.cell import within
from edgefl.testing.conformance import same
from tests.unit.learning.digits_cell import Normed, data_of, settings_of

DEVICES, ROUNDS = 6, 2
# each warm start, and "checked" with two probe rounds, two pilot sessions, the check, and a short history
WARM_STARTS: dict[str, dict[str, Any]] = {
    **{name: {"warm_start": name} for name in registry.names("warm_starts")},
    "checked": {
        "warm_start": {"name": "similarity", "probe_rounds": 2, "check": True, "history": 2},
        "pilot_sessions": 2,
        "local": {"epochs": 1},
    },
}
# enough sessions for every step of a warm start: similarity weighs several models, and "checked" also drops a model
SESSIONS = {name: {"similarity": 4, "checked": 5}.get(name, 3) for name in WARM_STARTS}


class Stop(NamedTuple):
    """A point at which a run can be interrupted: after the training or the aggregation of a round."""

    session: int
    stage: int  # number of the stage, from 0 on
    round: int  # number within the stage, from 1 on
    earlier: int  # rounds of the same phase in the session's earlier stages, which are included in a round's number
    aggregated: bool


class Cell:
    """A learner with its data, whose whole state can be saved as bytes and restored."""

    def __init__(self, settings: LearningSettings) -> None:
        self.training_data = data_of(settings, devices=DEVICES)
        self.one = TorchLearner(settings, self.training_data, streams=Streams(5))

    def snapshot(self) -> tuple[bytes, ...]:
        """Return the state as bytes, as in files, so that no object is shared."""
        return as_bytes(self.one.state(), self.training_data.devices.state())

    def restore(self, snapshot: tuple[bytes, ...]) -> None:
        tensors, facts, kept, of_devices = snapshot
        self.training_data.devices.restore(load(kept), json.loads(of_devices))
        self.one.restore(load(tensors), json.loads(facts))


def as_bytes(*states: tuple[dict[str, torch.Tensor], dict[str, Any]]) -> tuple[bytes, ...]:
    found: list[bytes] = []
    for tensors, facts in states:
        own = {name: tensor.clone() for name, tensor in tensors.items()}  # safetensors refuses shared memory
        found += [save(own), json.dumps(facts).encode()]
    return tuple(found)


def two(how: LearningSettings, snapshots: Sequence[tuple[bytes, ...]] = ()) -> list[Cell]:
    """Return two cells that share the states of devices, restored from snapshots if given."""
    first, second = Cell(how), Cell(how)
    second.training_data = first.training_data
    second.one = TorchLearner(how, first.training_data, streams=Streams(5), cell=1)
    for cell, snapshot in zip((first, second), snapshots, strict=False):
        cell.restore(snapshot)
    return [first, second]


def present(session: int, round_: int) -> list[int]:
    """Return a round's participants, which change from session to session; a device joins in the second round."""
    there = [id_ for id_ in range(DEVICES) if (id_ + session) % 3]
    return sorted({*there, (2 * session) % DEVICES} if round_ > 1 else {*there})


def arrived(ids: list[int]) -> list[int]:
    """Return the devices whose update arrives, which are all but one."""
    return ids[:-1]


def play(cell: Cell, log: list[Any], sessions: int, at: Stop | None = None) -> Iterator[Stop]:
    """Play all sessions, or the rest of them after a stop, and yield each stop; log all answers of the learner."""
    learner = cell.one
    for number in range(at.session if at else 1, sessions + 1):
        resumed = at if at and number == at.session else None
        start = SessionStart(number, tuple(present(number, 1)), longest=ROUNDS, reports=True)
        stages: Iterator[Any] = learner.stages() if resumed else learner.session(start)
        earlier: Counter[str] = Counter()
        for index, stage in enumerate(stages, start=resumed.stage if resumed else 0):
            here = resumed if resumed and index == resumed.stage else None
            facts, begins = stage.facts, 1
            if here:
                begins = here.round + here.aggregated
                earlier[facts.phase] = here.earlier
            else:
                log.append(vars(facts))
            rounds = facts.rounds or ROUNDS
            for round_ in range(begins, rounds + 1):
                ids, before = present(number, round_), earlier[facts.phase]
                local = vars(stage.train(ids, before + round_))
                log.append(local)
                yield Stop(number, index, round_, before, aggregated=False)
                stage.aggregate(arrived(ids))
                log.append(vars(stage.evaluate()) if facts.evaluates else None)
                yield Stop(number, index, round_, before, aggregated=True)
            earlier[facts.phase] += rounds
    log.append(learner.model.clone())
    yield Stop(sessions + 1, 0, 0, 0, aggregated=True)


def settings(algorithm: str, warm_start: str, **more: Any) -> LearningSettings:
    plain = {"local": {"batch": 32, "steps": 2}, "algorithm": algorithm, **WARM_STARTS[warm_start]}
    return settings_of(**within(plain, more))


def goes_on_after_any_round(how: LearningSettings, sessions: int, stages: set[int]) -> None:
    """Check that a fresh learner, restored at any stop, reaches the next stop with the same answers and state."""
    cell, log = Cell(how), list[Any]()
    stop, snapshot, reached, taken = None, None, set(), list[Any]()
    for following in play(cell, log, sessions):
        expected = cell.snapshot()
        taken.append((cell.one.state(), cell.training_data.devices.state(), expected))
        assert not [name for name in cell.one.state()[0] if "waiting" in name], "rounds do not overlap"
        if stop and snapshot:
            fresh, said = Cell(how), list[Any]()
            fresh.restore(snapshot)
            again = play(fresh, said, sessions, at=stop)
            if not stop.aggregated:
                # the pending round is trained again, with the same answers
                assert next(again) == stop
            assert next(again) == following, stop
            assert same(said, log[len(log) - len(said) :]), stop
            assert fresh.snapshot() == expected, stop
        stop, snapshot = following, expected
        reached.add((following.session, following.stage))
    assert {stage for session, stage in reached if session == sessions} == stages, "all were reached"
    # a state may be written later, as training and aggregation create new tensors instead of changing it
    assert all(as_bytes(*states) == written for *states, written in taken)


# algorithms and warm starts have separate states, so few pairs are enough; MOON and `continuous` each add a loss term
PAIRS = [
    *((name, "checked") for name in registry.names("algorithms")),
    *((name, warm_start) for name in ("fedavg", "moon", "hypcluster") for warm_start in WARM_STARTS),
]


@pytest.mark.parametrize(("algorithm", "warm_start"), dict.fromkeys(PAIRS))
def test_a_learner_goes_on_after_any_round(algorithm: str, warm_start: str) -> None:
    stages = {"similarity": {0, 1}, "checked": {0, 1, 2}}.get(warm_start, {0})
    goes_on_after_any_round(settings(algorithm, warm_start), SESSIONS[warm_start], stages)


@pytest.mark.parametrize("algorithm", ["scaffold", "feddyn", "moon"])
def test_what_devices_remember_goes_on_too(algorithm: str) -> None:
    """If data stay with devices, their kept vectors are used in the next session, even if a device joins late."""
    standing = {"partition": {"name": "dirichlet", "alpha": 0.5}, "cost": {"payload": "exchanged"}}
    goes_on_after_any_round(settings(algorithm, "previous", **standing), 5, {0})


def test_statistics_and_dropout_go_on_too() -> None:
    how = settings("moon", "similarity", model=Normed(dropout=0.2), local={"batching": "stacked"})
    goes_on_after_any_round(how, SESSIONS["similarity"], {0, 1})


def test_cells_that_share_what_devices_keep_go_on_together() -> None:
    """A device's control variate from one cell is used in the other cell, even after a restart."""
    how = settings("scaffold", "previous")

    def go_on(cells: list[Cell], numbers: range) -> list[Any]:
        log: list[Any] = []
        for number in numbers:
            for place, cell in enumerate(cells):
                ids = tuple(present(number + place, 1))
                for stage in cell.one.session(SessionStart(number, ids, longest=1)):
                    stage.train(ids, 1)
                    stage.aggregate(ids)
                log.append(cell.one.model.clone())
        return log

    undisturbed = two(how)
    go_on(undisturbed, range(1, 3))
    snapshots = [cell.snapshot() for cell in undisturbed]
    restored = two(how, snapshots)
    assert same(go_on(undisturbed, range(3, 5)), go_on(restored, range(3, 5)))
    assert same(snapshots[0][2:], snapshots[1][2:]), "devices' states are the same in both cells"


def test_a_round_that_theory_measures_is_tested_from_a_snapshot_too() -> None:
    """A snapshot between an aggregation and its test contains all that the test needs."""
    how = settings("fedavg", "previous", theory=1)
    cell, fresh = Cell(how), Cell(how)
    stage = next(cell.one.session(SessionStart(1, tuple(range(DEVICES)), longest=ROUNDS)))
    stage.train(range(DEVICES), 1)
    stage.aggregate(arrived(list(range(DEVICES))))
    fresh.restore(cell.snapshot())
    tested, again = stage.evaluate(), next(fresh.one.stages()).evaluate()
    assert tested == again
    assert tested.scalars["theory_loss_after"] < tested.scalars["theory_loss"]
