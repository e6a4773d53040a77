"""Reports on runs from Python: `edgefl.compare`, `sweep` and `costs`."""

from edgefl import analysis

compare, costs, sweep = analysis.compare, analysis.report_costs, analysis.sweep
