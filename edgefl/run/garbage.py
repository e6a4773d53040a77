"""How often Python looks for garbage: for cycles of objects that nobody else refers to."""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

# New objects after which the youngest are looked at, and how often those that stayed are.
USUAL = gc.get_threshold()  # 700, 10 and 10
AT_START = (50_000, *USUAL[1:])
WHILE_A_RUN_GOES = (2_000, 10, 100)


@contextmanager
def seldom_at_start() -> Iterator[None]:
    """Look seldom in the process of a command, and not at all when it ends.

    All that a command loads stays until its process ends. Python would go through it again and again while it loads,
    and once more at the end: with PyTorch 0.8 s of CPU, for nothing.
    """
    atexit.register(gc.freeze)
    gc.set_threshold(*AT_START)
    try:
        yield
    finally:
        gc.set_threshold(*USUAL)


@contextmanager
def seldom_while_a_run_goes() -> Iterator[None]:
    """Look less often than usual; whoever has set it to be seldomer still, or never, is left alone.

    A tenth of a run without training went into it: its transfers make objects by the million, which go by themselves.
    As seldom as at a command's start it must not be: large tensors in cycles would stay.
    """
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(*map(max, USUAL if before == AT_START else before, WHILE_A_RUN_GOES))
    try:
        yield
    finally:
        gc.set_threshold(*before)
