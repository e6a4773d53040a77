"""edgefl: a wireless edge network co-simulator for federated learning.

scenario = edgefl.load_scenario("scenarios/quickstart.yaml")
run_directory = edgefl.simulate(scenario, out="runs/first")
"""

from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeflError

if TYPE_CHECKING:
    from edgefl.resuming import resume
    from edgefl.scenario import Scenario
    from edgefl.scenario import load as load_scenario
    from edgefl.simulation import simulate
    from edgefl.world_record import record

__version__ = "0.1.0"
__all__ = ["EdgeflError", "Scenario", "__version__", "load_scenario", "record", "resume", "simulate"]

# Imported when first used: PyTorch takes a second that `edgefl --help` need not spend.
_LAZY = {
    "Scenario": ("edgefl.scenario", "Scenario"),
    "load_scenario": ("edgefl.scenario", "load"),
    "record": ("edgefl.world_record", "record"),
    "resume": ("edgefl.resuming", "resume"),
    "simulate": ("edgefl.simulation", "simulate"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'edgefl' has no attribute '{name}'")
    import importlib

    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
