"""Studies: one base scenario in named variants, seeds and a grid of settings; every variant meets the same worlds.

`plan` reads a study file, `run` carries out what is still to be done of it in its directory.
"""

from edgefl.studies.adding_seeds import ask
from edgefl.studies.execution import run
from edgefl.studies.options import Failed, IncompleteStudy, StudyOptions
from edgefl.studies.planning import Run, StudyCase, StudyPlan, load, plan
from edgefl.studies.study_file import LONGEST_LABEL, Study

__all__ = [
    "LONGEST_LABEL",
    "Failed",
    "IncompleteStudy",
    "Run",
    "Study",
    "StudyCase",
    "StudyOptions",
    "StudyPlan",
    "ask",
    "load",
    "plan",
    "run",
]
