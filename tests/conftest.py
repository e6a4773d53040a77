"""Setup of all tests: signals as in a terminal, one thread, permission to run components; marks by cost."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.tools import costs

# a shell starts a job in the background with SIGINT ignored, and what it starts inherits that: tests interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# as in simulations; two workers on two cores with two threads each wait for one another most of the time
os.environ.setdefault("OMP_NUM_THREADS", "1")

# scenarios of tests name classes of tests; tests/unit/config/test_outside.py takes the leave away
os.environ["EDGEFL_ALLOW_CODE"] = "1"


# what is loaded and collected stays; looked through again and again it costs a worker more than a second
gc.disable()

EXAMPLES = Path(__file__).parents[1] / "examples"
OWN_PARTS = ("my_algorithm", "my_mobility", "my_model")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make quick` and `make test` leave out, by what each test has cost."""
    always = {item.nodeid for item in items if item.get_closest_marker("always")}
    marks = costs.marks_of([item.nodeid for item in items], costs.read(), always)
    for item in items:
        for name in marks[item.nodeid]:
            item.add_marker(name)


def pytest_runtest_teardown() -> None:
    """Forget the examples that `edgefl new` copies: the next test may have copies of them in a folder."""
    for name in OWN_PARTS:
        sys.modules.pop(name, None)
    if str(EXAMPLES) in sys.path:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """For studies whose figures no test inspects; tests/unit/analysis inspects them."""
    from tests.tools.figures import leave_figures_empty

    leave_figures_empty(monkeypatch)


def pytest_collection_finish() -> None:
    """Keep all modules and tests that are loaded by now out of the garbage collector's rounds."""
    gc.collect()
    gc.freeze()
    gc.enable()
