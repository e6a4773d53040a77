"""A study's question, put to the runs that there are."""

from pathlib import Path

from edgefl.errors import EdgeflError
from edgefl.studies.asking import Seeds, Setting
from edgefl.studies.planning import Plan


def look(plan: Plan, path: Path, seeds: Seeds) -> dict[Setting, int]:
    """Answer a study's question from these seeds, write the answer, and say how many seeds each setting wants.

    Raises:
        EdgeflError: there is nothing to answer it from.
    """
    from analysis.question import (
        Question,
        answer,
        write,
    )  # with pandas and matplotlib: when there is a question

    asked = plan.question
    assert asked is not None
    try:
        found = answer(path, Question(**asked.model_dump()), seeds, plan.runs[0].member.reference)
        write(found, path)
    except ValueError as error:
        raise EdgeflError(f"question: {error}") from error
    return found.wanted()
