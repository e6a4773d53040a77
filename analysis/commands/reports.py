"""The commands that print a report on all runs they are given, in every setting."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.analysis.commands.options import Folders, Names, Out, Partial, load

if TYPE_CHECKING:
    from edgefl.analysis.page.report import Report
    from edgefl.analysis.runs.load import Runs


def _command(report: "Callable[[Runs, Path | None], Report]") -> Callable[..., None]:
    """Make a command that loads runs and prints the report on them; name and help are the function's."""

    def command(
        runs: Folders,
        partial: Partial = False,
        names: Names = None,
        out: Out = None,
    ) -> None:
        report(load(runs, names, partial, every_setting=True), out).print()

    command.__name__, command.__doc__ = report.__name__, report.__doc__
    return command


@_command
def network(runs: "Runs", out: Path | None) -> "Report":
    """Count handovers, ping-pong, interruptions, wasted bits and joules.

    Examples:

        edgefl network runs/handover
    """
    from edgefl.analysis.reports.network import report_network

    return report_network(runs, out=out)


@_command
def fairness(runs: "Runs", out: Path | None) -> "Report":
    """Compare devices' scores: quantiles, the worst tenth, gaps between cells and classes of devices.

    It needs runs with learning.tested_on: devices and learning.scores_every.

    Examples:

        edgefl fairness runs/study
    """
    from edgefl.analysis.reports.fairness import report_fairness

    return report_fairness(runs, out=out)


@_command
def theory(runs: "Runs", out: Path | None) -> "Report":
    """Compare the bound of the journal paper's Theorem 1, term by term, with the gradients of a run.

    Constants are estimated from the run, and the step-size limit with them.

    Examples:

        edgefl theory runs/study
    """
    from edgefl.analysis.reports.theory import report_theory

    return report_theory(runs, out=out)


@_command
def costs(runs: "Runs", out: Path | None) -> "Report":
    """Say where joules and seconds went; epochs, transmissions and storage of adaptation.

    Examples:

        edgefl costs runs/study
    """
    from edgefl.analysis.reports.costs import report_costs

    return report_costs(runs, out=out)
