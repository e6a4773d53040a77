"""Check whether your own learner fulfils its contract; errors say what to change."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from edgefl.config.own_code import name_of
from edgefl.contract import Evaluation, LocalRound, Now, SessionStart, Stage
from edgefl.engine.settings import WorkloadSettings
from edgefl.errors import EdgeflError
from edgefl.learners.own import Assignment, Maker, OutsideLearner
from edgefl.rng import Streams
from edgefl.testing.conformance import ContractError, must

DEVICES, ENDLESS_ROUNDS = 6, 3
# devices present in each of two sessions; and for each round, the participants, and the devices whose update arrives
SESSIONS = ((0, 1, 2, 3), (2, 3, 4))
ROUNDS: tuple[tuple[Sequence[int], Sequence[int]], ...] = (((0, 1, 2), (0, 2)), ((1, 3), ()), ((4,), (4,)))
Answers = list[tuple[str, Any]]


def assignment(sessions: int | None = 2) -> Assignment:
    """Return the arguments of an external learner in a small world, with six devices around one base station."""
    turns = np.linspace(0.0, 2 * np.pi, DEVICES, endpoint=False)
    return Assignment(
        cell=0,
        devices=range(DEVICES),
        streams=Streams(7).below("outside learner"),
        homes_m=100.0 * np.stack([np.cos(turns), np.sin(turns)], axis=1),
        sites_m=np.zeros((1, 2)),
        populations=(range(DEVICES),),
        sessions=sessions,
        workload=WorkloadSettings(payload_bits=1000, flops_per_sample=1.0e3),
    )


def check_learner(make: Maker) -> None:
    """Test your own learner: run two sessions of a small world twice, then resume an interrupted run.

    Args:
        make: function that returns a learner for an `Assignment`, as for `edgefl.simulate`.

    Raises:
        ContractError: the learner breaks a rule; the error names the rule, and what to change.
    """
    name = name_of(make)

    def made() -> OutsideLearner:
        return OutsideLearner(make(assignment()), name, 0)

    try:
        first, again = list(_played(made())), list(_played(made(), asks_twice=True))
        _check_alike(name, first, again)
        _check_columns(name, first)
        if made().resumable:
            _check_goes_on(name, made(), made())
    except EdgeflError as error:
        raise ContractError(str(error)) from error


def _played(learner: OutsideLearner, *, asks_twice: bool = False) -> Iterator[tuple[str, Any]]:
    """Run the sessions of the small world with a learner; yield each call and the learner's answer."""
    for number, there in enumerate(SESSIONS, 1):
        for stage in learner.session(SessionStart(number, there, ENDLESS_ROUNDS)):
            yield f"session {number}: facts", stage.facts
            rounds = stage.facts.rounds or ENDLESS_ROUNDS
            for round_ in range(1, rounds + 1):
                yield from _round(stage, number, round_, asks_twice)


def _round(stage: Stage, number: int, round_: int, asks_twice: bool) -> Iterator[tuple[str, Any]]:
    taking_part, arrived = ROUNDS[(round_ - 1) % len(ROUNDS)]
    where = f"session {number}, {stage.facts.phase} round {round_}"
    yield f"{where}: train", stage.train(taking_part, round_, Now(10.0 * number + round_, None))
    if arrived:
        stage.aggregate(arrived)
    if stage.facts.evaluates:
        tested = stage.evaluate(SESSIONS[number - 1])
        if asks_twice:
            tested = stage.evaluate(SESSIONS[number - 1])
        yield f"{where}: evaluate", tested


def _check_alike(name: str, first: Answers, again: Answers) -> None:
    must(len(first) == len(again), f"{name}: a second learner has a different number of stages")
    for (question, answer), (_, other) in zip(first, again, strict=True):
        must(
            answer == other,
            f"{name}: {question}: the first learner returns {answer}, but a second learner returns {other}: draw from"
            " Assignment.streams, keep no state in the class, and change nothing in evaluate()",
        )


def _check_columns(name: str, answers: Answers) -> None:
    for kind in (LocalRound, Evaluation):
        names = [(question, [*one.scalars]) for question, one in answers if isinstance(one, kind)]
        for question, given in names:
            must(
                given == names[0][1],
                f"{name}: {question}: scalars are {given}, but were {names[0][1]} in the first round: "
                "return the same columns in all rounds, with None for no value",
            )


def _check_goes_on(name: str, whole: OutsideLearner, left: OutsideLearner) -> None:
    """Check that a learner restored after the last session's first aggregation answers like the original."""
    number, round_ = 2, 1
    sessions = _training_stages(whole)
    stage = next(sessions)
    for earlier in range(1, ENDLESS_ROUNDS + 1):
        list(_round(stage, 1, earlier, False))
    stages = next(sessions)
    list(_round(stages, number, round_, False))
    tensors, facts = whole.present_state()
    left.restore({key: tensor.clone() for key, tensor in tensors.items()}, facts)
    here = next(left.stages(), None)
    must(
        here is not None,
        f"{name}: stages() of a restored learner yields no stage: yield the open stage of the saved session",
    )
    assert here is not None
    must(
        here.facts.phase == stages.facts.phase,
        f"{name}: stages() of a restored learner begins with {here.facts.phase}, but the saved learner was in"
        f" {stages.facts.phase}",
    )
    for later in range(round_ + 1, ENDLESS_ROUNDS + 1):
        on, restored = (list(_round(stage, number, later, False)) for stage in (stages, here))
        for (question, answer), (_, other) in zip(on, restored, strict=True):
            must(
                answer == other,
                f"{name}: {question}: after restore() it returns {other}, but without restore() {answer}: put"
                " everything that training changes into state()",
            )


def _training_stages(learner: OutsideLearner) -> Iterator[Stage]:
    """Run each session up to the stage that the session policy ends; yield that stage."""
    for number, there in enumerate(SESSIONS, 1):
        for stage in learner.session(SessionStart(number, there, ENDLESS_ROUNDS)):
            if stage.facts.rounds is None:
                yield stage
                continue
            for round_ in range(1, stage.facts.rounds + 1):
                list(_round(stage, number, round_, False))
