"""Positions of sites and devices, serving cells, and handover."""
