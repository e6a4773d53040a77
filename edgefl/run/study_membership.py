"""Describe a run in a study: its variant and setting, and the training that it shares with other runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from edgefl.contract import Opening
from edgefl.errors import EdgeflError
from edgefl.run_directory.journal import Lends
from edgefl.run_directory.lending import Loan, loan
from edgefl.run_directory.reading import about_of
from edgefl.run_directory.snapshot import Snapshotable
from edgefl.scenario.prepared import LearningIdentity

Lending = Literal["never", "after_pilot", "after_two", "every_session"]
# sessions after the pilot sessions that are trained as with `previous`, see `WarmStart.first_two_as_previous`
AS_PREVIOUS = 2


@dataclass(frozen=True)
class StudyMembership:
    """The study that a run belongs to.

    reference: the variant with which all others are compared, if named. setting: axis of the grid -> the run's label
    on that axis. variants: all variants of the study, in the order of the study's file. settings: axis of the grid ->
    all its labels, in that order. All are in run.json.
    """

    study: str
    variant: str
    reference: str | None
    setting: Mapping[str, str] = field(default_factory=dict)
    variants: Sequence[str] = ()
    settings: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingReuse:
    """The training that a run shares with other runs of its study.

    lender: run directory whose answers are reused while this run's learners would receive the same calls; None to
    train everything. name: the lender's name in run.json. lends: when to write snapshots for other runs: once after
    the pilot sessions (`after_pilot`), once more two sessions later (`after_two`), or before every session.
    """

    lender: Path | None = None
    name: str = ""
    lends: Lending = "never"

    def before(self, pilot_sessions: int) -> Lends:
        """Return a predicate for the sessions before which a snapshot is written."""
        if self.lends == "every_session":
            return lambda session: session > 1
        after = {
            "never": (),
            "after_pilot": (pilot_sessions,),
            "after_two": (pilot_sessions, pilot_sessions + AS_PREVIOUS),
        }[self.lends]
        return lambda session: session - 1 in after

    def loan(self, here: Mapping[str, str], training: Snapshotable, own: LearningIdentity) -> Loan | None:
        """Return the training that a run reuses from its lender, or None.

        Args:
            here: circumstances of the borrowing run.
            training: the borrowing run's training.
            own: identity of the borrowing run's learners.
        """
        if self.lender is None:
            return None
        try:
            theirs = about_of(self.lender).get("learning_identity") or {}
        except EdgeflError:
            return None
        if theirs.get("whole") == own.whole:
            return loan(self.lender, here, training)
        if theirs.get("pilot") != own.pilot:
            return None
        pilots = own.pilot_sessions
        if not (own.plain and theirs.get("leads")):
            return loan(self.lender, here, training, sessions=pilots)

        def opened(session: int, opening: Opening) -> Opening:
            weights = {session - 1: 1.0} if session - 1 > pilots else {}  # session P + 1 has no saved model
            return replace(opening, warm_start=own.plain, weights=weights)

        return loan(self.lender, here, training, sessions=pilots + AS_PREVIOUS, opened=opened)
