"""A learner without training, which exercises only the radio and the processors."""

from collections.abc import Iterator, Sequence

from edgefl.contract import BEGIN, Evaluation, Expected, LocalRound, Now, Opening, SessionStart, StageFacts
from edgefl.errors import EdgeflError


class Untrained:
    """A learner with fixed payload and FLOPs, for studies of radio and energy alone."""

    def __init__(self, *, payload_bits: int, flops_per_sample: float, steps: int, batch: int) -> None:
        self.payload_bits = payload_bits
        self.flops_per_sample = flops_per_sample
        self._steps = steps
        self._samples = steps * batch

    def session(self, start: SessionStart) -> Iterator["Untrained"]:
        """Yield the only stage of a session, the learner itself."""
        if start.reports or start.norms:
            raise EdgeflError("a workload has no loss and no update: use learning instead", ("workload",))
        yield self

    @property
    def facts(self) -> StageFacts:
        return StageFacts("train", rounds=None, opening=Opening())

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        many = len(ids)
        bits = (self.payload_bits,) * many
        return LocalRound(tuple(ids), (self._steps,) * many, (self._samples,) * many, bits, bits)

    def expected(self, ids: Sequence[int]) -> Expected:
        many = len(ids)
        samples, bits = (self._samples,) * many, (self.payload_bits,) * many
        return Expected(tuple(ids), samples, samples, bits, bits)

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        pass

    def submit(self) -> int:
        return 1

    def adopt(self, cells: Sequence[int], aggregated: bool) -> None:
        pass

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        return None
