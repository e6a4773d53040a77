"""Reads run directories, and nothing else: tidy tables, the papers' metrics, comparisons and figures."""

from analysis import metrics
from analysis.comparison import compare
from analysis.costs_report import report_costs
from analysis.load import Runs, load_runs, load_settings
from analysis.network import handover_figures
from analysis.network_report import report_network
from analysis.results import Comparison, SettingsTable
from analysis.settings import compare_settings
from analysis.sweep import sweep
from analysis.theory_report import report_theory

__all__ = [
    "Comparison",
    "Runs",
    "SettingsTable",
    "compare",
    "compare_settings",
    "handover_figures",
    "load_runs",
    "load_settings",
    "metrics",
    "report_costs",
    "report_network",
    "report_theory",
    "sweep",
]
