"""How often Python looks for objects that hold one another, while a run's clock goes."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# New objects after which the youngest are looked at, and how often those that stayed are: 700, 10 and 10 in Python.
# A tenth of a run without training went into it: its transfers make objects by the million, which go by themselves.
THRESHOLDS = (2_000, 10, 100)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Look less often; whoever has set it to be seldomer still, or never, is left alone."""
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(*map(max, before, THRESHOLDS))
    try:
        yield
    finally:
        gc.set_threshold(*before)
