"""Measure the CPU time of each test in a pytest plugin, and mark tests by these costs.

make costs                                              measures all tests and writes tests/costs.tsv
python -m pytest -p tests.tools.costs tests/theory      measures whole files again, and keeps other files' costs

A cost includes the processes that a test starts, but not the start of the fork server, which many tests share. A
shared fixture is part of the first test that uses it. Tests below LEAST_S are not in the file.
"""

import os
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COSTS = ROOT / "tests" / "costs.tsv"
GOLDEN = "tests/golden/"  # each case is a whole run; cases have no marks
LEAST_S = 0.05
# costs above which a test's cheapest case, and its further cases, run only at night
FIRST_S, FURTHER_S = 0.8, 0.1
SLOW_S = 0.05

_measured: dict[str, float] = {}
_BEGUN = pytest.StashKey[float]()


def read(file: Path = COSTS) -> dict[str, float]:
    """Return the costs in the file, by node id."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {node: float(cost) for cost, _, node in (line.partition("\t") for line in lines)}


def marks_of(
    nodes: Iterable[str], costs: Mapping[str, float], always: Collection[str] = ()
) -> dict[str, list[str]]:
    """Return the marks `further`, `slow` and `nightly` of each test; golden runs have none.

    All cases of a test but the cheapest are `further`. A test that is not in the file is cheap.

    Args:
        always: nodes that are never marked `nightly`.
    """
    cases = defaultdict(list)
    for node in nodes:
        cases[node.partition("[")[0]].append(node)
    found: dict[str, list[str]] = {}
    for test, same in cases.items():
        first = min(same, key=lambda node: costs.get(node, 0.0))
        for node in same:
            cost, further = costs.get(node, 0.0), node != first
            marks = {
                "further": further,
                "slow": cost > SLOW_S,
                "nightly": cost > (FURTHER_S if further else FIRST_S) and node not in always,
            }
            found[node] = [name for name, has in marks.items() if has and not test.startswith(GOLDEN)]
    return found


def cpu_s() -> float:
    """Return the CPU time in s of this process and its children, as far as the system reports it."""
    mine = os.times()
    return (
        mine.user + mine.system + mine.children_user + mine.children_system + sum(map(_of_child, _children()))
    )


def _children() -> list[str]:
    """Return the ids of this process's living children."""
    file = Path(f"/proc/self/task/{os.getpid()}/children")  # Linux
    return file.read_text().split() if file.exists() else []


def _of_child(process: str) -> float:
    """Return the CPU time of a child's own ended children; this counts commands forked by the fork server."""
    try:
        fields = Path("/proc", process, "stat").read_text().rpartition(")")[2].split()
    except OSError:  # the child ended meanwhile
        return 0.0
    return sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start to measure a test, including its fixtures."""
    item.stash[_BEGUN] = cpu_s()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store a test's cost in its last report, which a worker sends to the controller."""
    report = yield
    if call.when == "teardown":
        report.user_properties.append(("cpu_s", cpu_s() - item.stash[_BEGUN]))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect the costs."""
    if report.when == "teardown":
        _measured[report.nodeid] = dict(report.user_properties)["cpu_s"]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the file, unless a test failed."""
    if exitstatus or hasattr(session.config, "workerinput"):
        return
    files = {node.partition("::")[0] for node in _measured}
    kept = {
        node: cost
        for node, cost in read().items()
        if (file := node.partition("::")[0]) not in files and (ROOT / file).exists()
    }
    write(kept | _measured)


def write(costs: Mapping[str, float], file: Path = COSTS) -> None:
    """Write the costs of tests that are not cheap, sorted by node id."""
    lines = (f"{cost:.2f}\t{node}\n" for node, cost in sorted(costs.items()) if round(cost, 2) >= LEAST_S)
    file.write_text("".join(lines))
