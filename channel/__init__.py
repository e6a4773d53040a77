"""Radio physics of an edge network in NumPy and SciPy, without a clock, and independent of what the bits mean.

Units are linear SI units unless a name ends in `_db` or `_dbm`. Arrays and random generators are arguments.
"""
