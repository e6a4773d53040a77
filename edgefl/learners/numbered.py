"""Translate the run's device ids to a federation's own device numbers 0 to n-1."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from edgefl.contract import (
    BEGIN,
    AccountingStage,
    Evaluation,
    Expected,
    ForetellingStage,
    LocalRound,
    Now,
    SessionStart,
    Stage,
    StageFacts,
    WeighingStage,
)
from edgefl.learning.data.device_data import DeviceData

if TYPE_CHECKING:
    from edgefl.learning.federation.learner import TorchLearner


class NumberedLearner:
    """A learner that takes and returns device ids, wrapped around a learner that uses a federation's numbers.

    Args:
        ids: ids of the federation's devices, ascending; the first device has number 0, see `scenario.members`.
    """

    def __init__(self, learner: "TorchLearner", ids: np.ndarray) -> None:
        self._learner = learner
        self._numbers = _Numbers(ids)
        self.flops_per_sample, self.payload_bits = learner.flops_per_sample, learner.payload_bits
        self.sees_time, self.parameters = learner.sees_time, learner.parameters

    @property
    def device_data(self) -> DeviceData:
        """The training samples of each device, by the device's number in the federation."""
        return self._learner.device_data

    @property
    def doubts(self) -> tuple[str, ...]:
        """Notes on the model that the user should read before the run begins."""
        return self._learner.doubts

    def session(self, start: SessionStart) -> Iterator[Stage]:
        """Yield the stages of a session."""
        for stage in self._learner.session(start.numbered(self._numbers.ids)):
            yield _NumberedStage(stage, self._numbers)

    def stages(self) -> Iterator[Stage]:
        """Yield the stages of the open session, from the current one on."""
        for stage in self._learner.stages():
            yield _NumberedStage(stage, self._numbers)


class _NumberedStage:
    """A stage that takes and returns device ids, wrapped around a stage that uses a federation's numbers."""

    def __init__(self, stage: Stage, numbers: "_Numbers") -> None:
        self._stage, self._numbers = stage, numbers

    @property
    def facts(self) -> StageFacts:
        return self._stage.facts

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        local = self._stage.train(self._numbers.of(ids), round_, now)
        return replace(
            local,
            ids=self._numbers.ids_of(local.ids),
            not_finite=self._numbers.ids_of(local.not_finite),
        )

    def expected(self, ids: Sequence[int]) -> Expected:
        told = cast(ForetellingStage, self._stage).expected(self._numbers.of(ids))
        return replace(told, ids=self._numbers.ids_of(told.ids))

    def uploaded(self, ids: Sequence[int]) -> Mapping[str, tuple[float, ...]]:
        return cast(AccountingStage, self._stage).uploaded(self._numbers.of(ids))

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        cast(WeighingStage, self._stage).aggregate(self._numbers.of(ids), weights)

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        evaluation = self._stage.evaluate(self._numbers.of(present))
        if evaluation is None or evaluation.devices is None:
            return evaluation
        scores = evaluation.devices
        return replace(evaluation, devices=replace(scores, ids=self._numbers.ids_of(scores.ids)))


class _Numbers:
    """The two-way map between the ids of a federation's devices and their numbers 0 to n-1."""

    def __init__(self, ids: np.ndarray) -> None:
        self.ids: list[int] = ids.tolist()
        self._of = {id_: number for number, id_ in enumerate(self.ids)}

    def of(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return the federation's numbers of the devices with the given ids."""
        return tuple(self._of[id_] for id_ in ids)

    def ids_of(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the ids in the run of the devices with the given numbers."""
        return tuple(self.ids[number] for number in numbers)
