"""Learners of a resumed run, which answer from the journal up to the journal's end."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from edgefl.contract import BEGIN, LocalRound, Now
from edgefl.errors import EdgeflError
from edgefl.run_directory.journal import Journal
from edgefl.run_directory.questions import KEEPS_TRAINING, LOOKS, Answering, Asked, Resumable


class JournaledLearner(Answering):
    """A learner that answers from a journal up to the journal's end, then trains and records its answers.

    Args:
        learner: this server's learner; not called before the journal's end.
    """

    def __init__(self, learner: Resumable, cell: int | str, journal: Journal) -> None:
        super().__init__(cell, learner.flops_per_sample, learner.payload_bits, learner.sees_time)
        self._own = Asked(learner)
        self._journal = journal
        # arguments and answer of the latest training, if it is known only from the journal
        self._untrained: tuple[Mapping[str, Any], Now, LocalRound] | None = None
        self._unlike: dict[int, str] = {}  # device -> how its repeated training differs
        asked = {"flops_per_sample": self.flops_per_sample, "payload_bits": self.payload_bits}
        (journal.answer if journal.replays() else journal.record)(self.at, "learner", asked)

    def answer(self, call: str, asked: Mapping[str, Any], now: Now = BEGIN) -> Any:
        journal = self._journal
        if journal.replays():
            answered = journal.answer(self.at, call, asked)
            if call not in KEEPS_TRAINING:
                self._untrained = (asked, now, answered) if call == "train" else None
            return answered
        if call == "session":
            journal.opens(asked["start"].number)
        else:
            self._go_on()
        if call == "aggregate":
            self._require_like(asked["ids"])
        with nullcontext() if call in ("train", *LOOKS) else journal.changing():
            answered = journal.record(self.at, call, asked, self._own.ask(call, asked, now))
        if call == "train":
            self._unlike = {id_: what for id_, what in self._unlike.items() if id_ not in asked["ids"]}
        elif call == "aggregate":
            journal.aggregated()
        return answered

    def _go_on(self) -> None:
        """Advance the learner to the journal's end; in the middle of a session, it continues from a snapshot.

        Snapshots do not contain updates that can be trained again; these updates are trained here.
        """
        if not self._own.is_open:
            assert self.facts is not None
            stage = self._own.present()
            present = stage and replace(stage.facts, opening=None)
            if present != replace(self.facts, opening=None):
                raise EdgeflError(
                    f"{self.at}: the snapshot continues with {present}, but the journal with {self.facts}"
                )
        if self._untrained is not None:
            asked, moment, recorded = self._untrained
            self._untrained = None
            again: LocalRound = self._own.ask("train", asked, moment)
            # a device that has changed its cell may have another update, since this cell does not receive it
            self._unlike = {
                id_: f"makes {now} iterations, but made {then}"
                for id_, now, then in zip(again.ids, again.iterations, recorded.iterations, strict=True)
                if now != then
            }

    def _require_like(self, arrived: Any) -> None:
        """Raise if an arrived update, trained again by the resumed run, differs from the first training's update."""
        for id_ in self._unlike.keys() & set(arrived):
            raise EdgeflError(
                f"{self.at}: device {id_} {self._unlike[id_]} before the interruption; training is not"
                " reproducible here: start the run again"
            )
