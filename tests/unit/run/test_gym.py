"""Test a run as a Gymnasium environment: by Gymnasium's checker, against a plain run, and with wrong calls."""

import copy
import pickle
import runpy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.refusals import refused_at

gymnasium = pytest.importorskip("gymnasium", reason="in the gym extra")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from edgefl import load_scenario, simulate  # noqa: E402
from edgefl.engine.selectors import Decision  # noqa: E402
from edgefl.errors import EdgeflError  # noqa: E402
from edgefl.run.gym import FEATURES, RoundEnv  # noqa: E402
from tests.tables import sections  # noqa: E402
from tests.tools.pages import ROOT  # noqa: E402

SMALL: dict[str, Any] = sections("""
    name=small; devices={count: 4}; radio={preset: journal}; sessions={name: schedule, count: 1, rounds: 3}
    workload={payload_bits: 100000, flops_per_sample: 1e5}
""")


def without(section: str) -> dict[str, Any]:
    return {key: value for key, value in SMALL.items() if key != section}


@pytest.mark.filterwarnings("ignore")  # warnings advise on observation ranges
def test_the_checker_passes() -> None:
    check_env(RoundEnv(SMALL), skip_render_check=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["edgefl/Round-v0", "edgefl.run.gym:edgefl/Round-v0"])
def test_gymnasium_makes_it_by_name(name: str) -> None:
    made = gymnasium.make(name, scenario=SMALL, controls=("who",))
    assert isinstance(made.unwrapped, RoundEnv)
    assert made.action_space.shape == (4, 1)
    check_env(made.unwrapped, skip_render_check=True)


def test_made_by_its_name_alone_it_is_the_quickstart() -> None:
    """An environment made without arguments is the quickstart, whose shipped scenario has 40 devices."""
    made = gymnasium.make("edgefl/Round-v0")
    assert made.action_space.shape == (40, 4)
    made.close()


def test_a_radio_with_nothing_set_serves_an_agent_that_sets_shares() -> None:
    """By default, shares are fixed for a round, as an agent that sets shares needs; dynamic sharing is refused."""
    usual = without("radio")
    env = RoundEnv(usual)
    assert env.reset(seed=1)[0].shape == (4, len(FEATURES))
    env.close()
    with refused_at("radio.sharing", "needs shares and powers that are fixed", "set sharing: static"):
        RoundEnv({**usual, "radio": {"sharing": "dynamic"}})


@pytest.mark.parametrize(
    "changes",
    [
        "radio.scheduler=round_robin",
        "radio.scheduler=round_robin; radio.sharing=dynamic",
        "radio.sharing=dynamic",
        "radio.background={users: 1}",
        "rounds.server={name: fedbuff, buffer: 2, concurrency: 2}",
        "rounds.server={name: fedbuff, buffer: 2, concurrency: 2}; radio.sharing=dynamic",
    ],
)
def test_shares_that_change_are_refused_with_a_remedy_that_works(changes: str) -> None:
    """The error names no class of edgefl and leads in no circle: without shares and power, the run begins."""
    scenario = without("radio") | sections(changes)
    with refused_at("", "leave shares and power out of controls") as refusal:
        RoundEnv(scenario)
    assert "Controlled" not in str(refusal.value)
    assert "set sharing: dynamic" not in str(refusal.value)
    env = RoundEnv(scenario, controls=("who", "clock"))
    env.reset(seed=1)
    env.close()


def test_an_asynchronous_server_gets_the_most_wanted_devices_for_its_free_places() -> None:
    """Of three devices above 0.5, the two highest fill both places; an episode of random actions reaches its end."""
    server = {"name": "fedbuff", "buffer": 2, "concurrency": 2}
    scenario = without("radio") | {"rounds": {"server": server}}
    env = RoundEnv(scenario, controls=("who",), seconds=1.0)
    env.reset(seed=1)
    run = env._run
    assert run is not None
    assert run.waiting is not None
    chosen = env.decision(run.waiting, np.array([[0.6], [0.9], [0.2], [0.7]]), run.most)
    assert list(chosen.ids) == [1, 3]
    rng, over = np.random.default_rng(1), False
    while not over:
        _, _, over, _, _ = env.step(rng.random((4, 1)))
    assert len(run.rows) == 3


def test_all_taking_part_is_the_run_of_all(tmp_path: Any) -> None:
    env = RoundEnv(SMALL, controls=("who",), accuracy=0.0, seconds=1.0, joules=2.0)
    first, info = env.reset(seed=5)
    assert info["seed"] == 5
    rows, rewards, over = [], [], False
    while not over:
        _, reward, over, _, told = env.step(np.ones((4, 1)))
        rows.append(told["round"])
        rewards.append(reward)
    results = simulate(load_scenario({**SMALL, "seed": info["seed"]}), tmp_path / "run")
    for name in ("end_s", "energy_j"):
        # tables round times to a nanosecond
        assert [row[name] for row in rows] == pytest.approx(results.rounds[name].tolist(), rel=1e-12)
    costs = results.rounds["end_s"].diff().fillna(results.rounds["end_s"]) + 2 * results.rounds["energy_j"]
    assert rewards == pytest.approx((-costs).tolist())
    assert first[:, FEATURES.index("present")].tolist() == [1.0] * 4
    with refused_at("", "reset()"):
        env.step(np.ones((4, 1)))


def test_the_first_step_gains_only_what_training_adds(tmp_path: Any) -> None:
    """The accuracies gained add up from the first model's accuracy, which reset() states, to the last one's."""
    learning = {"dataset": "synthetic", "model": "logistic"}
    scenario = without("workload") | {"learning": learning}
    env = RoundEnv(scenario, controls=("who",))
    _, start = env.reset(seed=5)
    rewards, infos, over = [], [start], False
    while not over:
        _, reward, over, _, info = env.step(np.ones((4, 1)))
        rewards.append(reward)
        infos.append(info)
    results = simulate(load_scenario({**scenario, "seed": start["seed"]}), tmp_path / "run")
    assert start["accuracy"] == results.sessions["accuracy_start"][0] > 0
    accuracies = [start["accuracy"], *results.rounds["accuracy"]]
    assert rewards == pytest.approx(np.diff(accuracies).tolist())
    assert [info["accuracy_gained"] for info in infos[1:]] == rewards
    assert [info["accuracy"] for info in infos] == pytest.approx(accuracies), (
        "a level in reset() and in step()"
    )


def test_reports_and_powers_are_not_in_a_run_that_only_chooses(tmp_path: Any) -> None:
    """A loss and a norm add 64 bits to each upload, and an action's power replaces power control."""
    learning = {"dataset": "synthetic", "model": "logistic"}
    radio = {"sharing": "static", "budget": {"uplink_p0_dbm": -100.0}}
    scenario = without("workload") | {"radio": radio, "learning": learning}

    def first_round(**how: Any) -> dict[str, Any]:
        env = RoundEnv(scenario, **how)
        env.reset(seed=5)
        *_, info = env.step(np.ones(env.action_space.shape))
        env.close()
        return info["round"]

    env = RoundEnv(scenario)
    _, info = env.reset(seed=5)
    env.close()
    plain = simulate(load_scenario({**scenario, "seed": info["seed"]}), tmp_path / "run").rounds.iloc[0]
    costs = ("end_s", "uplink_bits", "energy_tx_j")
    alike = first_round(controls=("who",))
    assert [alike[name] for name in costs] == pytest.approx([plain[name] for name in costs])
    with_reports = first_round(controls=("who",), reports=True)
    assert with_reports["uplink_bits"] - plain["uplink_bits"] == 64 * plain["participants"]
    assert first_round(controls=("who", "power"))["energy_tx_j"] != pytest.approx(plain["energy_tx_j"])


def test_an_action_is_carried_out() -> None:
    env = RoundEnv(SMALL)
    env.reset(seed=5)
    action = np.array([[0.9, 0.2, 1.0, 0.5], [0.1, 1, 1, 1], [0.8, 0.6, 0.5, 1.0], [0.2, 1, 1, 1]])
    run = env._run
    decision = env.decision(run.waiting, action, run.most)
    assert list(decision.ids) == [0, 2]
    assert decision.up_shares == pytest.approx([0.25, 0.75])
    assert decision.power == pytest.approx([1.0, 0.5])
    assert decision.clock_hz == pytest.approx([0.5e9, 1e9])
    nobody = env.decision(run.waiting, 0.4 * action, run.most)
    assert list(nobody.ids) == [0]
    env.close()


def test_the_examples_policies_go_through_a_run() -> None:
    """The example's policies complete a run with training; choosing the faster half of devices ends it sooner."""
    found = runpy.run_path(str(ROOT / "examples" / "controller.py"))
    slow, fast = (found["episode"](found[name]) for name in ("at_random", "greedy"))
    assert min(slow[0], fast[0]) > 0.3
    assert fast[1] < slow[1]


def test_an_error_of_the_run_is_told() -> None:
    with refused_at("", "controls"):
        RoundEnv(SMALL, controls=("power",))
    budget = {"power_over_share": "per_resource_block"}
    with refused_at("", "uplink_power_over_share: full"):
        RoundEnv({**SMALL, "radio": {"preset": "journal", "budget": budget}})
    with refused_at("", "workload"):
        RoundEnv(SMALL, reports=True).reset()


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
        pytest.param([["a"] * 4] * 4, "type <U1", id="texts"),
        pytest.param(ALL * 1j, "type complex128", id="complex"),
        pytest.param(np.full((4, 4), None, object), "type object", id="objects"),
        pytest.param(np.full((4, 4), np.datetime64("2020-01-01")), "type datetime64", id="dates"),
    ],
)
def test_an_action_that_is_none_is_refused(env: RoundEnv, action: Any, why: str) -> None:
    with pytest.raises(EdgeflError, match=f"the action (is|has|sets) .*{why}.*: pass"):
        env.step(action)
    assert env._run is not None
    assert env._run.waiting is not None


@pytest.mark.parametrize("action", [2 * ALL, ALL.astype(int), ALL.astype(bool), ALL.tolist(), 1e308 * ALL])
def test_numbers_outside_are_cut(env: RoundEnv, action: Any) -> None:
    assert env._run is not None
    assert env._run.waiting is not None
    assert list(env.decision(env._run.waiting, action, env._run.most).ids) == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", ["x", -1, 1.5, [1]])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    with refused_at("", "seed"):
        RoundEnv(SMALL).reset(seed=seed)


WRONG_SETTINGS: list[dict[str, Any]] = [
    *({"accuracy": float("nan")}, {"joules": float("inf")}, {"seconds": "x"}),
    *({"controls": None}, {"controls": ["who"]}, {"controls": ("who", "who")}),
]


@pytest.mark.parametrize("how", WRONG_SETTINGS)
def test_a_setting_that_is_none_is_refused(how: dict[str, Any]) -> None:
    with refused_at("", next(iter(how))):
        RoundEnv(SMALL, **how)


def pickled(env: RoundEnv) -> RoundEnv:
    return pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_has_a_run_of_its_own(again: Callable[[RoundEnv], RoundEnv]) -> None:
    """A copy has its own run; an environment whose run has begun cannot be copied, as that run is in a thread."""
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
    """After a failed run, another step or close must not wait for the run's thread, which has ended."""
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
