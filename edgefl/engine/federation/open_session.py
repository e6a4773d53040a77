"""State of the session under way in a cell."""

import math
from collections import Counter
from dataclasses import dataclass, field

from edgefl.contract import VALIDATION_SCORE, Evaluation


@dataclass
class OpenSession:
    """The session under way in a cell.

    number: number of the session, from 1. until_s: time from which no round of training begins. members: devices
    present at the session's start. rounds, dispatches: counts so far, by phase. sampled: phase without evaluation ->
    devices sampled for that phase. unchanged: number of rounds that left the global model unchanged. losses: mean
    reported loss of each round of the global model, if the policy needs it. validated: scores on the validation
    samples. scores: score of each test, on the validation samples if there are any, otherwise on the test samples.
    """

    number: int
    start_s: float
    reason: str
    members: list[int]
    until_s: float = math.inf
    rounds: Counter[str] = field(default_factory=Counter)
    dispatches: Counter[str] = field(default_factory=Counter)
    sampled: dict[str, list[int]] = field(default_factory=dict)
    unchanged: int = 0
    losses: list[float] = field(default_factory=list)
    validated: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def tested(self, evaluation: Evaluation | None) -> None:
        """Record a test of the global model."""
        if evaluation is None:
            return
        validated = evaluation.scalars.get(VALIDATION_SCORE)
        if validated is not None:
            self.validated.append(validated)
        score = evaluation.accuracy if VALIDATION_SCORE not in evaluation.scalars else validated
        if score is not None:
            self.scores.append(score)


@dataclass
class Counts:
    """Numbers of global-model rounds begun and of models made, over all sessions of a server."""

    turn: int = 0
    version: int = 0
