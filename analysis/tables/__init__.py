"""Each report as text: one module per report."""

from analysis.tables import comparison, drift, network, settings, sweep

__all__ = ["comparison", "drift", "network", "settings", "sweep"]
