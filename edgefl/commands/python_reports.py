"""Report on runs from Python, with `edgefl.compare`, `sweep` and `costs`."""

from edgefl.analysis import compare as compare
from edgefl.analysis import report_costs
from edgefl.analysis import sweep as sweep

costs = report_costs
