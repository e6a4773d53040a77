"""edgefl: a wireless edge co-simulator for federated learning.

import edgefl

scenario = edgefl.load_scenario("scenarios/quickstart.yaml")      # or a dict with the same keys
results = edgefl.simulate(scenario.with_(seed=7, learning__local__lr=0.01), out="runs/first")
results.rounds                                                     # a pandas data frame; devices, sessions, ...

runs = edgefl.study(scenario, {"narrow": {"radio.bandwidth_hz": 2e7}, "wide": None}, seeds=[1, 2, 3])
edgefl.compare(runs).table
"""

from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeflError
from edgefl.version import __version__

if TYPE_CHECKING:
    from edgefl.run.results import Results, StudyResults
    from edgefl.run.resuming import resume
    from edgefl.run.simulation import simulate
    from edgefl.run.trained_models import TrainedModule, load_model
    from edgefl.run.world_record import Recording, record
    from edgefl.scenario.scenario import Scenario
    from edgefl.scenario.scenario import load as load_scenario
    from edgefl.studies.api import compare, study

__all__ = [
    "EdgeflError",
    "Recording",
    "Results",
    "Scenario",
    "StudyResults",
    "TrainedModule",
    "__version__",
    "compare",
    "load_model",
    "load_scenario",
    "record",
    "resume",
    "simulate",
    "study",
]

# Imported on first use: `edgefl --help` need not wait for PyTorch.
_LAZY = {
    "Recording": ("edgefl.run.world_record", "Recording"),
    "Results": ("edgefl.run.results", "Results"),
    "Scenario": ("edgefl.scenario.scenario", "Scenario"),
    "StudyResults": ("edgefl.run.results", "StudyResults"),
    "TrainedModule": ("edgefl.run.trained_models", "TrainedModule"),
    "compare": ("edgefl.studies.api", "compare"),
    "load_model": ("edgefl.run.trained_models", "load_model"),
    "load_scenario": ("edgefl.scenario.scenario", "load"),
    "record": ("edgefl.run.world_record", "record"),
    "resume": ("edgefl.run.resuming", "resume"),
    "simulate": ("edgefl.run.simulation", "simulate"),
    "study": ("edgefl.studies.api", "study"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'edgefl' has no attribute '{name}'")
    import importlib

    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
