"""Add seeds to both variants of a study's question until it is answered, or its budget is spent.

How many seeds come next depends on the runs alone: however often a study is left and gone on with, on however many
processors, the same seeds are run in the end.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.studies.planning import Run, StudyPlan, plan

Setting = tuple[tuple[str, str], ...]  # (axis, label) of the grid; () without one
Seeds = Mapping[Setting, Sequence[int]]


def ask(
    first: StudyPlan,
    directory: Path,
    carry_out: Callable[[StudyPlan], Any],
    look: Callable[[Path, Seeds], Mapping[Setting, int]],
) -> None:
    """Carry out seed after seed of a study for as long as its question needs more.

    Args:
        first: the study, with all of its own seeds and variants, which are carried out.
        directory: of the study.
        carry_out: does what is still to be done of the runs.
        look: told the directory and the seeds of each setting, says how many seeds each needs; those that it has:
            no more.
    """
    own = list(dict.fromkeys(run.scenario.seed for run in first.runs))
    seeds: dict[Setting, list[int]] = {setting_of(run): list(own) for run in first.runs}
    while True:
        needed = look(directory, seeds)
        added = {setting: _next(seeds[setting], count) for setting, count in needed.items()}
        if not any(added.values()):
            return
        carry_out(pairs(first, added))
        for setting, more in added.items():
            seeds[setting] += more


def answered(plan: StudyPlan, directory: Path, seeds: Seeds) -> dict[Setting, int]:
    """Answer a study's question from the seeds run so far, write the answer, and say how many each setting needs.

    Raises:
        EdgeflError: there is nothing to answer it from.
    """
    from edgefl.analysis.reports import (
        question as analysis,  # with pandas and matplotlib: when there is a question
    )

    assert plan.question is not None
    question = analysis.Question(**plan.question.model_dump())
    try:
        answer = analysis.answer(directory, question, seeds, plan.runs[0].member.reference)
        analysis.write(answer, directory)
    except ValueError as error:
        raise EdgeflError(f"question: {error}") from error
    return answer.wanted()


def setting_of(run: Run) -> Setting:
    """Return the setting of a run as the analysis names it."""
    return tuple(run.member.setting.items())


def pairs(first: StudyPlan, added: Seeds) -> StudyPlan:
    """Plan the runs of the question's two variants with the added seeds."""
    assert first.question is not None
    both = first.question.variants
    seeds = sorted({seed for seeds in added.values() for seed in seeds})
    whole = plan(first.file, seeds, first.base)
    runs = [
        run
        for run in whole.runs
        if run.member.variant in both and run.scenario.seed in added.get(setting_of(run), ())
    ]
    return replace(whole, runs=runs)


def _next(seeds: Sequence[int], count: int) -> list[int]:
    """Return the next seeds after the largest, until there are `count`."""
    largest = max(seeds)
    return list(range(largest + 1, largest + 1 + count - len(seeds)))
