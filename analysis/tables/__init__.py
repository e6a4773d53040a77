"""Each report as text: one module per report."""

from analysis.tables import comparison, costs, drift, fairness, network, settings, sweep, theory

__all__ = ["comparison", "costs", "drift", "fairness", "network", "settings", "sweep", "theory"]
