"""Write a run or study as one self-contained HTML file with `write_report`."""

from edgefl.analysis.html.page import page_to_write, report, write_report

__all__ = ["page_to_write", "report", "write_report"]
