"""Test that two people can maintain the program, as measured by its lines, public names and lengths of files.

The limits equal the current counts, so a commit that lowers a count lowers its limit.
"""

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.always  # never marked `nightly`

ROOT = Path(__file__).parents[2]
PROGRAM = ("edgefl", "channel", "analysis")
# tools that test the tests, and tables of faults, are not counted
NO_TESTS = ("tests/tools/", "tests/faults/")
MOST_LINES, MOST_TEST_LINES, MOST_PUBLIC_NAMES, MOST_LINES_OF_A_FILE = 84_968, 65_517, 1_724, 350
MOST_LINES_OF_A_FUNCTION = 50


def files(*folders: str) -> list[Path]:
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]


def lines_of(file: Path) -> int:
    return len(file.read_text().splitlines())


def public_names(file: Path) -> list[str]:
    """Return the classes and functions of a module that have no leading underscore."""
    body = ast.parse(file.read_text()).body
    defined = [node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return [name for name in defined if not name.startswith("_")]


def test_the_program_is_small() -> None:
    assert sum(map(lines_of, files(*PROGRAM))) <= MOST_LINES


def test_its_tests_are_fewer() -> None:
    tests = [file for file in files("tests") if not file.relative_to(ROOT).as_posix().startswith(NO_TESTS)]
    assert sum(map(lines_of, tests)) <= MOST_TEST_LINES


def test_few_names_are_public() -> None:
    names = [name for file in files(*PROGRAM) for name in public_names(file)]
    assert len(names) <= MOST_PUBLIC_NAMES


def test_no_file_is_long() -> None:
    """A longer file usually serves two purposes."""
    long = {str(file.relative_to(ROOT)): lines_of(file) for file in files(*PROGRAM, "docs", "examples")}
    assert {name: lines for name, lines in long.items() if lines > MOST_LINES_OF_A_FILE} == {}


def body_lines(function: ast.FunctionDef) -> int:
    """Return the number of lines of a function's body without its docstring."""
    said = isinstance(function.body[0], ast.Expr) and isinstance(function.body[0].value, ast.Constant)
    first = function.body[1] if said and len(function.body) > 1 else function.body[0]
    assert function.end_lineno
    return function.end_lineno - first.lineno + 1


def test_no_function_is_long() -> None:
    long = [
        f"{file.relative_to(ROOT)}: {node.name}"
        for file in files(*PROGRAM)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and body_lines(node) > MOST_LINES_OF_A_FUNCTION
    ]
    assert long == []
