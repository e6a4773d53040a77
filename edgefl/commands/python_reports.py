"""Reports on runs from Python: `edgefl.compare`, `sweep` and `costs`."""

from edgefl.analysis import compare, sweep
from edgefl.analysis import report_costs as costs

__all__ = ["compare", "costs", "sweep"]
