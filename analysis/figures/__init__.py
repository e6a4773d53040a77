"""Figures of the reports: one module per report, with shared lines, bars and colours."""
