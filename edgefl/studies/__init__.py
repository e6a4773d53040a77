"""Studies, which run a base scenario in named variants, with seeds and a grid of settings, in the same worlds.

`plan` reads a study file; `run` executes a plan's remaining runs in the study's directory.
"""

from edgefl.studies.adding_seeds import ask
from edgefl.studies.execution import run
from edgefl.studies.options import Failed, IncompleteStudy, StudyOptions
from edgefl.studies.planning import Run, StudyPlan, plan
from edgefl.studies.study_file import LONGEST_LABEL, Study

__all__ = [
    "LONGEST_LABEL",
    "Failed",
    "IncompleteStudy",
    "Run",
    "Study",
    "StudyOptions",
    "StudyPlan",
    "ask",
    "plan",
    "run",
]
