"""What all tests need: signals as a terminal gives them."""

import signal

# a shell starts a job in the background with SIGINT ignored, and what it starts inherits that: tests interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
