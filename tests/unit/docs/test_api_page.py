"""Test that docs/api.md lists exactly the names in `__all__`, and that examples use no other names."""

import ast
import importlib
import json
import re
from collections.abc import Iterator
from inspect import isclass, isfunction, ismodule

import pytest

from edgefl.config import registry
from tests.tools.pages import ROOT, blocks_of

PAGE = (ROOT / "docs" / "api.md").read_text()
PACKAGES = {"edgefl": "edgefl", "edgefl.channel": "channel", "edgefl.analysis": "analysis"}  # name: folder
# packages whose __all__ collects names of their own files for the layers above
INTERNAL = {"edgefl.studies", "edgefl.analysis.html"}
QUOTED = re.compile(r"`([\w.]+)`")
NEEDS = {"edgefl.flower": "flwr"}  # module -> optional package that it needs


def told() -> dict[str, list[str]]:
    """Return the page's names by module, from tables below a heading or from rows that name a module."""
    names: dict[str, list[str]] = {}
    heading = ""
    for line in PAGE.splitlines():
        if line.startswith("#"):
            heading = next(iter(QUOTED.findall(line)), "")
        elif line.startswith("|"):
            first, *further = (QUOTED.findall(cell) for cell in line.strip("|").split("|"))
            inside = further and len(further[0]) == 1 and further[0][0].startswith("edgefl")
            if inside:
                names.setdefault(further[0][0], []).extend(name for cell in further[1:] for name in cell)
            elif heading:
                names.setdefault(heading, []).extend(first)
    return names


def declared() -> dict[str, list[str]]:
    """Return the names in `__all__` by module, read from the files."""
    names = {}
    for package, folder in PACKAGES.items():
        for file in (ROOT / folder).rglob("*.py"):
            inside = file.relative_to(ROOT / folder).with_suffix("").parts
            module = ".".join((package, *inside)).removesuffix(".__init__")
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                    names[module] = ast.literal_eval(node.value)
    return {module: public for module, public in names.items() if module not in INTERNAL}


TOLD = told()


def test_the_page_lists_what_the_code_declares_and_nothing_else() -> None:
    said, real = ({module: sorted(names) for module, names in each.items()} for each in (TOLD, declared()))
    assert said == real, "docs/api.md and __all__ differ: change both in the same way"


@pytest.mark.parametrize("module", TOLD)
def test_public_names_import_and_say_what_they_are(module: str) -> None:
    if module in NEEDS:
        pytest.importorskip(NEEDS[module])
    room = importlib.import_module(module)
    for name in TOLD[module]:
        value = getattr(room, name)
        if isclass(value) or isfunction(value) or ismodule(value):
            assert (value.__doc__ or "").strip(), f"{module}.{name}: write a docstring"


def test_the_base_classes_are_those_of_all_kinds() -> None:
    row = re.compile(r"^\| `(\w+)` \| `([\w.]+)` \| `(\w+)` \|", re.MULTILINE)
    bases = {kind: registry.base(kind) for kind in registry.KINDS}
    assert row.findall(PAGE) == [(kind, base.__module__, base.__name__) for kind, base in bases.items()]


def programs() -> Iterator[tuple[str, str]]:
    """Yield the programs that users copy: examples, notebooks, files of `edgefl new`, code on pages."""
    for file in (ROOT / "examples").glob("*.py"):
        yield file.name, file.read_text()
    for file in (*(ROOT / "examples").rglob("*.ipynb"), *(ROOT / "edgefl/commands/scaffold").glob("*.ipynb")):
        cells = [
            cell["source"] for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"
        ]
        yield (
            file.name,
            "\n".join("".join(cell) for cell in cells if not "".join(cell).startswith(("!", "%"))),
        )
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for block in blocks_of(page):
            if block.language == "python":
                yield str(block), block.text


def used(program: str) -> Iterator[tuple[str, str]]:
    """Yield module and name for each of our packages' names that a program imports or uses as `package.name`."""
    tree = ast.parse(program)
    packages: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [each for each in node.names if each.name.split(".")[0] == "edgefl"]
            packages |= {each.asname or each.name: each.name for each in ours}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "edgefl":
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                if whole in TOLD:
                    packages[each.asname or each.name] = whole
                else:
                    yield str(node.module), each.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in packages:
            yield packages[node.value.id], node.attr


def is_public(module: str, name: str) -> bool:
    """Return whether a name is on the page, or is the class of a shipped component."""
    package, _, last = module.rpartition(".")
    kinds = [kind for kind, home in registry.PACKAGES.items() if home == package]
    if kinds and last in registry.names(kinds[0]):
        return registry.get(kinds[0], last).__name__ == name
    return name in TOLD.get(module, ())


def test_examples_use_public_names_only() -> None:
    private = [
        f"{place}: {module}.{name}"
        for place, program in programs()
        for module, name in used(program)
        if not is_public(module, name)
    ]
    assert private == [], "users copy this: use public names, or publish these (__all__, docs/api.md)"


def test_a_name_that_is_not_public_is_noticed() -> None:
    program = (
        "import edgefl\nfrom edgefl import testing\nfrom edgefl.engine.air.band import Band\nedgefl.nothing\n"
    )
    program += "testing.check\nfrom edgefl.mobility.static import Static\n"
    private = [name for name in used(program) if not is_public(*name)]
    assert private == [("edgefl.engine.air.band", "Band"), ("edgefl", "nothing")]
