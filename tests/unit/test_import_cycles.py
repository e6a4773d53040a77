"""Inside a package imports point one way too, those for type checking included."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def modules_of(package: Path) -> dict[str, Path]:
    """Dotted name -> file, for every module of a package."""
    names = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return names


def imports_of(package: Path) -> dict[str, set[str]]:
    """Module -> the modules of the same package that it imports, wherever in the file the import stands.

    `from package import name` means the module package.name if there is one, else what package/__init__.py defines.
    That importing a module runs the __init__.py above it is left out: every package does so.
    """
    modules = modules_of(package)
    graph: dict[str, set[str]] = {}
    for name, file in modules.items():
        targets = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{file}: a relative import, which this test does not follow"
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                targets |= {target if target in modules else str(node.module) for target in inner}
        graph[name] = (targets & modules.keys()) - {name}
    return graph


def cycle_in(package: Path) -> list[str]:
    """One circle of modules, its first named again at the end; empty if there is none."""
    try:
        TopologicalSorter(imports_of(package)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("package", ["analysis", "channel"])
def test_no_circle(package: str) -> None:
    assert cycle_in(ROOT / package) == []


def test_the_test_can_fail(tmp_path: Path) -> None:
    """A circle of three of which one link is for type checking alone, and one stands inside a function."""
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").write_text("from house.roof import tile\n")
    (package / "roof.py").write_text("from house import wall\ntile = 1\n")
    (package / "wall.py").write_text("def build():\n    import house.floor\n")
    floor = package / "floor.py"
    floor.write_text(
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from house.roof import tile\n"
    )
    circle = cycle_in(package)
    assert set(circle) == {"house.roof", "house.wall", "house.floor"}
    assert circle[0] == circle[-1]
    floor.write_text("")
    assert cycle_in(package) == []
