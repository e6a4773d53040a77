"""Each report as text: one module per report."""

from analysis.tables import comparison, network, settings

__all__ = ["comparison", "network", "settings"]
