"""Express a learner's calls as questions (names and arguments), which can be recorded, compared and repeated."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from edgefl.contract import (
    BEGIN,
    Evaluation,
    Expected,
    Learner,
    LocalRound,
    Now,
    SessionStart,
    Stage,
    StageFacts,
)

# questions that do not change the learner
LOOKS = ("evaluate", "expected")
# questions after which the latest training is still to be aggregated
KEEPS_TRAINING = (*LOOKS, "uploaded")


@dataclass(frozen=True)
class Place:
    """The point in a run at which a question is asked; `cell` is a cell's number or the label of a cell's server."""

    cell: int | str
    session: int = 0
    phase: str = ""
    round: int = 0

    def __str__(self) -> str:
        session = f", session {self.session}" if self.session else ""
        return f"cell {self.cell}{session}" + (f", {self.phase} round {self.round}" if self.round else "")


class Resumable(Learner, Protocol):
    """A learner that can continue training where another learner of its kind stopped.

    sees_time: whether the learner's training depends on simulated time, as it does if data drift at given times.
    """

    sees_time: bool

    def stages(self) -> Iterator[Stage]:
        """Return the stages of the open session, from the current one on."""


@runtime_checkable
class Rewound(Protocol):
    """A learner of foreign code; its training and tests may change the state that a snapshot saves.

    recorded: number of this learner's recorded calls; after `restore`, the number that the restored state includes.
    """

    recorded: int


class Answering(ABC):
    """Base class of a server's learners; it turns every call into a question, which can be recorded.

    Args:
        cell: as in `Place`.

    Attributes:
        at: the point in the run at which a question is asked. facts: facts of the current stage.
    """

    def __init__(self, cell: int | str, flops_per_sample: float, payload_bits: int, sees_time: bool) -> None:
        self.flops_per_sample, self.payload_bits = flops_per_sample, payload_bits
        self.sees_time = sees_time
        self.at = Place(cell)
        self.facts: StageFacts | None = None

    @abstractmethod
    def answer(self, call: str, asked: Mapping[str, Any], now: Now = BEGIN) -> Any:
        """Return the learner's answer to a question.

        Args:
            call: the question: session, stage, train, expected, uploaded, aggregate, submit, adopt or evaluate.
            asked: everything else that the answer depends on.
            now: the current simulated time; omitted if training does not depend on it.
        """

    def session(self, start: SessionStart) -> Iterator[Stage]:
        """Yield the stages of a session."""
        self.at = Place(self.at.cell, start.number)
        return self._stages_from(self.answer("session", {"start": start}))

    def _stages_from(self, facts: StageFacts | None) -> Iterator[Stage]:
        while facts is not None:
            self.facts, self.at = facts, Place(self.at.cell, self.at.session, facts.phase)
            yield _AnsweredStage(self, facts)
            facts = self.answer("stage", {})


class _AnsweredStage:
    """The current stage of a learner, which forwards the stage's calls as questions."""

    def __init__(self, learner: Answering, facts: StageFacts) -> None:
        self.facts = facts
        self._learner = learner

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        learner = self._learner
        learner.at = replace(learner.at, round=round_)
        asked: dict[str, Any] = {"ids": ids, "round": round_}
        if now.progress is not None:
            asked["progress"] = now.progress
        if learner.sees_time:
            asked["time_s"] = now.time_s
        local: LocalRound = learner.answer("train", asked, now)
        return local

    def expected(self, ids: Sequence[int]) -> Expected:
        answered: Expected = self._learner.answer("expected", {"ids": ids})
        return answered

    def uploaded(self, ids: Sequence[int]) -> Mapping[str, tuple[float, ...]]:
        account: Mapping[str, tuple[float, ...]] = self._learner.answer("uploaded", {"ids": ids})
        return account

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        asked = {"ids": ids} if weights is None else {"ids": ids, "weights": weights}
        self._learner.answer("aggregate", asked)

    def submit(self) -> int:
        samples: int = self._learner.answer("submit", {})
        return samples

    def adopt(self, cells: Sequence[int], aggregated: bool) -> None:
        self._learner.answer("adopt", {"cells": cells, "aggregated": aggregated})

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        evaluation: Evaluation | None = self._learner.answer("evaluate", {"present": present})
        return evaluation


class Asked:
    """Pass recorded questions to a training learner, by name, possibly starting in the middle of a session."""

    def __init__(self, learner: Resumable) -> None:
        self._learner = learner
        self._stages: Iterator[Stage] = iter(())
        self._stage: Stage | None = None

    @property
    def is_open(self) -> bool:
        """Return whether a stage of the training learner has begun."""
        return self._stage is not None

    def present(self) -> Stage | None:
        """Return the current stage, or None if no session is open."""
        if self._stage is None:
            self._stages = iter(self._learner.stages())
            self._stage = next(self._stages, None)
        return self._stage

    def ask(self, call: str, asked: Mapping[str, Any], now: Now = BEGIN) -> Any:
        """Return the learner's answer to a question."""

        if call == "session":
            self._stages = iter(self._learner.session(asked["start"]))
            return self._open_next()
        stage = self.present()
        assert stage is not None
        if call == "stage":
            return self._open_next()
        if call == "train":
            return stage.train(asked["ids"], asked["round"], now)
        return getattr(stage, call)(**asked)

    def _open_next(self) -> StageFacts | None:
        self._stage = next(self._stages, None)
        return self._stage.facts if self._stage else None
