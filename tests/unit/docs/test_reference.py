"""Test the reference pages, which are generated from the code when the site is built."""

import re
from pathlib import Path

import pytest

import edgefl
from docs import reference
from edgefl.config import registry
from edgefl.scenario.scenario import Scenario
from tests.tools.fuzz_schema import keys_of

DOCS = Path(reference.__file__).parent


@pytest.mark.parametrize("page", sorted(DOCS.glob("reference-*.md")), ids=lambda page: page.stem)
def test_every_page_is_filled_and_its_tables_are_whole(page: Path) -> None:
    text = reference.on_page_markdown(page.read_text(encoding="utf-8"))
    assert "made from the code" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    cells = {len(re.split(r"(?<!\\)\|", line)) for line in rows}
    assert len(cells) <= 1, "a cell has a bar of its own"
    assert text.count("```") % 2 == 0


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_tables_of_every_page_are_whole(page: Path) -> None:
    """A table has a line for each row, a second line of dashes, and as many cells in each row as in the first."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for table in re.findall(r"(?:^ *\|.*\n)+", text, flags=re.MULTILINE):
        rows = [re.split(r"(?<!\\)\|", line.strip()) for line in table.splitlines()]
        assert len({len(row) for row in rows}) == 1, rows[0]
        assert re.fullmatch(r"[\s:-]*", "".join(rows[1])), rows[0]


def test_every_key_component_and_name_is_there() -> None:
    keys = "\n".join(reference.keys())
    for key in keys_of(Scenario):
        if "*" not in key.place:
            assert f"{'.'.join(key.place)}`" in keys, key.place
    components = "\n".join(reference.components())
    for kind in registry.KINDS:
        for name in registry.names(kind):
            assert f"### {kind}/{name} " in components
    names = "\n".join(reference.python())
    for name in set(edgefl.__all__) - {"__version__"}:
        assert f"    options: {{heading: edgefl.{name}" in names
    commands = "\n".join(reference.commands())
    for command in ("study", "doctor", "compare"):
        assert f"## edgefl {command}\n" in commands


def test_keys_link_to_their_sections_and_kinds() -> None:
    keys, components = "\n".join(reference.keys()), "\n".join(reference.components())
    anchors, kinds = re.findall(r"^## .+ \{ #(\S+) \}$", keys, re.MULTILINE), set(registry.KINDS)
    assert set(re.findall(r"\]\(#([^)]+)\)", keys)) == set(anchors) - {"scenario"}
    linked = set(re.findall(r"\]\(reference-components\.md#([^)]+)\)", keys))
    assert linked
    assert linked <= {kind for kind in kinds if f"## {kind}\n" in components}
    assert "edgefl describe" not in keys


def test_text_is_not_read_as_marks() -> None:
    assert reference._cell("a | b_c <d> {x} `e_f`") == r"a \| b\_c &lt;d> \{x\} `e_f`"
