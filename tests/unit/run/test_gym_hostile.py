"""Test that an agent's wrong calls of a Gymnasium environment give one error, and never block."""

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.refusals import refused_at

pytest.importorskip("gymnasium", reason="in the gym extra")

from edgefl.engine.selectors import Decision
from edgefl.errors import EdgeflError
from edgefl.run.gym import RoundEnv
from tests.tables import sections

SMALL: dict[str, Any] = sections("""
    name=small; devices={count: 4}; radio={preset: journal}; sessions={name: schedule, count: 1, rounds: 2}
    workload={payload_bits: 100000, flops_per_sample: 1e5}
""")
ALL = np.ones((4, 4))


@pytest.fixture(scope="module")
def env() -> Any:
    made = RoundEnv(SMALL)
    made.reset(seed=1)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("action", "why"),
    [
        pytest.param(np.where(np.eye(4) > 0, np.nan, 1.0), "who of device 0.* to nan", id="nan"),
        pytest.param(np.full((4, 4), np.inf), "who.* to inf", id="inf"),
        pytest.param(np.ones(16), "shape", id="flat"),
        pytest.param(np.ones((4, 1)), "shape", id="a column that would broadcast"),
        pytest.param(np.ones((4, 5)), "shape", id="a column too many"),
        pytest.param(np.ones((5, 4)), "shape", id="a device too many"),
        pytest.param(np.ones((3, 4)), "shape", id="a device too few"),
        pytest.param(np.ones((4, 4, 1)), "shape", id="an axis too many"),
        pytest.param(np.ones((1, 4, 4)), "shape", id="a batch"),
        pytest.param(np.empty((0, 4)), "shape", id="empty"),
        pytest.param(1.0, "shape", id="scalar"),
        pytest.param(None, "shape", id="none"),
        pytest.param("all", "shape", id="text"),
        pytest.param({"who": 1}, "shape", id="dict"),
        pytest.param([[1], [1, 2]], "not an array", id="ragged"),
        pytest.param([["a"] * 4] * 4, "of <U1", id="texts"),
        pytest.param(ALL * 1j, "of complex128", id="complex"),
        pytest.param(np.full((4, 4), None, object), "of object", id="objects"),
        pytest.param(np.full((4, 4), np.datetime64("2020-01-01")), "of datetime64", id="dates"),
    ],
)
def test_an_action_that_is_none_is_refused(env: RoundEnv, action: Any, why: str) -> None:
    """An invalid action is refused, and the round still waits for a valid one."""
    with pytest.raises(EdgeflError, match=f"the action (is|has|sets) .*{why}.*: pass"):
        env.step(action)
    assert env._run is not None
    assert env._run.waiting is not None


@pytest.mark.parametrize("action", [2 * ALL, ALL.astype(int), ALL.astype(bool), ALL.tolist(), 1e308 * ALL])
def test_numbers_outside_are_cut(env: RoundEnv, action: Any) -> None:
    assert env._run is not None
    assert env._run.waiting is not None
    assert list(env.decision(env._run.waiting, action).ids) == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", ["x", -1, 1.5, [1]])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    with refused_at("", "seed"):
        RoundEnv(SMALL).reset(seed=seed)


@pytest.mark.parametrize(
    "how",
    [
        {"accuracy": float("nan")},
        {"joules": float("inf")},
        {"seconds": "x"},
        {"controls": None},
        {"controls": ["who"]},
        {"controls": ("who", "who")},
    ],
)
def test_a_setting_that_is_none_is_refused(how: dict[str, Any]) -> None:
    with refused_at("", next(iter(how))):
        RoundEnv(SMALL, **how)


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))],
    ids=["copy", "deep", "pickle"],
)
def test_a_copy_has_a_run_of_its_own(again: Callable[[RoundEnv], RoundEnv]) -> None:
    """A copy has its own run; an environment whose run has begun cannot be copied, as the run is in a thread."""
    env = RoundEnv(SMALL)
    other = again(env)
    assert env.reset(seed=1)[1] == other.reset(seed=1)[1]
    assert np.array_equal(env.step(ALL)[0], other.step(ALL)[0])
    with refused_at("", "cannot be copied"):
        again(env)
    for one in (env, other):
        one.close()
        one.close()


def test_a_run_that_failed_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed run, a further step or close must not wait for its thread, which has ended."""
    env = RoundEnv(SMALL)
    env.reset(seed=1)
    with monkeypatch.context() as patched:
        patched.setattr(env, "decision", lambda *_: Decision([99]))
        with refused_at("", "[99]"):
            env.step(ALL)

    told: list[str] = []

    def go_on() -> None:
        with refused_at("", "reset()"):
            env.step(ALL)
        env.close()
        env.reset(seed=1)
        env.step(ALL)
        env.close()
        told.append("went on")

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert told == ["went on"]
