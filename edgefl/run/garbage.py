"""Set the thresholds of Python's garbage collector, which finds cycles of unused objects."""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Arguments of gc.set_threshold: number of new objects that triggers a collection, and ratios for older generations.
USUAL = gc.get_threshold()  # Python's defaults are 700, 10 and 10
AT_START = (50_000, *USUAL[1:])
WHILE_A_RUN_GOES = (2_000, 10, 100)


@contextmanager
def seldom_at_start() -> Iterator[None]:
    """Make garbage collection rare in a command's process, and skip it at the end of the process.

    Everything that a command loads stays in memory until its process ends. By default Python scans these objects
    repeatedly while loading, and once more at the end, which wastes 0.8 s of CPU with PyTorch.
    """
    atexit.register(gc.freeze)
    gc.set_threshold(*AT_START)
    try:
        yield
    finally:
        gc.set_threshold(*USUAL)


@contextmanager
def seldom_while_a_run_goes() -> Iterator[None]:
    """Make garbage collection rarer during a run, unless the caller has made it rarer still or disabled it.

    With Python's thresholds, collection takes a tenth of the time of a run without training: transfers create many
    objects that need no collector. If collection were as rare as at a command's start, large tensors would remain.
    """
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(*map(max, USUAL if before == AT_START else before, WHILE_A_RUN_GOES))
    try:
        yield
    finally:
        gc.set_threshold(*before)
