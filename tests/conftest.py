"""What all tests need: signals as a terminal gives them, and leave to run the tests' own components."""

import os
import signal

# a shell starts a job in the background with SIGINT ignored, and what it starts inherits that: tests interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# scenarios of tests name classes of tests; tests/unit/test_outside.py takes the leave away
os.environ["EDGEFL_ALLOW_CODE"] = "1"
