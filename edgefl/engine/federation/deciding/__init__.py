"""Choosing participants and their resources: what deciders see and remember, and what their choices cost."""
