"""Control a run's rounds through Gymnasium, with a random policy and a greedy one that minimises expected seconds.

    python examples/controller.py

It needs the extra `gym`. A learning scheduler makes the same two calls, reset() and step().
"""

from collections.abc import Callable

import numpy as np

from edgefl.run.gym import FEATURES, RoundEnv

SCENARIO = {
    "name": "controlled",
    "devices": {
        "count": 10,
        "classes": {"phone": {"share": 0.5}, "sensor": {"clock_hz": 0.1e9, "flops_per_cycle": 1}},
    },
    "radio": {"bandwidth_hz": 5e6},
    "sessions": {"name": "schedule", "count": 1, "rounds": 10},
    "learning": {"dataset": "digits", "model": "logistic", "partition": "iid", "local": {"lr": 0.05}},
}
Policy = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def at_random(seen: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Let each device take part with probability one half."""
    return rng.random((len(seen), 1))


def greedy(seen: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Choose the half of the devices with the shorter expected rounds."""
    seconds = seen[:, [FEATURES.index(name) for name in ("down_s", "compute_s", "up_s")]].sum(axis=1)
    here = seen[:, FEATURES.index("present")] > 0
    return np.where(here & (seconds <= np.median(seconds[here])), 1.0, 0.0)[:, None]


def episode(policy: Policy, seed: int = 1) -> tuple[float, float, float]:
    """Return the accuracy, seconds and joules of a whole run."""
    env, rng = RoundEnv(SCENARIO, controls=("who",)), np.random.default_rng(seed)
    seen, info = env.reset(seed=seed)
    totals, over = np.zeros(2), False
    while not over:
        seen, _, over, _, info = env.step(policy(seen, rng))
        totals += [info[name] for name in ("seconds", "joules")]
    seconds, joules = totals.tolist()
    return info["accuracy"], seconds, joules


if __name__ == "__main__":
    for policy in (at_random, greedy):
        accuracy, seconds, joules = episode(policy)
        print(f"{policy.__name__}: {accuracy:.1%} after {seconds:.2f} s and {joules:.2f} J")
