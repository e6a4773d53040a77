"""Learners of a resumed run, which answer from the journal up to the journal's end."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from edgefl.contract import BEGIN, Now
from edgefl.errors import EdgeflError
from edgefl.run_directory.journal import Journal
from edgefl.run_directory.questions import KEEPS_TRAINING, LOOKS, Answering, Asked, Resumable, Rewound


@dataclass(frozen=True)
class _Call:
    """A recorded call, and its number among the learner's calls."""

    number: int
    call: str
    asked: Mapping[str, Any]
    now: Now
    answered: Any


class JournaledLearner(Answering):
    """A learner that answers from a journal up to the journal's end, then trains and records its answers.

    Args:
        learner: this server's learner; not called before the journal's end.
    """

    def __init__(self, learner: Resumable, cell: int | str, journal: Journal) -> None:
        super().__init__(cell, learner.flops_per_sample, learner.payload_bits, learner.sees_time)
        self._own = Asked(learner)
        self._rewound = learner if isinstance(learner, Rewound) else None
        self._journal = journal
        self._recorded = 0  # number of this learner's calls in the journal
        # the latest training and the calls since, if they are known only from the journal
        self._replayed: list[_Call] = []
        self._unlike: dict[int, str] = {}  # device -> how its repeated training differs
        asked = {"flops_per_sample": self.flops_per_sample, "payload_bits": self.payload_bits}
        (journal.answer if journal.replays() else journal.record)(self.at, "learner", asked)

    def answer(self, call: str, asked: Mapping[str, Any], now: Now = BEGIN) -> Any:
        journal = self._journal
        if journal.replays():
            answered = journal.answer(self.at, call, asked)
            if call not in KEEPS_TRAINING:
                self._replayed = []
            self._replayed.append(_Call(self._recorded, call, asked, now, answered))
            self._recorded += 1
            return answered
        again = self._calls_to_repeat()
        if call == "session":
            journal.opens(asked["start"].number)
        if call != "session" or (again and self._rewound is not None):
            self._go_on(again)
        if call == "aggregate":
            self._require_like(asked["ids"])
        with nullcontext() if call in ("train", *LOOKS) else journal.changing():
            answered = self._ask(self._recorded, call, asked, now)
            answered = journal.record(self.at, call, asked, answered)
            self._recorded += 1
            if self._rewound is not None:
                self._rewound.recorded = self._recorded
        if call == "train":
            self._unlike = {id_: what for id_, what in self._unlike.items() if id_ not in asked["ids"]}
        elif call == "aggregate":
            journal.aggregated()
        return answered

    def _ask(self, number: int, call: str, asked: Mapping[str, Any], now: Now) -> Any:
        if self._rewound is not None:
            self._rewound.recorded = number
        return self._own.ask(call, asked, now)

    def _calls_to_repeat(self) -> "list[_Call]":
        """Return the recorded calls that the restored state lacks: a native learner's state lacks only training."""
        calls, self._replayed = self._replayed, []
        if self._rewound is None:
            return [one for one in calls if one.call == "train"]
        return [one for one in calls if one.number >= self._rewound.recorded]

    def _go_on(self, again: "list[_Call]") -> None:
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
        for one in again:
            local, before = self._ask(one.number, one.call, one.asked, one.now), one.answered
            if one.call != "train":
                continue
            # a device that has changed its cell may have another update, since this cell does not receive it
            self._unlike = {
                id_: f"makes {now} iterations, but made {then}"
                for id_, now, then in zip(local.ids, local.iterations, before.iterations, strict=True)
                if now != then
            }

    def _require_like(self, arrived: Any) -> None:
        """Raise if an arrived update, trained again by the resumed run, differs from the first training's update."""
        for id_ in self._unlike.keys() & set(arrived):
            raise EdgeflError(
                f"{self.at}: device {id_} {self._unlike[id_]} before the interruption; training is not"
                " reproducible here: start the run again"
            )
