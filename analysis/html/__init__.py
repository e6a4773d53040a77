"""A run or study as one HTML file that needs nothing else: `write_report`."""

from edgefl.analysis.html.page import report, write_report

__all__ = ["report", "write_report"]
