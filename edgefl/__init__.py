"""edgefl: a wireless edge network co-simulator for federated learning.

import edgefl

scenario = edgefl.load_scenario("scenarios/quickstart.yaml")      # or a dict of the same keys
results = edgefl.simulate(scenario.with_(seed=7, learning__lr=0.01), out="runs/first")
results.rounds                                                     # a pandas data frame; devices, sessions, ...

runs = edgefl.study(scenario, {"narrow": {"radio.bandwidth_hz": 2e7}, "wide": None}, seeds=[1, 2, 3])
edgefl.compare(runs).table
"""

from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeflError

if TYPE_CHECKING:
    from edgefl.api import compare, study
    from edgefl.results import Results, StudyResults
    from edgefl.resuming import resume
    from edgefl.scenario import Scenario
    from edgefl.scenario import load as load_scenario
    from edgefl.simulation import simulate
    from edgefl.world_record import Recording, record

__version__ = "0.1.0"
__all__ = [
    "EdgeflError",
    "Recording",
    "Results",
    "Scenario",
    "StudyResults",
    "__version__",
    "compare",
    "load_scenario",
    "record",
    "resume",
    "simulate",
    "study",
]

# Imported when first used: PyTorch takes a second that `edgefl --help` need not spend.
_LAZY = {
    "Recording": ("edgefl.world_record", "Recording"),
    "Results": ("edgefl.results", "Results"),
    "Scenario": ("edgefl.scenario", "Scenario"),
    "StudyResults": ("edgefl.results", "StudyResults"),
    "compare": ("edgefl.api", "compare"),
    "load_scenario": ("edgefl.scenario", "load"),
    "record": ("edgefl.world_record", "record"),
    "resume": ("edgefl.resuming", "resume"),
    "simulate": ("edgefl.simulation", "simulate"),
    "study": ("edgefl.api", "study"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'edgefl' has no attribute '{name}'")
    import importlib

    from edgefl import shipped

    shipped.require_own(("channel",))
    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
