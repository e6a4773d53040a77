"""Reads run directories, and nothing else: tidy tables, the papers' metrics, comparisons and figures."""

from analysis import metrics
from analysis.comparison import Comparison, compare
from analysis.load import Runs, load_runs
from analysis.network import handover_figures

__all__ = ["Comparison", "Runs", "compare", "handover_figures", "load_runs", "metrics"]
