"""Test that measured costs decide what `make test` and `make quick` leave out."""

import ast
from pathlib import Path

import pytest

from tests.tools.costs import COSTS, FIRST_S, FURTHER_S, GOLDEN, LEAST_S, ROOT, SLOW_S, marks_of, read, write

FREE, CHEAP, DEAR = 0.0, SLOW_S, FIRST_S + 0.1


def test_every_test_in_the_file_exists() -> None:
    """Each test function in the file exists; `make costs` drops old cases, and renamed cases are considered cheap."""
    named: dict[str, set[str]] = {}
    for node in read():
        file, _, test = node.partition("[")[0].partition("::")
        named.setdefault(file, set()).add(test)
    for file, tests in named.items():
        defined = {
            n.name for n in ast.parse((ROOT / file).read_text()).body if isinstance(n, ast.FunctionDef)
        }
        assert tests <= defined, f"{file}: run `make costs`, or rename tests in {COSTS.name}"


def test_the_file_is_as_it_is_written(tmp_path: Path) -> None:
    write(read(), tmp_path / "again.tsv")
    assert (tmp_path / "again.tsv").read_text() == COSTS.read_text()
    write({"b.py::t[a\\tb]": 1.234, "a.py::t": LEAST_S, "c.py::t": LEAST_S / 2}, tmp_path / "new.tsv")
    assert (tmp_path / "new.tsv").read_text() == f"{LEAST_S:.2f}\ta.py::t\n1.23\tb.py::t[a\\tb]\n"


@pytest.mark.parametrize(
    ("costs", "first"),
    [((DEAR, CHEAP, FREE), 2), ((DEAR, CHEAP, CHEAP), 1), ((FREE, FREE, FREE), 0), ((DEAR, DEAR, DEAR), 0)],
)
def test_the_cheapest_case_of_a_test_is_its_first(costs: tuple[float, ...], first: int) -> None:
    nodes = [f"a.py::t[{case}]" for case in range(len(costs))]
    marks = marks_of(nodes, {node: cost for node, cost in zip(nodes, costs, strict=True) if cost})
    assert [node for node in nodes if "further" not in marks[node]] == [nodes[first]]


def test_further_cases_are_left_to_the_night_sooner() -> None:
    nodes = ["a.py::t[0]", "a.py::t[1]", "a.py::other", "a.py::dear"]
    between = (FURTHER_S + FIRST_S) / 2
    marks = marks_of(nodes, {nodes[0]: between, nodes[1]: between, nodes[2]: CHEAP, nodes[3]: DEAR})
    assert list(marks.values()) == [["slow"], ["further", "slow", "nightly"], [], ["slow", "nightly"]]


def test_what_always_runs_is_not_left_to_the_night() -> None:
    nodes = ["a.py::t[0]", "a.py::t[1]"]
    marks = marks_of(nodes, dict.fromkeys(nodes, DEAR), always=nodes)
    assert list(marks.values()) == [["slow"], ["further", "slow"]]


def test_golden_runs_are_never_left_out() -> None:
    nodes = [f"{GOLDEN}test_a.py::t[{case}]" for case in range(3)]
    assert set(map(tuple, marks_of(nodes, dict.fromkeys(nodes, DEAR)).values())) == {()}
