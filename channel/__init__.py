"""Radio physics of an edge network, in NumPy and SciPy: no clock, no idea what the bits are for.

Linear SI units unless a name ends in `_db` or `_dbm`; arrays in, arrays out; random generators are arguments.
"""
