"""A run or study as one self-contained HTML file: `write_report`."""

from edgefl.analysis.html.page import report, write_report

__all__ = ["report", "write_report"]
