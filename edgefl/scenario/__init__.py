"""The scenario, which describes a run, and the physical world that it describes."""
