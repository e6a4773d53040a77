"""Choose the run of a study to begin next, whichever process begins it."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from edgefl.run_directory.journal import LENT
from edgefl.studies.planning import Run
from edgefl.studies.states import ENDED, State, state_of
from edgefl.studies.training_reuse import ReusePlan, lent_after


class RunQueue:
    """The runs that are still to be done, in order.

    Args:
        directory: of the study.
        runs: those that this process may do.
        reuse: path -> what training a run takes and leaves; of all runs of the study.
        states: path -> how a run stands now.
        retry: whether failed ones are to be done too.
        wait: whether runs that other processes do are waited for.
    """

    def __init__(
        self,
        directory: Path,
        runs: Sequence[Run],
        reuse: Mapping[Path, ReusePlan],
        states: Mapping[Path, State],
        *,
        retry: bool,
        wait: bool = False,
    ) -> None:
        self._directory = directory
        self._reuse = reuse
        self._waiting: list[Run] = []
        self._active: set[Path] = set()
        self._tried: set[Path] = set()
        self._retry, self._wait = retry, wait
        self.completed: list[Run] = []  # before this process began
        self.failed: list[Run] = []  # likewise, and left so
        self.new: list[Run] = []  # not begun by anybody
        self.elsewhere: list[Run] = []  # done by other processes when last looked at
        for run in runs:
            state = states[run.path]
            if state is State.COMPLETED:
                self.completed.append(run)
            elif state is State.FAILED and not retry:
                self.failed.append(run)
            else:
                self._waiting.append(run)
                if state is State.PLANNED:
                    self.new.append(run)
        places = _places(runs, reuse)
        self._waiting.sort(key=lambda run: places[run.path])

    @property
    def to_do(self) -> list[Run]:
        """The runs that wait."""
        return list(self._waiting)

    def take(self) -> Run | None:
        """Return a run to begin now; None: no run waits, or every one needs a training that is not done yet."""
        self.elsewhere = []
        waited_for: dict[Path, bool] = {}
        for run in list(self._waiting):
            reuse = self._reuse[run.path]
            lender = reuse.lender
            if lender is not None:
                if lender not in waited_for:
                    waited_for[lender] = self._is_under_way(lender)
                ready = not waited_for[lender] or (
                    not reuse.whole and lent_after(self._directory / lender) >= reuse.snapshots
                )
                if not ready:
                    continue
            state = state_of(self._directory, run.path)
            if state is State.RUNNING:
                self.elsewhere.append(run)
            elif state is State.COMPLETED or (state is State.FAILED and not self._may_fail_again(run)):
                self._waiting.remove(run)  # another process has done it
                (self.completed if state is State.COMPLETED else self.failed).append(run)
            else:
                self._waiting.remove(run)
                self._active.add(run.path)
                self._tried.add(run.path)
                return run
        return None

    def waits(self) -> bool:
        """Whether a run waits for what another process trains for it, or for that process to end."""
        return len(self._waiting) > (0 if self._wait else len(self.elsewhere))

    def put_back(self, run: Run) -> None:
        """Note that another process was quicker."""
        self._active.discard(run.path)
        self._tried.discard(run.path)
        self._waiting.append(run)

    def ended(self, run: Run) -> None:
        """Note that a run has ended."""
        self._active.discard(run.path)
        family = self._reuse[run.path].family
        # once for each family, as states are read from files
        if not any(self._reuse[run.path].family is family for run in self._waiting):
            self._tidy(family)

    def tidy(self) -> None:
        """Remove what runs have left for others that have all ended, say in a process that was killed just then."""
        for family in {id(reuse.family): reuse.family for reuse in self._reuse.values()}.values():
            if any((self._directory / path / LENT).exists() for path in family):
                self._tidy(family)

    def _tidy(self, family: Sequence[Path]) -> None:
        if len(family) > 1 and all(state_of(self._directory, path) in ENDED for path in family):
            for path in family:
                shutil.rmtree(self._directory / path / LENT, ignore_errors=True)

    def _may_fail_again(self, run: Run) -> bool:
        return self._retry and run.path not in self._tried

    def _is_under_way(self, lender: Path) -> bool:
        """Whether this process has or will have a run, or another one is doing it."""
        if lender in self._active or any(run.path == lender for run in self._waiting):
            return True
        return state_of(self._directory, lender) is State.RUNNING


def _places(runs: Sequence[Run], reuse: Mapping[Path, ReusePlan]) -> dict[Path, tuple[int, bool]]:
    """Return each run's place in line: by family, and what only takes behind the next family's training.

    What takes all of its training from another run is done in moments: it fills up the time while others train, so
    that no worker is left with the last training alone. Only the next family's, as they leave snapshots for theirs.
    """
    ranks: dict[int, int] = {}
    places = {}
    for run in runs:
        family, whole = reuse[run.path].family, reuse[run.path].whole
        rank = ranks.setdefault(id(family), len(ranks))
        places[run.path] = (rank + whole, whole)
    return places
