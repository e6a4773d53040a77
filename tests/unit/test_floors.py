"""Test that a package imports only from itself or lower layers, including lazy imports and imports for typing."""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.always  # never marked `nightly`

ROOT = Path(__file__).parents[2]
PACKAGES = {"edgefl": "edgefl", "edgefl.channel": "channel", "edgefl.analysis": "analysis"}  # name: folder
# Layers, from the lowest to the highest; packages of the same layer do not import each other.
FLOORS = [
    ["edgefl.errors", "edgefl.rng", "edgefl.version", "edgefl.contract", "edgefl.channel", "edgefl.analysis"],
    ["edgefl.config"],
    ["edgefl.places", "edgefl.learning"],
    ["edgefl.mobility"],
    ["edgefl.engine"],
    ["edgefl.run_directory"],
    ["edgefl.scenario"],
    ["edgefl.learners"],
    ["edgefl.run", "edgefl.flower"],
    ["edgefl.studies"],
    ["edgefl.commands"],
    ["edgefl"],  # edgefl/__init__.py
    ["edgefl.testing"],
]
# Layers within the two largest packages; modules directly in these packages define what all subpackages share.
LEARNING = [
    ["tensors"],
    ["user_cache", "augmentation", "chance", "finite", "memory", "partial_work", "thread_pool"],
    ["modules", "partitions", "optimisers"],
    ["privacy", "codecs", "models", "datasets", "lr_schedules"],
    ["algorithms", "warm_starts", "tasks", "drifts"],
    ["settings"],
    ["objective"],
    ["data", "kernels"],
    ["scores", "local"],
    ["updates"],
    ["federation"],
]
ENGINE = [
    [
        "clock",
        "parts",
        "derived",
        "class_settings",
        "power_models",
        "sessions",
        "selectors",
        "servers",
        "backgrounds",
    ],
    ["records", "settings", "churn"],
    ["devices"],
    ["air"],
    ["cells"],
    ["federation"],
]
ANALYSIS = [["page"], ["runs"], ["measures"], ["figures"], ["reports", "export"], ["html"], ["commands"]]
ROOMS = [room for rooms in FLOORS for room in rooms]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
GROUND = {"errors", "rng", "version", "contract"}  # the files of edgefl/ that belong to no package below it
MOST_ROOMS, MOST_FLOORS = 21, 13


def modules_of(folder: Path, package: str = "") -> dict[str, Path]:
    """Return the files of a folder's modules by dotted name; package: the package's name if not the folder's."""
    names = {}
    for file in sorted(folder.rglob("*.py")):
        parts = (package or folder.name, *file.relative_to(folder).with_suffix("").parts)
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return names


@cache
def imports(text: str) -> list[tuple[int, str]]:
    """Return line and dotted name of each import in a file's text, at any level.

    `from package import name` is package.name, which is a module or a name defined in package/__init__.py.
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"a relative import, which this test does not follow: {ast.unparse(node)}"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def room_of(module: str) -> str | None:
    """Return the package that contains a module, or None if the module is not part of edgefl."""
    parts = module.split(".")
    return next((name for n in (2, 1) if (name := ".".join(parts[:n])) in FLOOR), None)


def upward(root: Path) -> list[str]:
    """Return the imports below a folder that are not from a lower layer."""
    found = []
    for package, folder in PACKAGES.items():
        for module, file in modules_of(root / folder, package).items():
            here = room_of(module)
            assert here is not None
            for line, name in imports(file.read_text()):
                there = room_of(name)
                if there and there != here and FLOOR[there] >= FLOOR[here]:
                    found.append(
                        f"{file.relative_to(root)}:{line} imports {name}, and {there} does not lie below {here}:"
                        " hand the value in, or move what both need down"
                    )
    return found


def upward_within(room: Path, floors: list[list[str]]) -> list[str]:
    """Return a package's imports between its subpackages that are not from a lower layer, and modules in no layer."""
    floor = {name: number for number, names in enumerate(floors) for name in names}
    whole = f"edgefl.{room.name}"
    found = []
    for module, file in modules_of(room).items():
        here = module.split(".")[1] if "." in module else None
        if here is None:
            continue
        if here not in floor:
            found.append(f"{file}: give it an inner room of {whole}")
            continue
        for line, name in imports(file.read_text()):
            there = name.split(".")[2] if name.startswith(f"{whole}.") else None
            if there in floor and there != here and floor[there] >= floor[here]:
                found.append(f"{file}:{line} imports {name}, and {there} does not lie below {here}")
    return found


def without_room(root: Path) -> list[str]:
    """Return the files and folders of edgefl/ that are in no layer."""
    inside = {path.stem for path in (root / "edgefl").glob("*.py")} - {"__init__"}
    folders = {path.parent.name for path in (root / "edgefl").glob("*/*.py") if not path.parent.is_symlink()}
    known = {room.partition(".")[2] for room in ROOMS}
    return [
        f"edgefl/{name}: give it a room: a folder that stands in FLOORS, with the rooms that it knows below it"
        for name in sorted((inside - GROUND - {"__main__"}) | (folders - known))
    ]


def circle_in(folder: Path, package: str = "") -> list[str]:
    """Return an import cycle of modules, which begins and ends with the same module, or an empty list.

    Imports of the __init__.py above a module are ignored, as every package has them.
    """
    modules = modules_of(folder, package)
    graph = {
        module: {
            name if name in modules else name.rpartition(".")[0]
            for _, name in imports(file.read_text())
            if name in modules or name.rpartition(".")[0] in modules
        }
        - {module}
        for module, file in modules.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_go_down() -> None:
    assert upward(ROOT) == []


@pytest.mark.parametrize(
    ("room", "floors"), [("edgefl/engine", ENGINE), ("edgefl/learning", LEARNING), ("analysis", ANALYSIS)]
)
def test_imports_within_a_room_go_down(room: str, floors: list[list[str]]) -> None:
    assert upward_within(ROOT / room, floors) == []


def test_every_file_has_a_room() -> None:
    assert without_room(ROOT) == []
    assert len(ROOMS) <= MOST_ROOMS
    assert len(FLOORS) <= MOST_FLOORS


@pytest.mark.parametrize("package", PACKAGES)
def test_no_circle(package: str) -> None:
    assert circle_in(ROOT / PACKAGES[package], package) == []


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Write a checkout with one empty file in each of three packages."""
    for folder in PACKAGES.values():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
    for room in ("config", "run"):
        (tmp_path / "edgefl" / room).mkdir()
        (tmp_path / "edgefl" / room / "wall.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "import edgefl.run.wall",
        "from edgefl.run import wall",
        "def build():\n    from edgefl.run.wall import brick",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import edgefl.run",
        "import edgefl",
    ],
)
def test_an_import_that_goes_up_is_found(house: Path, text: str) -> None:
    assert upward(house) == []
    (house / "edgefl/config/wall.py").write_text(text)
    (found,) = upward(house)
    assert found.startswith("edgefl/config/wall.py:")
