"""Choose participants by the expected energy of a round, and keep track of their turns."""

import numpy as np

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory


class Frugal(CountedDecider):
    """Choose the devices with the fewest joules per sample, in turns, so that all take part equally often."""

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        times: dict[int, int] = dict(memory.get("times", {}))
        joules = candidates.total_j / np.maximum(candidates.samples, 1.0)
        turns = np.array([times.get(id_, 0) for id_ in candidates.ids])
        ids = candidates.ids_at(np.lexsort((joules, turns))[:number])
        return Decision(ids, memory={"times": times | {id_: times.get(id_, 0) + 1 for id_ in ids}})
