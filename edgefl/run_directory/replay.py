"""Learners that answer from a journal: for a run that goes on, and for a training that is run again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from edgefl.contract import BEGIN, Evaluation, Learner, LocalRound, Now, SessionStart, Stage, StageFacts
from edgefl.errors import EdgeflError
from edgefl.run_directory.journal import Journal, Place, Records, header, lines


class Resumable(Learner, Protocol):
    """A learner that can go on where another of its kind has stopped.

    sees_time: whether its training depends on simulated time, as where data drift by the clock.
    """

    sees_time: bool

    def stages(self) -> Iterator[Stage]:
        """Stages of the session that is open, from the present one on."""


class RecordedLearner:
    """A cell's learner as its records show it: each call is compared, and its answer given again."""

    def __init__(
        self,
        cell: int,
        records: Records,
        flops_per_sample: float,
        payload_bits: int,
        *,
        sees_time: bool = False,
    ) -> None:
        self.sees_time = sees_time
        self.flops_per_sample = flops_per_sample
        self.payload_bits = payload_bits
        self.at = Place(cell)
        self.facts: StageFacts | None = None  # of the present stage
        self._records = records

    def session(self, start: SessionStart) -> Iterator[Stage]:
        """The stages of a session."""
        self.at = Place(self.at.cell, start.number)
        self.facts = self.open(start)
        while self.facts is not None:
            self.at = Place(self.at.cell, start.number, self.facts.phase)
            yield RecordedStage(self, self.facts)
            self.facts = self.advance()

    def open(self, start: SessionStart) -> StageFacts | None:
        """A session's first stage."""
        found: StageFacts | None = self._records.answer(self.at, "session", {"start": start})
        return found

    def advance(self) -> StageFacts | None:
        """The stage after the present one; None: the session is over."""
        found: StageFacts | None = self._records.answer(self.at, "stage", {})
        return found

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        """As the present stage does; at another time, too, where training does not depend on it."""
        found: LocalRound = self._records.answer(self.at, "train", self._asked(ids, round_, now))
        return found

    def aggregate(self, ids: Sequence[int]) -> None:
        """As the present stage does."""
        self._records.answer(self.at, "aggregate", {"ids": ids})

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        """As the present stage does."""
        found: Evaluation | None = self._records.answer(self.at, "evaluate", {"present": present})
        return found

    def _asked(self, ids: Sequence[int], round_: int, now: Now) -> dict[str, Any]:
        """What training depends on: of the moment only what this learner sees of it."""
        progress = {} if now.progress is None else {"progress": now.progress}
        time = {"time_s": now.time_s} if self.sees_time else {}
        return {"ids": ids, "round": round_, **progress, **time}


class ReplayLearner(RecordedLearner):
    """A finished training run again, say over another radio: nothing is trained.

    Devices must take part and arrive as they did: another call than the recorded one is an error. With several
    cells, only the order within each cell is compared.

    Args:
        journal: of a complete run.

    Raises:
        EdgeflError: it cannot be read, or knows no such cell.
    """

    def __init__(self, journal: Path, cell: int) -> None:
        if header(journal) is None:
            raise EdgeflError(f"{journal}: is no journal; give the journal.jsonl of a run directory")
        entries = [entry for entry, _ in lines(journal) if entry["cell"] == cell]
        if not entries:
            raise EdgeflError(f"{journal}: has no cell {cell}")
        remedy = (
            "a training is run again only where its devices take part as they did: train for this scenario"
        )
        sees_time = any("time_s" in entry["asked"] for entry in entries)
        super().__init__(
            cell, Records(journal, entries[1:], remedy), **entries[0]["asked"], sees_time=sees_time
        )


class JournaledLearner(RecordedLearner):
    """A learner with a journal: answers from it while it lasts, then goes on live and writes it.

    Args:
        learner: of this cell; asked for nothing before the journal is used up.
    """

    def __init__(self, learner: Resumable, cell: int, journal: Journal) -> None:
        super().__init__(
            cell, journal, learner.flops_per_sample, learner.payload_bits, sees_time=learner.sees_time
        )
        self._learner = learner
        self._journal = journal
        self._stages: Iterator[Stage] = iter(())
        self._stage: Stage | None = None  # the learner's own that stands for the present one
        # the latest round, where only the records know it
        self._untrained: tuple[Sequence[int], int, Now, LocalRound] | None = None
        self._unlike: dict[int, str] = {}  # device -> what its training, done again, has made otherwise
        asked = {"flops_per_sample": self.flops_per_sample, "payload_bits": self.payload_bits}
        (journal.answer if journal.replays() else journal.record)(self.at, "learner", asked)

    def open(self, start: SessionStart) -> StageFacts | None:
        self._untrained = None
        if self._journal.replays():
            return super().open(start)
        self._journal.opens(start.number)
        with self._journal.changing():
            self._stages = iter(self._learner.session(start))
            return self._next("session", {"start": start})

    def advance(self) -> StageFacts | None:
        if self._journal.replays():
            self._untrained = None
            return super().advance()
        self._present()
        with self._journal.changing():
            return self._next("stage", {})

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        if self._journal.replays():
            local = super().train(ids, round_, now)
            self._untrained = ids, round_, now, local
            return local
        local = self._present().train(ids, round_, now)
        self._unlike = {id_: what for id_, what in self._unlike.items() if id_ not in ids}
        found: LocalRound = self._journal.record(self.at, "train", self._asked(ids, round_, now), local)
        return found

    def aggregate(self, ids: Sequence[int]) -> None:
        if self._journal.replays():
            self._untrained = None
            return super().aggregate(ids)
        stage = self._present()
        for id_ in self._unlike.keys() & set(ids):
            raise EdgeflError(
                f"{self.at}: device {id_} {self._unlike[id_]} before the run was left; training is not reproducible"
                " here: start the run anew"
            )
        with self._journal.changing():
            stage.aggregate(ids)
            self._journal.record(self.at, "aggregate", {"ids": ids})
        self._journal.aggregated()

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        if self._journal.replays():
            return super().evaluate(present)
        tested = self._present().evaluate(present)
        found: Evaluation | None = self._journal.record(self.at, "evaluate", {"present": present}, tested)
        return found

    def _next(self, call: str, asked: Mapping[str, Any]) -> StageFacts | None:
        self._stage = next(self._stages, None)
        facts = self._stage.facts if self._stage else None
        found: StageFacts | None = self._journal.record(self.at, call, asked, facts)
        return found

    def _present(self) -> Stage:
        """The learner's own present stage; in the middle of a session the learner goes on from its snapshot.

        Of the latest round the snapshot has no update if these can be trained again from it, which is done here.
        """
        if self._stage is None:
            assert self.facts is not None
            self._stages = iter(self._learner.stages())
            self._stage = next(self._stages, None)
            found = self._stage and replace(self._stage.facts, opening=None)
            if self._stage is None or found != replace(self.facts, opening=None):
                raise EdgeflError(
                    f"{self.at}: the snapshot goes on with {found}, the journal with {self.facts}"
                )
        if self._untrained is not None:
            ids, round_, moment, recorded = self._untrained
            self._untrained = None
            again = self._stage.train(ids, round_, moment)
            # a device that has moved on to another cell may differ: its update does not arrive here
            self._unlike = {
                id_: f"makes {now} iterations, and made {then}"
                for id_, now, then in zip(ids, again.iterations, recorded.iterations, strict=True)
                if now != then
            }
        return self._stage


class Answering(Protocol):
    """A learner that answers for its present stage; at: where it is asked."""

    at: Place

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound: ...
    def aggregate(self, ids: Sequence[int]) -> None: ...
    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None: ...


class RecordedStage:
    """The present stage of a learner which answers for it."""

    def __init__(self, learner: Answering, facts: StageFacts) -> None:
        self.facts = facts
        self._learner = learner

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        self._learner.at = replace(self._learner.at, round=round_)
        return self._learner.train(ids, round_, now)

    def aggregate(self, ids: Sequence[int]) -> None:
        self._learner.aggregate(ids)

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation | None:
        return self._learner.evaluate(present)
