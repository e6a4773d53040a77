"""Count and sum a run's rows as they are written; note absurdly long rounds, huge losses and NaN."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import median
from typing import Any

import numpy as np

from edgefl.channel.units import FloatArray
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.federation.observers import not_taken
from edgefl.engine.parts import Activity, Outcome
from edgefl.engine.records import OUT_OF_COVERAGE, DeviceRound, DeviceScore, Event, EventName, Round, Session
from edgefl.scenario.own_sections import OwnSections

# smaller shares of a cell's devices, or of all participations, do not change results noticeably
MATTERS = 0.1
HUGE_LOSS = 1e6  # far above an untrained model's loss: about ln C (cross-entropy) or 1 (squared error)
# a transfer is noted above LONG_S if it takes this many times the median, above HOPELESS_S already at fewer times
HOPELESS_S, LONG_S, TIMES_THE_MEDIAN, TIMES_IF_HOPELESS = 3600.0, 60.0, 100, 10
TRANSFERS = ("downlink", "uplink")
SCORES = ("accuracy", "loss", "accuracy_start", "loss_start", "accuracy_personal", "loss_personal")


@dataclass
class _Slowest:
    """The slowest transfer of a run, its device, and the median of the round's other transfers (NaN without one)."""

    took_s: float = 0.0
    others_s: float = math.nan
    device: int = 0
    direction: str = ""
    where: str = ""


@dataclass
class Extremes:
    """The extremes in a run's rows.

    latencies_s: the latency of each round. huge: place and value of the first loss above HUGE_LOSS. not_finite:
    column -> place of the first number that is not finite; rows_of: column -> how many numbers are not finite.
    unusable, unusable_j: how many updates were not finite, and the joules spent on them.
    """

    latencies_s: list[float] = field(default_factory=list)
    slowest: _Slowest = field(default_factory=_Slowest)
    huge: tuple[str, float] | None = None
    not_finite: dict[str, str] = field(default_factory=dict)
    rows_of: Counter[str] = field(default_factory=Counter)
    unusable: int = 0
    unusable_j: float = 0.0
    _long: bool = False  # whether the next rows of devices may contain a long transfer

    def see(self, row: Any, further: Mapping[str, Any] | None = None) -> None:
        """Update the extremes with a row as it is written; `further` holds values of extra columns."""
        if isinstance(row, Session):
            start = {"accuracy_start": row.accuracy_start, "loss_start": row.loss_start}
            self._scores(f"session {row.session}", start)
        if not isinstance(row, Round):
            return
        where = _where(row.session, row.phase, row.round, row.cell)
        self.latencies_s.append(row.latency_s)
        self._long = max(row.latency_s, row.latency_mean_s * row.participants) > LONG_S
        if row.loss is not None and HUGE_LOSS < abs(row.loss) < math.inf and self.huge is None:
            self.huge = where, row.loss
        self._scores(where, {"accuracy": row.accuracy, "loss": row.loss, **(further or {})})

    def see_columns(self, row_type: type, columns: Mapping[str, Any]) -> None:
        """Update the extremes with many rows, given as columns: participations in a round, or devices' scores."""
        if row_type is DeviceScore:
            where = _where(columns["session"], columns["phase"], columns["round"], columns["cell"])
            for name in {one.name for one in fields(DeviceScore)}.intersection(SCORES, columns):
                if any(value is not None and not math.isfinite(value) for value in columns[name]):
                    self._note(f"{name} of evaluation.csv", where)
        elif row_type is DeviceRound:
            self._see_parts(columns)

    def _see_parts(self, columns: Mapping[str, Any]) -> None:
        if dropped := columns["outcome"].count(Outcome.UNUSABLE_UPLINK):
            self.unusable += dropped
            for outcome, energy_j in zip(columns["outcome"], columns["energy_j"], strict=True):
                self.unusable_j += energy_j if outcome == Outcome.UNUSABLE_UPLINK else 0.0
        if not self._long:
            return
        for direction in TRANSFERS:
            start_s, end_s = (_numbers(columns[f"{direction}_{edge}_s"]) for edge in ("start", "end"))
            took_s = np.nan_to_num(end_s - start_s)
            place = int(took_s.argmax())
            if took_s[place] > self.slowest.took_s:
                where = _where(columns["session"], columns["phase"], columns["round"], columns["cell"])
                others_s = np.delete(took_s, place)
                others_s = others_s[others_s > 0]  # without devices that had no such transfer
                usual_s = float(np.median(others_s)) if len(others_s) else math.nan
                device = columns["device"][place]
                self.slowest = _Slowest(float(took_s[place]), usual_s, device, direction, where)

    def _scores(self, where: str, scores: Mapping[str, Any]) -> None:
        for name, value in scores.items():
            if isinstance(value, float) and not math.isfinite(value):
                self._note(name, where)

    def _note(self, column: str, where: str) -> None:
        self.not_finite.setdefault(column, where)
        self.rows_of[column] += 1


def explosions(extremes: Extremes, federations: Sequence[OwnSections], radio: RadioSettings) -> Iterator[str]:
    """Yield a note on each diverging quantity, with its place and a remedy that the scenario does not use yet."""
    yield from _of_length(extremes, federations, radio)
    trained = [one.learning.local for one in federations if one.learning is not None]
    clips = bool(trained) and all(local.clip_norm is not None for local in trained)
    clipping = f"{'a lower ' * clips}learning.local.clip_norm"
    if extremes.huge is not None:
        where, loss = extremes.huge
        yield (
            f"the loss in {where} is {loss:.2g}: still finite, but training diverges; a lower"
            f" learning.local.lr, or {clipping}, keeps it small"
        )
    for column, where in extremes.not_finite.items():
        count = extremes.rows_of[column]
        yield (
            f"{column} is not a finite number in {count:,} row{'s' if count > 1 else ''}, first in {where}: "
            f"summaries of this column are meaningless; a lower learning.local.lr, or {clipping}, keeps models finite"
        )
    if extremes.unusable:
        many = "1 update was" if extremes.unusable == 1 else f"{extremes.unusable:,} updates were"
        spent = f"{extremes.unusable_j:.3g} J (outcome unusable_uplink in devices.csv)"
        which = f"{many} not finite and therefore dropped (rounds.not_finite: drop), which wasted {spent}"
        yield f"{which}; a lower learning.local.lr, or {clipping}, keeps updates finite"


def _of_length(extremes: Extremes, federations: Sequence[OwnSections], radio: RadioSettings) -> Iterator[str]:
    slowest = extremes.slowest
    if not extremes.latencies_s or slowest.took_s <= LONG_S:
        return
    alone = math.isnan(slowest.others_s)
    usual_s = median(extremes.latencies_s) if alone else slowest.others_s
    times = TIMES_IF_HOPELESS if slowest.took_s > HOPELESS_S else TIMES_THE_MEDIAN
    if slowest.took_s <= times * usual_s:
        return
    usual = f"{usual_s:,.0f} s" if usual_s >= 100 else f"{usual_s:.3g} s"
    of_others = f"median {slowest.direction} of the round's other devices took"
    than = f"the {'median round takes' if alone else of_others} {usual}"
    shorter = "a shorter " * all(one.rounds.deadline_s is not None for one in federations)
    remedies = [f"{shorter}rounds.deadline_s ends rounds without waiting for such a device"]
    if radio.monitoring.t310_s is None:
        preset = "radio.preset: nr, or " * (radio.preset != "nr")
        remedies.append(f"{preset}radio.monitoring.t310_s{',' * bool(preset)} abandons such a link")
    yield (
        f"the {slowest.direction} of device {slowest.device} took {slowest.took_s:,.0f} s in {slowest.where}, while"
        f" {than}: the device's link carries almost no data; {', and '.join(remedies)}"
    )


def _where(session: int, phase: str, round_: int, cell: int) -> str:
    return f"session {session}, {phase} round {round_}" + (f" of cell {cell}" if cell else "")


def _numbers(values: Any) -> FloatArray:
    return np.array(values, dtype=float)


GIVEN_UP = (Outcome.FAILED_DOWNLINK, Outcome.FAILED_UPLINK)
OF_GLOBAL_MODEL = ("pilot", "train")  # phases that train the global model


@dataclass
class Counts:
    """Totals of a run's rows, over all cells together or, where a comment says so, by cell.

    of: federation ('' for a single federation) -> the totals of that federation.
    """

    events: Counter[str] = field(default_factory=Counter)
    emptied: set[int] = field(default_factory=set)  # devices whose battery ran empty at least once
    ends: Counter[str] = field(default_factory=Counter)  # reason -> number of sessions it ended
    sessions: int = 0  # largest session number
    warm: int = 0  # number of sessions that started from saved models
    rounds: Counter[int] = field(default_factory=Counter)  # cell -> number of rounds
    models: dict[int, int] = field(default_factory=dict)  # cell -> global models made
    participants: int = 0
    completed: int = 0
    not_taken: int = 0  # updates that arrived, but were not aggregated, of rounds that overlap
    chosen: set[int] = field(default_factory=set)  # devices that took part at least once
    delivered: set[int] = field(default_factory=set)  # devices of which at least one update arrived
    trained: Counter[int] = field(default_factory=Counter)  # cell -> rounds that train the global model
    longest: int = 0  # largest number of rounds of the global model in a session
    uncovered: list[int] = field(default_factory=list)  # devices without a link at each round's start
    extremes: Extremes = field(default_factory=Extremes)
    timers: int = 0  # rounds whose last upload or download was abandoned because its link failed
    of: dict[str, "Counts"] = field(default_factory=dict)

    @classmethod
    def of_several(cls, federations: Iterable[str]) -> "Counts":
        """Return a run's counts with its federations' counts in `of`; a single federation shares the run's counts."""
        counts = cls()
        counts.of = {name: cls() if name else counts for name in federations}
        return counts

    def see(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        """Count rows as they are written, with values of extra columns."""
        if further and OUT_OF_COVERAGE in further:
            self.uncovered.append(further[OUT_OF_COVERAGE])
        for row in rows:
            self.extremes.see(row, further)
            if isinstance(row, Event):
                self.events[row.event] += 1
                if row.event == EventName.BATTERY_EMPTY and row.device is not None:
                    self.emptied.add(row.device)
                self.ends[row.detail] += row.event == EventName.SESSION_END
            elif isinstance(row, Round):
                self.rounds[row.cell] += 1
                self.models[row.cell] = row.version
                self.participants += row.participants
                self.completed += row.completed
                if row.phase in OF_GLOBAL_MODEL:
                    self.trained[row.cell] += 1
                    self.longest = max(self.longest, row.round)
            elif isinstance(row, Session):
                self.sessions = max(self.sessions, row.session)
                self.warm += bool(row.weights)

    def see_columns(self, row_type: type, columns: dict[str, Any]) -> None:
        """Count rows written as columns: handovers, and the devices of a round."""
        self.extremes.see_columns(row_type, columns)
        if row_type is Event:
            self.events[columns["event"]] += len(columns["device"])
        elif row_type is DeviceRound:
            devices, outcomes = columns["device"], columns["outcome"]
            self.chosen.update(devices)
            self.delivered.update(
                d for d, how in zip(devices, outcomes, strict=True) if how == Outcome.COMPLETED
            )
            ends_s = [
                max(end_s for end_s in ends if end_s is not None)
                for ends in zip(*(columns[f"{activity}_end_s"] for activity in Activity), strict=True)
            ]
            last = max(range(len(ends_s)), key=ends_s.__getitem__)
            self.timers += outcomes[last] in GIVEN_UP
            self.not_taken += not_taken(columns)
