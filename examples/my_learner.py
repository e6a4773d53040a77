"""Train without PyTorch: ridge regression in NumPy. Run it with `python my_learner.py`."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

import edgefl
from edgefl.contract import BEGIN, Evaluation, LocalRound, Now, Opening, SessionStart, StageFacts
from edgefl.learners.own import Assignment


class Ridge:
    """Devices measure y = x w + noise and send statistics of their samples; the server adds them and solves for w."""

    flops_per_sample, payload_bits = 2.0 * 8 * 8, 64 * 8  # FLOPs of X^T X; bits of w, which is sent down
    facts = StageFacts("train", rounds=None, opening=Opening())  # the learner is also its only stage

    def __init__(self, told: Assignment) -> None:
        self.told, self.session_number = told, 0
        self.w = told.streams("truth").normal(size=8)
        self.gram, self.moment = np.eye(8), np.zeros(8)

    def session(self, start: SessionStart) -> Iterator["Ridge"]:
        self.session_number = start.number
        yield self

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        self.sums = {id_: self.measured(id_, round_) for id_ in ids}
        many, up_bits = len(ids), 64 * (8 * 8 + 8)
        return LocalRound(tuple(ids), (1,) * many, (16,) * many, (64 * 8,) * many, (up_bits,) * many)

    def aggregate(self, ids: Sequence[int]) -> None:
        for id_ in ids:  # only devices whose updates arrived
            self.gram, self.moment = self.gram + self.sums[id_][0], self.moment + self.sums[id_][1]

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation:
        error = np.linalg.solve(self.gram, self.moment) - self.w
        return Evaluation(
            accuracy=None, loss=float(error @ error), scalars={"largest_error": abs(error).max()}
        )

    def measured(self, device: int, round_: int) -> tuple[np.ndarray, np.ndarray]:
        rng = self.told.streams("measured", device, self.session_number, round_)
        x = rng.normal(size=(16, 8))
        return x.T @ x, x.T @ (x @ self.w + rng.normal(size=16))

    # with these, an unfinished run can be resumed: edgefl.resume(path, learner=Ridge)
    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        return {"gram": self.gram, "moment": self.moment}, {"session": self.session_number}

    def restore(self, arrays: Mapping[str, np.ndarray], facts: Mapping[str, int]) -> None:
        self.gram, self.moment, self.session_number = arrays["gram"], arrays["moment"], facts["session"]

    def stages(self) -> Iterator["Ridge"]:
        yield self


if __name__ == "__main__":
    print(edgefl.simulate(edgefl.load_scenario("my_learner.yaml"), learner=Ridge))
