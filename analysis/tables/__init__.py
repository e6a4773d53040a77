"""Each report as text: one module per report."""

from edgefl.analysis.tables import (
    choosing,
    comparison,
    costs,
    drift,
    fairness,
    network,
    settings,
    sweep,
    theory,
)

__all__ = ["choosing", "comparison", "costs", "drift", "fairness", "network", "settings", "sweep", "theory"]
