"""edgefl: a wireless edge co-simulator for federated learning.

import edgefl

scenario = edgefl.load_scenario("scenarios/quickstart.yaml")      # or a dict with the same keys
results = edgefl.simulate(scenario.with_(seed=7, learning__local__lr=0.01), out="runs/first")
results.rounds                                                     # a pandas data frame; devices, sessions, ...

runs = edgefl.study(scenario, {"narrow": {"radio.bandwidth_hz": 2e7}, "wide": None}, seeds=[1, 2, 3])
edgefl.compare(runs).table
"""

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeflError, in_python
from edgefl.version import __version__

if TYPE_CHECKING:
    from edgefl.commands.python_look import describe, preview, report, validate
    from edgefl.commands.python_reports import compare, costs, sweep
    from edgefl.commands.python_study import study
    from edgefl.run.api import resume, simulate
    from edgefl.run.results import Results, StudyResults
    from edgefl.run.trained_models import TrainedModule, load_model
    from edgefl.run.world_record import record
    from edgefl.scenario.scenario import Scenario
    from edgefl.scenario.scenario import load as load_scenario

__all__ = [
    "EdgeflError",
    "Results",
    "Scenario",
    "StudyResults",
    "TrainedModule",
    "__version__",
    "compare",
    "costs",
    "describe",
    "load_model",
    "load_scenario",
    "preview",
    "record",
    "report",
    "resume",
    "simulate",
    "study",
    "sweep",
    "validate",
]

# Names are imported on first use, so that `edgefl --help` does not wait for PyTorch.
_LAZY = {
    "commands.python_look": ("describe", "preview", "report", "validate"),
    "run.api": ("resume", "simulate"),
    "run.results": ("Results", "StudyResults"),
    "run.trained_models": ("TrainedModule", "load_model"),
    "run.world_record": ("record",),
    "scenario.scenario": ("Scenario", "load_scenario"),
    "commands.python_reports": ("compare", "costs", "sweep"),
    "commands.python_study": ("study",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names:
            found = getattr(import_module(f"edgefl.{module}"), name.replace("load_scenario", "load"))
            globals()[name] = in_python(found, name) if isinstance(found, FunctionType) else found
            return globals()[name]
    raise AttributeError(f"module 'edgefl' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
