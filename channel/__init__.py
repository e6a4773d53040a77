"""Radio physics of an edge network in NumPy and SciPy, without a clock, and independent of what the bits mean.

Linear SI units unless a name ends in `_db` or `_dbm`; arrays in, arrays out; random generators are arguments.
"""
