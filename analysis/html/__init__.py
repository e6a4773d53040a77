"""Write a run or study as one self-contained HTML file with `write_report`."""

from edgefl.analysis.html.page import report, write_report

__all__ = ["report", "write_report"]
