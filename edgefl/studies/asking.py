"""A study's question: seeds are added, to both variants on the same worlds, until it is answered or has cost enough.

How many seeds come next depends on the runs alone: however often a study is left and gone on with, on however many
processors, the same seeds are run in the end.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from edgefl.studies.planning import Plan, Run, plan

Setting = tuple[tuple[str, str], ...]  # (axis, label) of the grid; () without one
Seeds = Mapping[Setting, Sequence[int]]


def ask(
    first: Plan,
    carry_out: Callable[[Plan], Path],
    look: Callable[[Path, Seeds], Mapping[Setting, int]],
) -> Path:
    """Carry out a study, and then seed after seed for as long as its question wants more.

    Args:
        first: the study, with all of its own seeds and variants.
        carry_out: does what is still to be done of the runs, and returns the study's directory.
        look: told the directory and the seeds of each setting, says how many seeds each wants; those that it has:
            no more.

    Returns:
        The study's directory.
    """
    own = list(dict.fromkeys(run.scenario.seed for run in first.runs))
    seeds: dict[Setting, list[int]] = {setting_of(run): list(own) for run in first.runs}
    path = carry_out(first)
    while True:
        wanted = look(path, seeds)
        added = {setting: _next(seeds[setting], count) for setting, count in wanted.items()}
        if not any(added.values()):
            return path
        path = carry_out(pairs(first, added))
        for setting, more in added.items():
            seeds[setting] += more


def setting_of(run: Run) -> Setting:
    """Return the setting of a run as the analysis names it."""
    return tuple(run.member.setting.items())


def _next(seeds: Sequence[int], count: int) -> list[int]:
    """Return the seeds that make so many: those after the largest."""
    largest = max(seeds)
    return list(range(largest + 1, largest + 1 + count - len(seeds)))


def pairs(first: Plan, added: Seeds) -> Plan:
    """Plan the runs of the question's two variants with these seeds."""
    assert first.question is not None
    both = first.question.variants
    whole = plan(first.file, sorted({seed for seeds in added.values() for seed in seeds}))
    runs = [
        run
        for run in whole.runs
        if run.member.variant in both and run.scenario.seed in added.get(setting_of(run), ())
    ]
    return replace(whole, runs=runs)
