"""Set up all tests: handle signals, use one thread, let scenarios load test classes, and mark tests by cost."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tools import costs

# a shell makes a background job and its children ignore SIGINT; tests need this signal to interrupt processes
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# an example may take long on a loaded machine
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# one thread, as in simulations: two workers with two threads each would compete for two cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

# scenarios in tests name classes in tests; tests/unit/config/test_outside.py revokes this permission
os.environ["EDGEFL_ALLOW_CODE"] = "1"


# loaded modules and collected tests are never freed; scanning them again and again costs each worker over a second
gc.disable()

EXAMPLES = Path(__file__).parents[1] / "examples"
OWN_PARTS = ("my_algorithm", "my_mobility", "my_model")


@pytest.hookimpl(tryfirst=True)  # marks must be set before -m selects tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark, by their measured cost, the tests that `make quick` and `make test` leave out."""
    always = {item.nodeid for item in items if item.get_closest_marker("always")}
    marks = costs.marks_of([item.nodeid for item in items], costs.read(), always)
    for item in items:
        for name in marks[item.nodeid]:
            item.add_marker(name)


def pytest_runtest_teardown() -> None:
    """Unload the copied examples of `edgefl new`, as the next test may import copies from another folder."""
    for name in OWN_PARTS:
        sys.modules.pop(name, None)
    if str(EXAMPLES) in sys.path:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip drawing figures in studies whose figures are not tested; tests/unit/analysis tests figures."""
    from tests.tools.figures import leave_figures_empty

    leave_figures_empty(monkeypatch)


def pytest_collection_finish() -> None:
    """Exclude all modules and tests that have been loaded from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.enable()
