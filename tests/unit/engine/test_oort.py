"""Compare Oort over 30 rounds with an independent implementation of the authors' formulas."""

import math
from typing import Any, ClassVar

import numpy as np
import pytest

from edgefl.engine.selectors.oort import Oort
from edgefl.testing.decider_contract import candidates_of

DEVICES, ROUNDS, NUMBER = 40, 30, 10


class Arms:
    """The scores of devices as the authors' getTopK computes them before it draws devices."""

    def __init__(self, oort: Oort) -> None:
        self.oort, self.arms, self.round = oort, dict[int, dict[str, float]](), 0
        self.least = oort.exploration_min
        self.explore, self.threshold, self.history = oort.exploration, oort.pace, list[float]()

    def ask(self, exploited: list[int], arrived: set[int]) -> tuple[dict[int, float], int]:
        """Return the scores of all devices, and how many known devices to exploit."""
        self.round += 1
        mine = [self.arms[one]["reward"] for one in exploited if one in arrived]
        self.history.append(sum(mine) / (1e-4 + len(mine)))
        step = self.oort.pacer_step
        if self.round >= 2 * step and self.round % step == 0:
            last, now = sum(self.history[-2 * step : -step]), sum(self.history[-step:])
            if abs(now - last) <= last * 0.1:
                self.threshold = min(100.0, self.threshold + self.oort.pacer_delta)
            elif abs(now - last) >= last * 5:
                self.threshold = max(self.oort.pacer_delta, self.threshold - self.oort.pacer_delta)
        durations = sorted(arm["duration"] for arm in self.arms.values())
        prefer = durations[min(int(len(durations) * self.threshold / 100.0), len(durations) - 1)]
        prefer = prefer if self.threshold < 100 else math.inf
        rewards = sorted(arm["reward"] for arm in self.arms.values() if arm["reward"] > 0)
        clip = rewards[min(int(len(rewards) * self.oort.clip), len(rewards) - 1)]
        least = rewards[0] * 0.999
        span = max(rewards[-1] - least, 1e-4)
        scores = {}
        for id_, arm in self.arms.items():
            score = arm["reward"]
            if arm["count"]:
                bonus = math.sqrt(0.1 * math.log(self.round) / arm["stamp"])
                score = (min(arm["reward"], clip) - least) / span + bonus
            if arm["duration"] > prefer:
                score *= (prefer / max(1e-4, arm["duration"])) ** self.oort.penalty
            scores[id_] = score
        self.explore = max(self.explore * self.oort.exploration_decay, self.least)
        known = sum(arm["count"] > 0 for arm in self.arms.values())
        many = min(int(NUMBER * (1.0 - self.explore)), known)
        if known == len(self.arms):  # no device is left to explore
            self.explore = self.least = 0.0
        return scores, many


class Told(np.random.Generator):
    """A random generator that records the arguments of each choice."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self.asked: list[tuple[np.ndarray, int, np.ndarray]] = []

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None, **_: Any) -> Any:
        self.asked.append((np.asarray(a), size, np.asarray(p)))
        return super().choice(a, size, replace, p)


class Hasty(Oort):
    """Oort with a pacer that may adapt after five rounds, so that a short test sees a change."""

    pacer_step: ClassVar[int] = 5


@pytest.mark.parametrize("lost", [0.0, 0.3], ids=["all arrive", "some are lost"])
def test_oort_draws_by_the_authors_formulas(lost: float) -> None:
    """A device with a lost update has the round's mean utility; its part was cut off, but its duration stays."""
    oort = Hasty(count=NUMBER)
    rng, arms, memory = np.random.default_rng(3), Arms(oort), {}
    speed, samples = rng.uniform(1.0, 20.0, DEVICES), rng.integers(10, 300, DEVICES).astype(float)
    for id_ in range(DEVICES):
        arms.arms[id_] = {"reward": samples[id_], "duration": speed[id_], "count": 0, "stamp": 0}
    loss, last = np.full(DEVICES, np.nan), np.full(DEVICES, np.nan)
    completed, exploited, arrived, paces = np.zeros(DEVICES), list[int](), set[int](), set[float]()
    taken, took = np.zeros(DEVICES), speed.copy()
    for turn in range(ROUNDS):
        scores, many = arms.ask(exploited, arrived)
        paces.add(arms.threshold)
        told = candidates_of(
            rng,
            list(range(DEVICES)),
            turn,
            samples=samples,
            loss=loss,
            duration_s=np.where(np.isnan(last), np.nan, took),
            taken=taken,
            age=np.where(np.isnan(last), np.inf, turn - last),
            completed=completed,
            down_s=speed,
            compute_s=np.zeros(DEVICES),
            up_s=np.zeros(DEVICES),
        )
        draws = Told(turn)
        decision = oort.decide(told, NUMBER, draws, memory)
        memory, asked = decision.memory, list(draws.asked)
        assert memory["pace"] == arms.threshold
        known = [id_ for id_, arm in arms.arms.items() if arm["count"]]
        for among, number, shares in asked:
            exploits = bool(arms.arms[int(among[0])]["count"])
            ranked = sorted(
                (id_ for id_ in scores if (id_ in known) == exploits), key=lambda id_: -scores[id_]
            )
            if exploits:
                assert number == many
                least = scores[ranked[min(many, len(ranked) - 1)]] * oort.cut_off
                ranked = [id_ for id_ in ranked if scores[id_] >= least]
            else:
                ranked = ranked[: int(oort.window * number)]
            assert sorted(among.tolist()) == sorted(ranked)
            weights = np.array([scores[id_] for id_ in among.tolist()])
            assert shares == pytest.approx(weights / weights.sum(), rel=1e-9)
        assert len(decision.ids) == NUMBER
        exploited = memory["exploited"]
        arrived = {id_ for id_ in decision.ids if rng.random() >= lost}
        for id_ in sorted(arrived):
            loss[id_] = rng.uniform(0.9, 1.1) * 0.99**turn
            arms.arms[id_]["reward"] = samples[id_] * loss[id_]
        mean = sum(arms.arms[id_]["reward"] for id_ in arrived) / max(1, len(arrived))
        for id_ in decision.ids:
            last[id_], arm = turn, arms.arms[id_]
            arm |= {"count": arm["count"] + 1, "stamp": turn + 1}
            took[id_] = speed[id_] if id_ in arrived else 0.5
            if id_ not in arrived:
                arm["reward"] = mean
            taken[id_] += 1
            completed[id_] += id_ in arrived
    assert len(paces) > 1  # the pacer has changed the pace
