"""Yang, Liu, Quek and Poor, IEEE Trans. Commun. 68(1), 2020: python -m edgefl.examples.papers.yang_scheduling

The authors' file is github.com/owen94/ScheduleFedLearn: sites of a Poisson process, 100 users in each cell, a path
loss of d^4, Rayleigh fading drawn each round, one interferer in each other cell, no noise. Five users are scheduled
in a round: at random, in turn, or the users with the largest fading (which is proportional fairness if all mean rates
are equal). A user's update arrives if its SIR is above a threshold. Each of the 100 users holds 30 samples of MNIST:
batches of 10, rate 0.01, ten passes before each of 50 aggregations.

The engine's own threshold (`radio.link.uplink_threshold_db`) draws a fading at the upload's end that no scheduler
sees, so proportional fairness cannot win there. Here a selector draws the fading, and makes a user whose upload fails
so slow that it misses the deadline. The model is logistic regression instead of a network of 21,840 weights, and
users that are not scheduled do not continue training.
"""

import sys
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal

import numpy as np

import edgefl
from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory
from edgefl.learning.partitions import NO_INPUTS, PartitionInputs, Staying
from edgefl.rng import Streams

HERE = "edgefl.examples.papers.yang_scheduling"
USERS, SAMPLES, SCHEDULED, ROUNDS = 100, 30, 5, 50
SIDE, EXPONENT = 3.0, 4.0  # half the window in units of 1 / sqrt(density); path loss
SEEDS = (100, 200, 300, 400, 500)
THRESHOLDS_DB = (-10, 20)
POLICIES = ("random", "in turn", "fair")


def network(rng: np.random.Generator) -> np.ndarray:
    """Draw the mean power [sites, users] that the typical site receives from each cell's users; its cell is first."""
    sites = rng.uniform(-SIDE, SIDE, (max(2, rng.poisson(4 * SIDE**2)), 2))
    sites = sites[np.argsort(np.linalg.norm(sites, axis=1))]
    places = np.zeros((len(sites), USERS, 2))
    filled = np.zeros(len(sites), dtype=int)
    while filled.min() < USERS:
        drawn = rng.uniform(-SIDE, SIDE, (4096, 2))
        for cell, place in zip(((drawn[:, None] - sites) ** 2).sum(2).argmin(1), drawn, strict=True):
            if filled[cell] < USERS:
                places[cell, filled[cell]] = place
                filled[cell] += 1
    return np.asarray(np.linalg.norm(places - sites[0], axis=2) ** -EXPONENT)


class Scheduled(CountedDecider):
    """Schedule users by a policy; users with an SIR below the threshold miss the deadline."""

    sets: ClassVar[frozenset[str]] = frozenset({"clock"})
    policy: Literal["random", "in turn", "fair"] = "random"
    threshold_db: float = 0.0
    seed: int = 0

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        power = memory.get("power")
        power = network(np.random.default_rng(self.seed)) if power is None else power
        fading = np.random.default_rng([self.seed, candidates.turn]).exponential(size=power.shape)
        received = power * fading
        sir = received[0] / received[1:].sum(0)
        if self.policy == "random":
            users = rng.permutation(USERS)[:number]
        elif self.policy == "in turn":
            users = (candidates.turn * number + np.arange(number)) % USERS
        else:
            users = np.argsort(fading[0])[-number:]
        users = np.sort(users)
        arrives = sir[users] > 10 ** (self.threshold_db / 10)
        clock_hz = candidates.clock_hz[users] * np.where(arrives, 1.0, 1e-6)
        return Decision(candidates.ids_at(users), clock_hz=clock_hz, memory={"power": power})


class First(Staying):
    """Deal the first 3,000 samples, 30 to each user."""

    def assign(
        self,
        labels: np.ndarray,
        devices: int,
        session: int,
        streams: Streams,
        inputs: PartitionInputs = NO_INPUTS,
    ) -> list[np.ndarray]:
        return np.split(np.arange(devices * SAMPLES), devices)


def run(seed: int, policy: str, threshold_db: float) -> tuple[float, float]:
    """Return the mean accuracy of rounds 10, 20, ... in percent, and the mean number of updates per round."""
    selector = {
        "name": f"{HERE}:Scheduled",
        "count": SCHEDULED,
        "policy": policy,
        "threshold_db": threshold_db,
    }
    described = {
        "name": "yang_scheduling",
        "seed": seed,
        "devices": {"count": USERS},
        "radio": {"preset": "journal"},
        "rounds": {"deadline_s": 60, "selector": {**selector, "seed": seed}},
        "sessions": {"name": "schedule", "count": 1, "rounds": ROUNDS},
        "record": {"devices": "none"},
        "learning": {
            "dataset": {"name": "mnist", "scale": "unit"},
            "partition": {"name": f"{HERE}:First"},
            "model": "logistic",
            "local": {"epochs": 10, "batch": 10, "lr": 0.01, "momentum": 0, "lr_schedule": "constant"},
            "evaluation": {"every": 10},
        },
    }
    with TemporaryDirectory() as folder:
        rounds = edgefl.simulate(described, out=f"{folder}/run", progress=False, threads=1).rounds
    return 100 * float(rounds["accuracy"].mean()), float(rounds["completed"].mean())


def main() -> None:
    """Print the differences in accuracy about which the paper makes two statements, as comma-separated values."""
    print("setting,variant,ours,ours_std,seeds")
    for threshold_db in THRESHOLDS_DB:
        found = {policy: [run(seed, policy, threshold_db) for seed in SEEDS] for policy in POLICIES}
        for policy, values in found.items():
            told = ", ".join(f"{accuracy:.2f} %" for accuracy, _ in values)
            print(
                f"{threshold_db} dB, {policy}: {told}; {mean(n for _, n in values):.2f}",
                file=sys.stderr,
                flush=True,
            )
        best = "in turn" if threshold_db < 0 else "fair"
        for other in POLICIES:
            if other != best:
                points = [a[0] - b[0] for a, b in zip(found[best], found[other], strict=True)]
                print(
                    f"{threshold_db} dB,{best} above {other},{mean(points):.3f},{stdev(points):.3f},{len(SEEDS)}"
                )


if __name__ == "__main__":
    main()
