"""Run Flower's strategies and ClientApps in edgefl: `pip install 'edgefl-cosim[flower]'`.

A scenario can use any Flower strategy and ClientApp; the network determines which devices are present and take part,
and which updates arrive when:

    edgefl.simulate(scenario, learner=flower.learner(client_app, strategy, initial=arrays))

Any Flower strategy can warm-start recurring sessions, in edgefl or in Flower's own simulation:

    strategy = flower.warm_started(FedAvg(), rounds=10)

No other part of edgefl imports Flower.
"""

from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeflError

if TYPE_CHECKING:
    from edgefl.flower.running import learner
    from edgefl.flower.warm import warm_started

__all__ = ["learner", "warm_started"]

_HOME = {"learner": "edgefl.flower.running", "warm_started": "edgefl.flower.warm"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'edgefl.flower' has no attribute '{name}'")
    import importlib

    try:
        import flwr  # noqa: F401
    except ImportError as error:
        raise EdgeflError("Flower is not installed: pip install 'edgefl-cosim[flower]'") from error
    exported = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = exported
    return exported


def __dir__() -> list[str]:
    return __all__
