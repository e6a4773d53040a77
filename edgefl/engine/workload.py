"""A learner that trains nothing: the radio and the processors work, no tensor exists."""

from collections.abc import Mapping, Sequence

from edgefl.contract import Evaluation, Opening, Phase, Start
from edgefl.errors import EdgeflError


class Workload:
    """Fixed payload and FLOPs, for studies of radio and energy alone."""

    def __init__(self, *, payload_bits: int, flops_per_sample: float, steps: int, batch: int) -> None:
        self.payload_bits = payload_bits
        self.flops_per_sample = flops_per_sample
        self.batch = batch
        self.version = 0
        self._steps = steps

    def open_session(self, session: int, ids: Sequence[int], longest: int) -> Opening:
        return Opening("train")

    def begin_training(self) -> Start:
        return Start()

    def local_update(self, ids: Sequence[int], phase: Phase, round_: int) -> Mapping[int, int]:
        return dict.fromkeys(ids, self._steps)

    def reported_loss(self, ids: Sequence[int]) -> float:
        raise EdgeflError("an adaptive session needs learning: a workload has no loss", ("sessions",))

    def aggregate(self, ids: Sequence[int]) -> None:
        self.version += 1

    def evaluate(self) -> Evaluation | None:
        return None

    def close_session(self) -> None:
        pass
