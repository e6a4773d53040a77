"""Reuse the answers of another run of a study as long as both runs make the same calls in the same order.

A learner's answers are a function of its settings and of the calls it receives. Two runs whose learners have the same
settings therefore share training for as long as their calls are the same in all cells; each call is compared with the
lender's journal. At the first difference, the borrower's own learners take over from the lender's latest snapshot
before the difference, or from the beginning; they repeat the calls since then, and their answers must be the same.

A borrower that does not probe skips the lender's probes.
"""

import hashlib
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.contract import BEGIN, Now, Opening, Stage, StageFacts
from edgefl.errors import EdgeflError
from edgefl.run_directory.circumstances import differences
from edgefl.run_directory.journal import FILE, LENT, header, lines
from edgefl.run_directory.plain import decoded, encoded
from edgefl.run_directory.questions import KEEPS_TRAINING, Answering, Asked, Resumable
from edgefl.run_directory.seal import sealed
from edgefl.run_directory.snapshot import Snapshot, Snapshotable, Snapshots

if TYPE_CHECKING:
    from torch import Tensor

Entry = dict[str, Any]
PROBE, TRAIN = "probe", "train"  # names of phases


@dataclass
class Loan:
    """Training results that a run may reuse from another run.

    entries: entries of the lender's journal before the first entry that might not apply to the borrower. written:
    the line of each entry. ends: position of each entry in the lender's whole journal, from 1.
    snapshots: the lender's snapshots, oldest first. training: the borrower's own training. on_end: called with the
    number of reused rounds when the borrower's own learners take over.
    """

    lender: Path
    entries: Sequence[Entry]
    written: Sequence[bytes]
    ends: Sequence[int]
    snapshots: Sequence[Snapshot]
    training: Snapshotable
    on_end: Callable[[int], None] = lambda rounds: None
    over: bool = False  # the borrower's own learners have taken over
    rounds: int = 0  # number of rounds reused so far
    _next: int = 0
    _answered: bool = False  # whether the previous entry gave the last answer

    def __post_init__(self) -> None:
        self._learners: dict[int, _BorrowingLearner] = {}
        while self._next < len(self.entries) and self.entries[self._next]["call"] == "learner":
            self._next += 1

    @property
    def taken(self) -> int:
        """Return the number of the lender's entries that have been used or skipped."""
        return self.ends[self._next - 1] if self._next else 0

    def takes(self, cell: int | str, call: str, asked: Mapping[str, Any]) -> bool:
        """Return whether a learner's call is the next call in the lender's journal."""
        if self.over or self._next == len(self.entries):
            return False
        entry = self.entries[self._next]
        return (entry["cell"], entry["call"], entry["asked"]) == (
            cell,
            call,
            {name: encoded(value) for name, value in asked.items()},
        )

    def answer(self) -> Any:
        """Return the next answer in the lender's journal."""
        entry = self.entries[self._next]
        self._next += 1
        self._answered = True
        self.rounds += entry["call"] == "train"
        return decoded(entry["answered"])

    def line(self) -> bytes | None:
        """Return the journal line of the answer just reused, or None."""
        taken, self._answered = self._answered, False
        return self.written[self._next - 1] if taken else None

    def borrower(self, learner: Resumable, cell: int) -> "_BorrowingLearner":
        """Return a learner that first takes answers from this loan."""
        self._learners[cell] = _BorrowingLearner(learner, cell, self)
        return self._learners[cell]

    def end(self) -> None:
        """Make the borrower's own learners take over where the reused answers end."""
        self.over = True
        snapshot = next((one for one in reversed(self.snapshots) if one.entries <= self.taken), None)
        begin = 0
        if snapshot is not None:
            begin = bisect_right(self.ends, snapshot.entries)
            self.training.restore(snapshot.tensors(), snapshot.facts)
            for entry in _unfinished(self.entries[:begin]):
                self._learners[entry["cell"]].ask(entry)
        for entry in self.entries[begin : self._next]:
            if (
                entry["call"] != "learner"
                and encoded(self._learners[entry["cell"]].ask(entry)) != entry["answered"]
            ):
                raise EdgeflError(
                    f"{self.lender / FILE}: entry {entry['n']} has a different answer here: training is not"
                    " reproducible on this machine; run the study with --alone, which shares no training"
                )
        self.on_end(self.rounds)

    # the borrower's own journal takes snapshots of its own training only
    def state(self) -> tuple[dict[str, "Tensor"], dict[str, Any]]:
        """Return the training state of the borrower's own learners, for a snapshot."""
        return self.training.state()

    def restore(self, tensors: dict[str, "Tensor"], facts: dict[str, Any]) -> None:
        """Restore the borrower's own learners from a snapshot; no more answers are reused."""
        self.over = True
        self.training.restore(tensors, facts)


def loan(
    lender: Path,
    circumstances: Mapping[str, str],
    training: Snapshotable,
    *,
    sessions: int | None = None,
    opened: Callable[[int, Opening], Opening] | None = None,
) -> Loan | None:
    """Return the training that a run may reuse from another run, or None if that run's circumstances differ.

    Args:
        lender: run directory of the other run, which may still be running.
        circumstances: circumstances of the borrowing run, from `journal.circumstances`.
        sessions: last session in which both runs can train alike, or None for all sessions.
        opened: as in `_without_probes` for a borrower without probes, or None if the borrower probes like the lender.
    """
    path = lender / FILE
    begun = header(path)
    if begun is None or differences(begun, circumstances, scenario=False):
        return None
    with path.open("rb") as file:
        digest = hashlib.sha256(file.readline())
    last = math.inf if sessions is None else sessions
    entries: list[Entry] = []
    written: list[bytes] = []
    digests = {0: digest.hexdigest()}
    for entry, line in lines(path):
        if entry["call"] == "session" and decoded(entry["asked"]["start"]).number > last:
            break
        entries.append(entry)
        written.append(line)
        digest.update(line)
        digests[len(entries)] = digest.hexdigest()
    ends = list(range(1, len(entries) + 1))
    if opened is not None:
        kept = list(_without_probes(entries, opened))
        entries = [{**entry, "n": n} for n, (entry, _) in enumerate(kept)]
        written = [sealed(entry).encode() for entry in entries]
        ends = [end for _, end in kept]
    return Loan(lender, entries, written, ends, Snapshots(lender / LENT).whole(digests), training)


def _unfinished(entries: Sequence[Entry]) -> list[Entry]:
    """Return the `train` calls to repeat after a snapshot at the end of the given journal entries.

    Snapshots do not contain the latest round's updates, because these can be trained again.
    """
    last: dict[int, Entry | None] = {}
    for entry in entries:
        if entry["call"] not in KEEPS_TRAINING:
            last[entry["cell"]] = entry if entry["call"] == "train" else None
    return [entry for entry in last.values() if entry]


class _BorrowingLearner(Answering):
    """A cell's learner that takes its answers from a loan, and then does its own training.

    Args:
        learner: the cell's learner; not called before the loan's end.
    """

    def __init__(self, learner: Resumable, cell: int, loan: Loan) -> None:
        super().__init__(cell, learner.flops_per_sample, learner.payload_bits, learner.sees_time)
        self._own = Asked(learner)
        self._loan = loan

    def stages(self) -> Iterator[Stage]:
        """Yield the stages of the open session, from the current one on."""
        stage = self._own.present()
        return self._stages_from(stage.facts if stage else None)

    def answer(self, call: str, asked: Mapping[str, Any], now: Now = BEGIN) -> Any:
        if self._loan.takes(self.at.cell, call, asked):
            return self._loan.answer()
        if not self._loan.over:
            self._loan.end()
        return self._own.ask(call, asked, now)

    def ask(self, entry: Entry) -> Any:
        """Repeat a recorded call with the cell's own learner."""
        asked = {name: decoded(value) for name, value in entry["asked"].items()}
        return self._own.ask(entry["call"], asked, Now(asked.get("time_s", 0.0), asked.get("progress")))


def _without_probes(
    entries: Iterable[Entry], opened: Callable[[int, Opening], Opening]
) -> Iterator[tuple[Entry, int]]:
    """Yield one cell's journal entries except probe rounds, each with its end position in the original journal.

    `similarity` trains the first two sessions after the pilot sessions as `previous` does, except for preceding probe
    rounds, which leave no trace: without them, the lender answers like a run that does not probe.

    Without probe rounds, a session opens with its training. Stop before a session whose probes included a device that
    was absent at the session's start: that device becomes a member of the session, and counts in its tests.

    Args:
        opened: returns a session's opening in a run without probes, given its number and the lender's opening.
    """
    session: Entry = {}  # entry of the latest session
    probing = False
    for end, entry in enumerate(entries, 1):
        call = entry["call"]
        if call == "session":
            session = entry
        facts: StageFacts | None = decoded(entry["answered"]) if call in ("session", "stage") else None
        phase = facts.phase if facts else ""
        if facts and phase == TRAIN:
            assert facts.opening is not None
            opening = opened(decoded(session["asked"]["start"]).number, facts.opening)
            yield {**session, "answered": encoded(replace(facts, opening=opening))}, end
            probing = False
        elif phase == PROBE:
            probing = True
        elif not probing:
            yield entry, end
        elif call == "train" and not {*decoded(entry["asked"]["ids"])} <= {
            *decoded(session["asked"]["start"]).ids
        }:
            return
