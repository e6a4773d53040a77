"""Imports point one way; the rooms stay apart."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# folder -> top-level or dotted prefixes that no file below it may import
FORBIDDEN = {
    "channel": ("edgefl", "analysis", "torch", "simpy", "pandas", "pydantic"),
    "analysis": ("edgefl", "channel", "torch", "simpy"),
    "edgefl/engine": ("edgefl.learning", "edgefl.simulation", "torch", "analysis"),
    "edgefl/learning": ("edgefl.engine", "edgefl.simulation", "simpy", "channel", "analysis"),
    "edgefl/mobility": ("edgefl.engine", "edgefl.learning", "simpy", "torch", "analysis"),
}


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


def test_the_test_can_fail() -> None:
    assert offences("edgefl/engine", ("simpy",)) != []


def test_only_the_command_line_uses_analysis() -> None:
    users = {line.split()[0] for line in offences("edgefl", ("analysis",))}
    assert users == {"edgefl/cli.py"}


def test_only_server_and_devices_start_processes() -> None:
    """A generator that is called but not started does nothing, so starting is kept in few places."""
    starters = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "edgefl").rglob("*.py")
        if "env.process(" in file.read_text()
    }
    benches = {"edgefl/bench/network.py", "edgefl/bench/radio.py"}  # composition roots of their own
    assert starters - benches == {"edgefl/engine/device.py", "edgefl/simulation.py"}
