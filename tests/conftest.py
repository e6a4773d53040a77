"""What all tests need: signals as in a terminal, one thread, leave to run their components, less to collect."""

import gc
import os
import signal

# a shell starts a job in the background with SIGINT ignored, and what it starts inherits that: tests interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# as in simulations; two workers on two cores with two threads each wait for one another most of the time
os.environ.setdefault("OMP_NUM_THREADS", "1")

# scenarios of tests name classes of tests; tests/unit/config/test_outside.py takes the leave away
os.environ["EDGEFL_ALLOW_CODE"] = "1"


def pytest_collection_finish() -> None:
    """Keep all modules and tests that are loaded by now out of the garbage collector's rounds."""
    gc.collect()
    gc.freeze()
