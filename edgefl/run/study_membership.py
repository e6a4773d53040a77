"""A run as part of a study: where it belongs, and what training it shares with other runs."""

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
from edgefl.scenario.identity import LearningIdentity

Lending = Literal["never", "after_pilot", "after_two", "every_session"]
# sessions after the pilot ones that are trained as by `previous`, see `WarmStart.first_two_as_previous`
AS_PREVIOUS = 2


@dataclass(frozen=True)
class StudyMembership:
    """Which study a run belongs to.

    reference: the proposed variant; None: there is none. setting: axis of its grid -> label. variants: all of the
    study's, in the order of its file. run.json has all of it.
    """

    study: str
    variant: str
    reference: str | None
    setting: Mapping[str, str] = field(default_factory=dict)
    variants: Sequence[str] = ()


@dataclass(frozen=True)
class TrainingReuse:
    """What training a run shares with others of its study.

    lender: run directory whose answers are taken as long as its learners would be told and asked the same; None:
    all is trained. name: what run.json calls it. lends: when a snapshot is left for other runs: after the pilot
    sessions, after these and after the two behind them, before every session.
    """

    lender: Path | None = None
    name: str = ""
    lends: Lending = "never"

    def before(self, pilot_sessions: int) -> Lends:
        """Return before which sessions a snapshot is left."""
        if self.lends == "every_session":
            return lambda session: session > 1
        after = {
            "never": (),
            "after_pilot": (pilot_sessions,),
            "after_two": (pilot_sessions, pilot_sessions + AS_PREVIOUS),
        }[self.lends]
        return lambda session: session - 1 in after

    def loan(self, here: Mapping[str, str], training: Snapshotable, own: LearningIdentity) -> Loan | None:
        """Return what a run takes from the lender; None: nothing.

        Args:
            here: the circumstances of the run that takes it.
            training: what it trains.
            own: what its learners are told.
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
            weights = {session - 1: 1.0} if session - 1 > pilots else {}  # none is saved at first
            return replace(opening, warm_start=own.plain, weights=weights)

        return loan(self.lender, here, training, sessions=pilots + AS_PREVIOUS, opened=opened)
