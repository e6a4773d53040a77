"""Find the runs of a study that can share a training, and the one that trains."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgefl.errors import EdgeflError
from edgefl.rng import Streams
from edgefl.run.study_membership import AS_PREVIOUS, Lending, TrainingReuse
from edgefl.run_directory.journal import LENT
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.identity import LearningIdentity
from edgefl.scenario.prepared import Prepared
from edgefl.scenario.world import World
from edgefl.studies.planning import Run
from edgefl.studies.states import State


@dataclass
class ReusePlan:
    """The training that a run takes from another run, and leaves for others.

    lender: the run whose training it takes; None: it trains. whole: throughout, else up to the end of session
    `until`, when the lender has left so many `snapshots`. lends: when it leaves snapshots. family: the runs that take
    from one another.
    """

    lender: Path | None = None
    whole: bool = False
    until: int = 0
    snapshots: int = 0
    lends: Lending = "never"
    family: list[Path] = field(default_factory=list)

    def in_directory(self, directory: Path) -> TrainingReuse:
        """Return it for the run itself, given the study's directory."""
        if self.lender is None:
            return TrainingReuse(lends=self.lends)
        return TrainingReuse(directory / self.lender, self.lender.as_posix(), self.lends)


def plan_reuse(
    runs: Sequence[Run], load: Loaded, states: Mapping[Path, State] | None = None
) -> dict[Path, ReusePlan]:
    """Return for each run, by its path, what training it takes and leaves.

    The first run of those whose learners are told the same trains for them all, a completed one rather than another.
    Of these first ones, where they differ in their warm start alone, one trains the pilot sessions for the others,
    and the two sessions behind them for those that train them as `previous` does.

    Args:
        states: how runs stand, by path; those that are completed need not be run.
    """
    completed = {path for path, state in (states or {}).items() if state is State.COMPLETED}
    plans = {run.path: ReusePlan(family=[run.path]) for run in runs}
    for candidates in _candidates(runs, load):
        families: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
        told: dict[Path, LearningIdentity] = {}
        for path, prepared in candidates.items():
            if own := _told(prepared):
                told[path] = own
                families[own.pilot][own.whole].append(path)
        for groups in families.values():
            family = [path for members in groups.values() for path in members]
            heads = []
            for members in groups.values():
                head = next((path for path in members if path in completed), members[0])
                heads.append(head)
                for path in members:
                    plans[path] = ReusePlan(None if path == head else head, whole=path != head, family=family)
                if len(members) > 1:
                    plans[head].lends = "every_session"
            # one that is complete has no snapshot left
            _share_sessions([head for head in heads if head not in completed], told, plans)
    return plans


def _share_sessions(
    heads: Sequence[Path], told: Mapping[Path, LearningIdentity], plans: Mapping[Path, ReusePlan]
) -> None:
    """Let one of these runs, which differ in their warm start alone, train the first sessions for the others."""
    if len(heads) < 2:
        return
    # the others can take the two sessions of one that probes, and it cannot take theirs
    first = max(heads, key=lambda head: (told[head].leads, told[head].leads and not told[head].plain))
    pilots = told[first].pilot_sessions
    others = [plans[head] for head in heads if head != first]
    takes_two = [told[first].leads and bool(told[head].plain) for head in heads if head != first]
    every = plans[first].lends == "every_session"
    if not every:
        plans[first].lends = "after_two" if any(takes_two) else "after_pilot"
    for plan, two in zip(others, takes_two, strict=True):
        plan.lender, plan.until = first, pilots + AS_PREVIOUS * two
        plan.snapshots = plan.until if every else 1 + two


def lent_after(run: Path) -> int:
    """Count the snapshots in a run's directory that are there for others."""
    return sum(1 for _ in (run / LENT).glob("*.json"))


def _candidates(runs: Sequence[Run], load: Loaded) -> Iterator[dict[Path, Prepared]]:
    """Yield the runs that may share something, by what is quickly seen: seed and settings of learning."""
    alike: dict[str, dict[Path, Prepared]] = defaultdict(dict)
    settings: dict[int, str] = {}
    for run in runs:
        prepared, learning = Prepared(run.scenario, load), run.scenario.learning
        if learning is None:
            continue
        if id(learning) not in settings:  # the seeds of a case have it in common
            settings[id(learning)] = str({**prepared.values["learning"], "warm_start": None})
        alike[f"{run.scenario.seed} {settings[id(learning)]}"][run.path] = prepared
    yield from (group for group in alike.values() if len(group) > 1)


def _told(prepared: Prepared) -> LearningIdentity | None:
    try:
        return prepared.told(World(prepared.scenario, Streams(prepared.scenario.seed)))
    except EdgeflError:  # the run itself will say it
        return None
