"""Figures of the reports, each in a module of its own, with shared lines, bars and colours."""
