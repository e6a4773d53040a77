"""Read run directories into tidy tables; compute the papers' metrics; draw comparisons and figures."""

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgefl.analysis.measures import metrics
    from edgefl.analysis.measures.energy import energy_by_class
    from edgefl.analysis.measures.results import Comparison, SettingsTable
    from edgefl.analysis.page.report import Report
    from edgefl.analysis.reports.choosing import report_choice
    from edgefl.analysis.reports.comparison import compare
    from edgefl.analysis.reports.costs import report_costs
    from edgefl.analysis.reports.fairness import report_fairness
    from edgefl.analysis.reports.network import handover_figures, report_network
    from edgefl.analysis.reports.settings import compare_settings
    from edgefl.analysis.reports.sweep import sweep
    from edgefl.analysis.reports.theory import report_theory
    from edgefl.analysis.runs.load import Runs, load_runs, load_settings

__all__ = [
    "Comparison",
    "Report",
    "Runs",
    "SettingsTable",
    "compare",
    "compare_settings",
    "energy_by_class",
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
# Imported on first use: the command line shows its help without pandas.
_LAZY = {
    "reports.choosing": ("report_choice",),
    "reports.comparison": ("compare",),
    "reports.costs": ("report_costs",),
    "reports.fairness": ("report_fairness",),
    "reports.sweep": ("sweep",),
    "runs.load": ("Runs", "load_runs", "load_settings"),
    "reports.network": ("handover_figures", "report_network"),
    "page.report": ("Report",),
    "measures.energy": ("energy_by_class",),
    "measures.results": ("Comparison", "SettingsTable"),
    "reports.settings": ("compare_settings",),
    "reports.theory": ("report_theory",),
}


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module("edgefl.analysis.measures.metrics")
    for module, names in _LAZY.items():
        if name in names:
            from edgefl.analysis.page.arguments import naming_arguments

            found = getattr(import_module(f"edgefl.analysis.{module}"), name)
            globals()[name] = naming_arguments(found) if isinstance(found, FunctionType) else found
            return globals()[name]
    raise AttributeError(f"module 'edgefl.analysis' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
