"""Imports point one way; the rooms stay apart."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# folder -> top-level or dotted prefixes that no file below it may import
FORBIDDEN = {
    "channel": ("edgefl", "analysis", "torch", "simpy", "pandas", "pydantic"),
    "analysis": ("edgefl", "channel", "torch", "simpy"),
    "edgefl/engine": ("edgefl.learning", "edgefl.simulation", "torch", "analysis"),
    "edgefl/learning": ("edgefl.engine", "edgefl.simulation", "simpy", "channel", "analysis"),
    "edgefl/testing": ("pytest", "hypothesis", "analysis"),
    "edgefl/run_directory": ("edgefl.learning", "edgefl.simulation", "simpy", "channel", "analysis"),
    "edgefl/mobility": ("edgefl.engine", "edgefl.learning", "simpy", "torch", "analysis"),
}


@cache
def imported(file: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def offences(folder: str, forbidden: tuple[str, ...]) -> list[str]:
    return [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        for name in imported(file)
        if any(name == prefix or name.startswith(prefix + ".") for prefix in forbidden)
    ]


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_rooms_stay_apart(folder: str) -> None:
    assert offences(folder, FORBIDDEN[folder]) == []


def test_only_its_own_room_knows_flower() -> None:
    users = {line.split()[0] for line in offences("edgefl", ("flwr", "edgefl.flower"))}
    assert users
    assert all(user.startswith("edgefl/flower/") for user in users)


def test_the_test_can_fail() -> None:
    assert offences("edgefl/engine", ("simpy",)) != []


def test_only_the_command_line_and_the_python_interface_use_analysis() -> None:
    users = {line.split()[0] for line in offences("edgefl", ("analysis",))}
    assert users
    interface = ("edgefl/commands/", "edgefl/api.py", "edgefl/results.py", "edgefl/studies/answering.py")
    assert all(user.startswith(interface) for user in users)


def test_only_devices_and_composition_roots_start_processes() -> None:
    """A generator that is called but not started does nothing, so starting is kept in few places."""
    starters = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "edgefl").rglob("*.py")
        if "env.process(" in file.read_text()
    }
    assert starters == {
        "edgefl/engine/device.py",
        "edgefl/simulation.py",
        "edgefl/testing/cell.py",  # starts the one server of a small world
        "edgefl/bench/network.py",  # uploads without a server, and the rival's walkers
        "edgefl/bench/radio.py",  # the rival's transfers
    }


def test_nothing_that_runs_needs_the_testing_room() -> None:
    users = {line.split()[0] for line in offences("edgefl", ("edgefl.testing",))}
    assert all(user.startswith(("edgefl/testing/", "edgefl/bench/")) for user in users)


@pytest.mark.slow
def test_the_testing_room_imports_quickly_and_without_a_test_framework() -> None:
    code = "import sys, edgefl.testing; print({'torch', 'pytest', 'hypothesis'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"
