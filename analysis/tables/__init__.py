"""Each report as text: one module per report."""

from analysis.tables import comparison, drift, network, settings, sweep, theory

__all__ = ["comparison", "drift", "network", "settings", "sweep", "theory"]
