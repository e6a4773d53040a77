"""Test that the hash of external code covers its file and that file's local imports, as they were when imported."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from edgefl.config import own_code

PART = "import helper\n\n\nclass Mine:\n    step = 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder on Python's path with a component, its helper, and a package; unload them afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "part.py").write_text(PART)
    (tmp_path / "helper.py").write_text("def late():\n    from group import deep\n")
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "__init__.py").write_text("")
    (tmp_path / "group" / "deep.py").write_text("from . import deeper\n")
    (tmp_path / "group" / "deeper.py").write_text("DEPTH = 2\n")
    (tmp_path / "stranger.py").write_text("UNUSED = 1\n")
    yield tmp_path
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("part", "helper", "group"):
            del sys.modules[name]


def fresh(name: str = "part") -> ModuleType:
    for loaded in [*sys.modules]:
        if loaded.partition(".")[0] in ("part", "helper", "group"):
            del sys.modules[loaded]
    importlib.invalidate_caches()
    return importlib.import_module(name)


def code() -> str:
    return own_code.named_in(["part:Mine"])["part"]


def test_a_hash_does_not_depend_on_the_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    fresh()
    here = code()
    other = tmp_path_factory.mktemp("copy")
    for file in folder.rglob("*.py"):
        target = other / file.relative_to(folder)
        target.parent.mkdir(exist_ok=True)
        target.write_text(file.read_text())
    sys.path.insert(0, str(other))
    try:
        assert Path(str(fresh().__file__)).parent == other
        assert code() == here
    finally:
        sys.path.remove(str(other))


@pytest.mark.parametrize(
    ("edited", "changes"),
    [
        ("part.py", True),
        ("helper.py", True),  # imported by part.py
        ("group/__init__.py", True),  # helper.py imports a module of this package in a function
        ("group/deep.py", True),
        ("group/deeper.py", True),  # imported relatively by deep.py
        ("stranger.py", False),
    ],
)
def test_an_edit_of_what_it_imports_beside_it_is_another_hash(
    folder: Path, edited: str, changes: bool
) -> None:
    fresh()
    before = code()
    with (folder / edited).open("a") as file:
        file.write("# edited\n")
    fresh()
    assert (code() != before) is changes


def test_code_in_memory_counts_not_what_its_file_has_become(folder: Path) -> None:
    module = fresh()
    before = code()
    (folder / "part.py").write_text(PART.replace("1", "1 + 1"))
    assert code() == before
    importlib.reload(module)
    assert module.Mine.step == 2
    assert code() != before


def test_a_package_is_named_by_its_top_folder(folder: Path) -> None:
    fresh("group.deep")
    before = own_code.named_in(["group.deep:deeper"])
    (folder / "group" / "deeper.py").write_text("DEPTH = 3\n")
    fresh("group.deep")
    after = own_code.named_in(["group.deep:deeper"])
    assert set(before) == set(after) == {"group.deep"}
    assert before != after


def test_installed_code_is_its_distribution_and_version() -> None:
    import simpy
    import yaml

    assert own_code.of_part(simpy.Environment) == f"simpy {simpy.__version__}"
    assert own_code.of_part(yaml.YAMLError) == f"PyYAML {yaml.__version__}"
    assert own_code.of_part(Path).startswith("python 3.")


def test_a_package_of_a_lower_environment_is_installed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed packages are hashed by name and version, as hashing all code that PyTorch imports took minutes."""
    packages = tmp_path / "system" / "site-packages"
    (packages / "lowest-2.7.dist-info").mkdir(parents=True)
    (packages / "lowest-2.7.dist-info" / "METADATA").write_text("Name: lowest\nVersion: 2.7\n")
    (packages / "lowest-2.7.dist-info" / "top_level.txt").write_text("lowest\n")
    (packages / "lowest.py").write_text("class Part:\n    pass\n")
    monkeypatch.syspath_prepend(packages)
    assert own_code.of_part(importlib.import_module("lowest").Part) == "lowest 2.7"
    del sys.modules["lowest"]


def test_edgefl_itself_is_left_out() -> None:
    import edgefl.learning.algorithms.fedprox  # noqa: F401

    assert own_code.named_in(["edgefl.learning.algorithms.fedprox:FedProx", "no:such", "a:b:c", 3]) == {}


def test_a_notebooks_class_is_what_it_was_compiled_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class of a notebook has no file; its hash is the hash of its compiled code."""
    notebook = ModuleType("notebook_cell")
    monkeypatch.setitem(sys.modules, "notebook_cell", notebook)

    def cell(text: str) -> str:
        exec(text, vars(notebook))
        return own_code.named_in(["notebook_cell:Mine"])["notebook_cell"]

    text = "class Mine:\n    def __call__(self, x):\n        return 2 * x if x in {1, 'b'} else x\n"
    first = cell(text)
    assert cell(text) == first
    assert cell(text.replace("2 *", "3 *")) != first


class Learner:
    """A learner with parts from other modules."""

    def __init__(self, *parts: object) -> None:
        self.own_parts = parts


def test_a_learner_counts_with_its_parts(folder: Path) -> None:
    module = fresh()
    assert set(own_code.of_learner(Learner(module.Mine, module.Mine()))) == {__name__, "part"}
    assert own_code.of_learner(None) == {}
