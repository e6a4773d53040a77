"""How often Python looks for garbage in a command's process: cycles of objects that nobody else refers to.

All that a command loads stays until its process ends. Python would go through it again and again while it loads, and
once more at the end: with PyTorch 0.8 s of CPU, for nothing.
"""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

USUAL = gc.get_threshold()
AT_START = 50_000  # objects more than when it last looked; usually 700


@contextmanager
def seldom_looked_for() -> Iterator[None]:
    """Look for it seldom while a command begins, until `look_as_usual`, and not at all when the process ends."""
    atexit.register(gc.freeze)
    gc.set_threshold(AT_START, *USUAL[1:])
    try:
        yield
    finally:
        gc.set_threshold(*USUAL)


def look_as_usual() -> None:
    """Look for it as often as usual, now that work begins that may leave large tensors in cycles."""
    gc.set_threshold(*USUAL)
