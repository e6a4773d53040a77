"""Reads run directories, and nothing else: tidy tables, the papers' metrics, comparisons and figures."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgefl.analysis import metrics
    from edgefl.analysis.choosing import report_choice
    from edgefl.analysis.comparison import compare
    from edgefl.analysis.costs import report_costs
    from edgefl.analysis.fairness import report_fairness
    from edgefl.analysis.key_sweep import sweep
    from edgefl.analysis.load import Runs, load_runs, load_settings
    from edgefl.analysis.network import handover_figures, report_network
    from edgefl.analysis.report import Report
    from edgefl.analysis.results import Comparison, SettingsTable
    from edgefl.analysis.settings import compare_settings
    from edgefl.analysis.theory import report_theory

__all__ = [
    "Comparison",
    "Report",
    "Runs",
    "SettingsTable",
    "compare",
    "compare_settings",
    "handover_figures",
    "load_runs",
    "load_settings",
    "metrics",
    "report_choice",
    "report_costs",
    "report_fairness",
    "report_network",
    "report_theory",
    "sweep",
]
# Imported when first used: the command line shows its help without pandas.
_LAZY = {
    "choosing": ("report_choice",),
    "comparison": ("compare",),
    "costs": ("report_costs",),
    "fairness": ("report_fairness",),
    "key_sweep": ("sweep",),
    "load": ("Runs", "load_runs", "load_settings"),
    "network": ("handover_figures", "report_network"),
    "report": ("Report",),
    "results": ("Comparison", "SettingsTable"),
    "settings": ("compare_settings",),
    "theory": ("report_theory",),
}


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module("edgefl.analysis.metrics")
    for module, names in _LAZY.items():
        if name in names:
            return getattr(import_module(f"edgefl.analysis.{module}"), name)
    raise AttributeError(f"module 'edgefl.analysis' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
