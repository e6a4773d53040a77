"""Add seeds to both variants of a study's question until the question is answered, or its budget is spent.

The number of added seeds depends only on the runs' results. However often a study is interrupted and continued, and
on any number of processors, it ends with the same seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.studies.planning import StudyPlan, plan

Setting = tuple[tuple[str, str], ...]
Seeds = Mapping[Setting, Sequence[int]]


def ask(
    first: StudyPlan,
    directory: Path,
    carry_out: Callable[[StudyPlan], Any],
    look: Callable[[Path, Seeds], Mapping[Setting, int]],
) -> None:
    """Run additional seeds of a study as long as its question needs them.

    Args:
        first: the plan of the study with all seeds and variants of its file; all runs of this plan are complete.
        directory: the study's directory.
        carry_out: function that executes the remaining runs of a plan.
        look: returns how many seeds each setting needs, given the directory and the seeds of each setting; if a
            setting needs no more seeds, this is its current number.
    """
    own = list(dict.fromkeys(run.scenario.seed for run in first.runs))
    seeds: dict[Setting, list[int]] = {run.setting: list(own) for run in first.runs}
    while True:
        needed = look(directory, seeds)
        added = {setting: _next(seeds[setting], count) for setting, count in needed.items()}
        if not any(added.values()):
            return
        carry_out(pairs(first, added))
        for setting, more in added.items():
            seeds[setting] += more


def answered(plan: StudyPlan, directory: Path, seeds: Seeds) -> dict[Setting, int]:
    """Answer a study's question from the seeds so far; write the answer, and return how many seeds settings need."""
    from edgefl.analysis.reports import (
        question as analysis,  # this import loads pandas and matplotlib, which only a question needs
    )

    assert plan.question is not None
    question = analysis.Question(**plan.question.model_dump())
    try:
        answer = analysis.answer(directory, question, seeds, plan.runs[0].member.reference)
        analysis.write(answer, directory)
    except ValueError as error:
        raise EdgeflError(f"question: {error}") from error
    return answer.wanted()


def pairs(first: StudyPlan, added: Seeds) -> StudyPlan:
    """Plan the runs of the question's two variants with the added seeds."""
    assert first.question is not None
    both = first.question.variants
    seeds = sorted({seed for seeds in added.values() for seed in seeds})
    whole = plan(first.file, seeds, first.base)
    runs = [
        run
        for run in whole.runs
        if run.member.variant in both and run.scenario.seed in added.get(run.setting, ())
    ]
    return replace(whole, runs=runs)


def _next(seeds: Sequence[int], count: int) -> list[int]:
    """Return additional seeds, numbered after the largest present seed, that raise the number of seeds to `count`."""
    largest = max(seeds)
    return list(range(largest + 1, largest + 1 + count - len(seeds)))
