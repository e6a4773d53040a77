"""Check the answers of an external learner; errors name the place in the run and the remedy."""

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from edgefl.contract import (
    AGGREGATION,
    BEGIN,
    REPORTED_LOSS,
    REPORTED_NORM,
    TRAINING,
    UPLOAD,
    Evaluation,
    Expected,
    LocalRound,
    Now,
    SessionStart,
    Stage,
    StageFacts,
    WeighingStage,
)
from edgefl.errors import EdgeflError, quoted
from edgefl.run_directory.questions import Place

WORK = ("iterations", "samples", "down_bits", "up_bits")
VERBS = ("facts", "train", "aggregate", "evaluate")


@dataclass(frozen=True)
class Where:
    """The learner that is being checked, and the place in the run, for error messages."""

    name: str
    place: Place

    def at(self, **further: Any) -> "Where":
        """Return a copy of this place with further details, such as the session's number."""
        return replace(self, place=replace(self.place, **further))

    def wrong(self, what: str) -> EdgeflError:
        """Return an error that names this place and describes the fault in the learner's answer."""
        return EdgeflError(f"{self}: {what}")

    def __str__(self) -> str:
        return f"learner {self.name} of {self.place}"


class CheckedStage:
    """A stage of an external learner, with checked answers.

    Args:
        keep: called before each call that may be interrupted, so that the learner's state can be kept.
        drop: called once an aggregation has replaced this state.
    """

    def __init__(
        self,
        stage: Any,
        start: SessionStart,
        where: Where,
        keep: Callable[[], None] = lambda: None,
        drop: Callable[[], None] = lambda: None,
    ) -> None:
        missing = [name for name in VERBS if not hasattr(stage, name)]
        if missing:
            raise where.wrong(
                f"yielded {type(stage).__name__}, which has no {' and no '.join(missing)}; a stage has"
                f" {', '.join(VERBS)} (edgefl.contract.Stage)"
            )
        self._stage: Stage = stage
        self._start, self._keep, self._drop = start, keep, drop
        self.facts: StageFacts = _facts(stage.facts, where)
        self._where = where.at(phase=self.facts.phase)

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        self._where = self._where.at(round=round_)
        self._keep()
        local = _local_round(self._stage.train(tuple(ids), round_, now), tuple(ids), self._where)
        if self._start.reports and self.facts.evaluates and REPORTED_LOSS not in local.scalars:
            raise self._where.wrong(
                "the scenario's session policy uses the devices' losses: put the losses of the received model "
                f"into LocalRound.scalars[{REPORTED_LOSS!r}]"
            )
        if self._start.norms and self.facts.evaluates and REPORTED_NORM not in local.scalars:
            raise self._where.wrong(
                "the scenario's selector needs the norms of updates: put them into "
                f"LocalRound.scalars[{REPORTED_NORM!r}]"
            )
        return local

    def expected(self, ids: Sequence[int]) -> Expected:
        expected = getattr(self._stage, "expected", None)
        if expected is None:
            raise self._where.wrong(
                "the scenario's selector needs a prediction of what devices would do in a round: give the stage a "
                "method expected(ids) (edgefl.contract.ForetellingStage), or choose another selector"
            )
        told = expected(tuple(ids))
        if not isinstance(told, Expected) or tuple(told.ids) != tuple(ids):
            raise self._where.wrong(
                f"expected() returned {quoted(told)}; return an edgefl.contract.Expected for the given ids"
            )
        for name in ("held", "samples", "down_bits", "up_bits"):
            _as_many(self._where, name, getattr(told, name), ids)
        return told

    def uploaded(self, ids: Sequence[int]) -> Mapping[str, tuple[float, ...]]:
        uploaded = getattr(self._stage, "uploaded", None)
        if uploaded is None:
            raise self._where.wrong(
                f"a column of train() is known only after {UPLOAD!r}: give the stage a method uploaded(ids), which "
                "fills the column (edgefl.contract.AccountingStage)"
            )
        columns = {}
        for name, values in uploaded(tuple(ids)).items():
            _as_many(self._where, f"uploaded()[{name!r}]", values, ids)
            columns[name] = tuple(checked_number(self._where, name, value) for value in values)
        return columns

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        if weights is None:
            self._stage.aggregate(tuple(ids))
        elif len(inspect.signature(self._stage.aggregate).parameters) < 2:
            raise self._where.wrong(
                "aggregate(ids) takes no weights of updates, but rounds.server: {unbiased: true} sets them: "
                "leave unbiased out, or write aggregate(ids, weights) (edgefl.contract.WeighingStage)"
            )
        else:
            cast(WeighingStage, self._stage).aggregate(tuple(ids), tuple(weights))
        self._drop()

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        self._keep()
        evaluation = self._stage.evaluate(tuple(present))
        if evaluation is None:
            return None
        if not isinstance(evaluation, Evaluation):
            raise self._where.wrong(
                f"evaluate() returned {type(evaluation).__name__}; return an"
                " edgefl.contract.Evaluation, or None if nothing is tested"
            )
        accuracy = _scalar(self._where, "accuracy", evaluation.accuracy)
        if accuracy is not None and not 0 <= accuracy <= 1:
            raise self._where.wrong(f"evaluate() returned accuracy {accuracy:g}; it must be from 0 to 1")
        scalars = {name: _scalar(self._where, name, value) for name, value in evaluation.scalars.items()}
        return Evaluation(accuracy, _scalar(self._where, "loss", evaluation.loss), scalars)


def checked_number(where: Where, name: str, value: Any, *, whole: bool = False, least: float = 0) -> Any:
    """Return a learner's number as a Python int or float, or raise if it is not finite or below `least`."""
    number = _plain(value)
    fits = isinstance(number, int) if whole else isinstance(number, int | float) and math.isfinite(number)
    if not fits or isinstance(number, bool) or number < least:
        raise where.wrong(
            f"{name} is {quoted(value)}; it must be {'an integer' if whole else 'a number'} of at least {least}"
        )
    return number if whole else float(number)


def facts_of(where: Where, facts: Any) -> dict[str, Any]:
    """Return a copy of the facts of a learner's state, or raise if JSON cannot restore them.

    Raises:
        EdgeflError: JSON does not restore the facts unchanged.
    """
    try:
        copy = json.loads(json.dumps(facts))
    except (TypeError, ValueError):
        copy = None
    if not (isinstance(copy, dict) and copy == facts):
        raise where.wrong(
            "state() returned facts that JSON cannot restore: use string keys, numbers, strings and lists, and "
            "arrays for the rest"
        )
    return copy


def _facts(facts: Any, where: Where) -> StageFacts:
    if not isinstance(facts, StageFacts):
        raise where.wrong(f"a stage's facts are {type(facts).__name__}; return edgefl.contract.StageFacts")
    if not isinstance(facts.phase, str) or not facts.phase.isidentifier():
        raise where.wrong(f"phase is {quoted(facts.phase)}; it must be a Python identifier, such as train")
    if facts.rounds is not None:
        checked_number(where, f"rounds of {facts.phase}", facts.rounds, whole=True, least=1)
    if not 0 < facts.share <= 1:
        raise where.wrong(f"share of devices in {facts.phase} is {facts.share}; it must be in (0, 1]")
    return facts


def _local_round(local: Any, ids: tuple[int, ...], where: Where) -> LocalRound:
    if not isinstance(local, LocalRound):
        raise where.wrong(f"train() returned {type(local).__name__}; return an edgefl.contract.LocalRound")
    given = tuple(_plain(id_) for id_ in local.ids)
    if given != ids:
        raise where.wrong(
            f"train() was called for devices {quoted(ids)} and returned work for {quoted(given)}: return the "
            "ids as given, and the devices' work in this order"
        )
    work = {}
    for name in WORK:
        values = getattr(local, name)
        _as_many(where, name, values, ids)
        work[name] = tuple(
            checked_number(where, f"{name} of device {id_}", value, whole=True)
            for id_, value in zip(ids, values, strict=True)
        )
    scalars = {}
    for name, values in local.scalars.items():
        _as_many(where, f"scalars[{name!r}]", values, ids)
        scalars[name] = tuple(_scalar(where, name, value) for value in values)
    for name, what in local.after.items():
        if name not in scalars or what not in (TRAINING, AGGREGATION, UPLOAD):
            raise where.wrong(
                f"after[{name!r}] is {quoted(what)}: the key must be one of the scalars, and the value"
                f" {TRAINING!r}, {AGGREGATION!r} or {UPLOAD!r}"
            )
    for name, samples in local.averaged.items():
        for column in (name, samples):
            if column not in scalars:
                raise where.wrong(f"averaged[{name!r}] is {quoted(samples)}: key and value must name scalars")
    not_finite = tuple(_plain(id_) for id_ in local.not_finite)
    if not set(not_finite) <= set(ids):
        raise where.wrong(
            f"not_finite is {quoted(not_finite)}; it must contain only devices of this call, {quoted(ids)}"
        )
    return LocalRound(
        ids,
        **work,
        scalars=scalars,
        after=dict(local.after),
        averaged=dict(local.averaged),
        not_finite=not_finite,
    )


def _as_many(where: Where, name: str, values: Any, ids: Sequence[int]) -> None:
    if not hasattr(values, "__len__") or isinstance(values, Mapping) or len(values) != len(ids):
        given = f"{len(values)} values" if hasattr(values, "__len__") else quoted(values)
        raise where.wrong(f"{name} has {given} for {len(ids)} devices: return one value per device")


def _scalar(where: Where, name: str, value: Any) -> float | None:
    if value is None:
        return None
    number = _plain(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise where.wrong(f"{name} is {quoted(value)}; it must be a number, or None for no value")
    if not math.isfinite(number):
        raise where.wrong(
            f"{name} is {number}, which is not finite: use smaller steps, or return None for no value"
        )
    return float(number)


def _plain(value: Any) -> Any:
    """Convert NumPy's and PyTorch's scalars to Python's numbers."""
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value
