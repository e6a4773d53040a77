"""Test that the tables of all pages are tables."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_rule_of_a_table_has_a_line_of_its_own(page: Path) -> None:
    """A table whose lines were joined, as when text is filled, would be shown as text."""
    lines = page.read_text(encoding="utf-8").splitlines()
    rules = [number for number, line in enumerate(lines) if re.search(r"\|\s*:?---+:?\s*\|", line)]
    for number in rules:
        assert re.fullmatch(r"\s*\|(\s*:?-+:?\s*\|)+\s*", lines[number]), lines[number]
        columns = lines[number].count("|")
        assert lines[number - 1].count("|") - lines[number - 1].count("\\|") == columns, lines[number - 1]
