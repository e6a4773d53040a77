"""Find the runs of a study that can share training, and the run that trains for the others."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.rng import Streams
from edgefl.run.study_membership import AS_PREVIOUS, Lending, TrainingReuse
from edgefl.run_directory.journal import LENT
from edgefl.scenario.prepared import LearningIdentity, Prepared
from edgefl.scenario.world import World
from edgefl.studies.states import State


@dataclass
class ReusePlan:
    """The training that a run reuses from another run, and the training that it keeps for other runs.

    lender: the run that trains for this run; None if this run does its own training. whole: whether the lender does
    all of the training; otherwise the lender trains up to the end of session `until`, and has written `snapshots`
    snapshots by then. certain: the last session that is reused in any case, inf for all sessions; later sessions are
    reused as long as the same devices take part in both runs. lends: when this run writes snapshots for other runs.
    family: the runs that reuse one another's training.
    """

    lender: Path | None = None
    whole: bool = False
    until: int = 0
    certain: float = 0
    snapshots: int = 0
    lends: Lending = "never"
    family: list[Path] = field(default_factory=list)

    @property
    def last(self) -> float:
        """The last session that may be reused, inf for all sessions."""
        return math.inf if self.whole else self.until

    def in_directory(self, directory: Path) -> TrainingReuse:
        """Return the reuse plan with paths that include the study's directory."""
        if self.lender is None:
            return TrainingReuse(lends=self.lends)
        return TrainingReuse(directory / self.lender, self.lender.as_posix(), self.lends)


def plan_reuse(
    prepared: Mapping[Path, Prepared], states: Mapping[Path, State] | None = None
) -> dict[Path, ReusePlan]:
    """Return, by each run's path, the training that the run reuses and the training that it keeps for other runs.

    Among runs with equal learners, a completed run, or otherwise the first run, trains for all of them. If these
    training runs differ only in their warm start, one of them trains the pilot sessions for the others. It also
    trains the next two sessions for each run whose warm start trains these sessions like `previous`.

    Args:
        prepared: the scenarios of the runs, by path.
        states: states of the runs, by path; completed runs are not repeated.
    """
    completed = {path for path, state in (states or {}).items() if state is State.COMPLETED}
    plans = {path: ReusePlan(family=[path]) for path in prepared}
    for candidates in _candidates(prepared):
        families: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
        told: dict[Path, LearningIdentity] = {}
        for path, one in candidates.items():
            with suppress(EdgeflError):  # the run itself will raise this error
                if own := one.learning_identity(World(one.scenario, Streams(one.scenario.seed))):
                    told[path] = own
                    families[own.pilot][own.whole].append(path)
        for groups in families.values():
            family = [path for members in groups.values() for path in members]
            heads = []
            for members in groups.values():
                head = next((path for path in members if path in completed), members[0])
                heads.append(head)
                for path in members:
                    reuses = path != head
                    certain = math.inf if reuses and _alike(prepared[path], prepared[head]) else 0
                    plans[path] = ReusePlan(head if reuses else None, reuses, certain=certain, family=family)
                if len(members) > 1:
                    plans[head].lends = "every_session"
            # a completed run has no snapshots
            _share_sessions([head for head in heads if head not in completed], told, plans, prepared)
    return plans


def _share_sessions(
    heads: Sequence[Path],
    told: Mapping[Path, LearningIdentity],
    plans: Mapping[Path, ReusePlan],
    prepared: Mapping[Path, Prepared],
) -> None:
    """Let one of several runs that differ only in their warm start train the first sessions for all others."""
    if len(heads) < 2:
        return
    # runs without probes can reuse two sessions of a run that probes, but not vice versa
    first = max(heads, key=lambda head: (told[head].leads, told[head].leads and not told[head].plain))
    pilots = told[first].pilot_sessions
    others = [head for head in heads if head != first]
    takes_two = [told[first].leads and bool(told[head].plain) for head in others]
    every = plans[first].lends == "every_session"
    if not every:
        plans[first].lends = "after_two" if any(takes_two) else "after_pilot"
    for head, two in zip(others, takes_two, strict=True):
        plan = plans[head]
        plan.lender, plan.until = first, pilots + AS_PREVIOUS * two
        plan.snapshots = plan.until if every else 1 + two
        if _alike(prepared[head], prepared[first]):
            # the probe rounds of only one of the two runs take time, and the devices move on
            plan.certain = plan.until if told[first].plain else pilots


def _alike(one: Prepared, other: Prepared) -> bool:
    """Return whether the same devices take part in two runs that differ at most in their warm start.

    Other differences, such as a different selector or radio, may change which devices take part.
    """

    def decisive(run: Prepared) -> dict[str, Any]:
        learning = {**run.values["learning"], "warm_start": None}
        return {**run.values, "learning": learning, "name": "", "record": None}

    return decisive(one) == decisive(other)


def lent_after(run: Path) -> int:
    """Count the snapshots for other runs in a run's directory."""
    return sum(1 for _ in (run / LENT).glob("*.json"))


def _candidates(prepared: Mapping[Path, Prepared]) -> Iterator[dict[Path, Prepared]]:
    """Yield groups of runs that may share training, found by a quick comparison of seed and learning settings.

    A run that saves models during its rounds trains every round itself.
    """
    alike: dict[str, dict[Path, Prepared]] = defaultdict(dict)
    settings: dict[int, str] = {}
    for path, one in prepared.items():
        learning = one.scenario.learning
        if learning is None or one.scenario.record.follows_rounds:
            continue
        if id(learning) not in settings:  # the seeds of a case share their settings
            settings[id(learning)] = str({**one.values["learning"], "warm_start": None})
        alike[f"{one.scenario.seed} {settings[id(learning)]}"][path] = one
    yield from (group for group in alike.values() if len(group) > 1)
