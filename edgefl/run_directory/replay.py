"""Learners that answer from a journal while it lasts, in a run that goes on."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from edgefl.contract import BEGIN, LocalRound, Now
from edgefl.errors import EdgeflError
from edgefl.run_directory.journal import Journal
from edgefl.run_directory.questions import KEEPS_TRAINING, LOOKS, Answering, Asked, Resumable


class JournaledLearner(Answering):
    """A learner with a journal: answers from it while it lasts, then goes on live and writes it.

    Args:
        learner: of this server; asked for nothing before the journal is used up.
    """

    def __init__(self, learner: Resumable, cell: int | str, journal: Journal) -> None:
        super().__init__(cell, learner.flops_per_sample, learner.payload_bits, learner.sees_time)
        self._own = Asked(learner)
        self._journal = journal
        # the latest training, what it was asked and its answer, where only the records know it
        self._untrained: tuple[Mapping[str, Any], Now, LocalRound] | None = None
        self._unlike: dict[int, str] = {}  # device -> what its training, done again, has made otherwise
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
        """Let the own learner stand where the journal ends; in the middle of a session it goes on from a snapshot.

        Updates that can be trained again are in no snapshot: this is done here.
        """
        if not self._own.is_open:
            assert self.facts is not None
            stage = self._own.present()
            present = stage and replace(stage.facts, opening=None)
            if present != replace(self.facts, opening=None):
                raise EdgeflError(
                    f"{self.at}: the snapshot goes on with {present}, the journal with {self.facts}"
                )
        if self._untrained is not None:
            asked, moment, recorded = self._untrained
            self._untrained = None
            again: LocalRound = self._own.ask("train", asked, moment)
            # a device that has moved on to another cell may differ: its update does not arrive here
            self._unlike = {
                id_: f"makes {now} iterations, and made {then}"
                for id_, now, then in zip(again.ids, again.iterations, recorded.iterations, strict=True)
                if now != then
            }

    def _require_like(self, arrived: Any) -> None:
        """Refuse updates that were trained again and came out otherwise."""
        for id_ in self._unlike.keys() & set(arrived):
            raise EdgeflError(
                f"{self.at}: device {id_} {self._unlike[id_]} before the run was left; training is not"
                " reproducible here: start the run anew"
            )
