"""Studies: one base scenario in named variants, seeds and a grid of settings; every variant meets the same worlds.

`plan` reads a study file, `run` carries out what is still to be done of it in its directory.
"""

from edgefl.studies.asking import ask
from edgefl.studies.execution import run
from edgefl.studies.outcome import Failed, IncompleteStudy
from edgefl.studies.planning import Case, Plan, Run, load, plan
from edgefl.studies.settings import LONGEST_LABEL, Study

__all__ = [
    "LONGEST_LABEL",
    "Case",
    "Failed",
    "IncompleteStudy",
    "Plan",
    "Run",
    "Study",
    "ask",
    "load",
    "plan",
    "run",
]
