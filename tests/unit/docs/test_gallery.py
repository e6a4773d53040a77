"""Test that the gallery has every shipped scenario, and stays small."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GALLERY = ROOT / "docs" / "gallery"
SHIPPED = sorted(file.stem for file in (ROOT / "scenarios").glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_each_scenario_has_a_picture_and_sentences(name: str) -> None:
    command, picture = rf"`edgefl run {name}`", r"!\[.*\]\((.+)\)"
    section = re.compile(rf"^## {name}\n\n(.+)\n\n{command}\n\n{picture}$", re.MULTILINE)
    pages = {page.name: section.search(page.read_text()) for page in (ROOT / "docs").glob("gallery-*.md")}
    ((topic, found),) = [(name, found) for name, found in pages.items() if found]  # if not: `make gallery`
    assert f"](gallery/{name}.webp)]({topic}#{name})" in (ROOT / "docs" / "gallery.md").read_text()
    assert (ROOT / "docs" / found[2]).is_file()
    assert found[1].endswith(json.loads((GALLERY / "facts.json").read_text())[name])
    assert len(re.findall(r"(?<!et al)[.!?](?= |$)", found[1])) >= 3


def test_nothing_is_there_that_is_not_shipped_and_all_is_small() -> None:
    pictures = list(GALLERY.glob("*.webp"))
    assert sorted(picture.stem for picture in pictures) == SHIPPED
    assert sum(picture.stat().st_size for picture in pictures) < 1_500_000
