"""Test that each code block in docs/ does what its page says, and that the site contains every page."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from edgefl.config import registry
from edgefl.config.units import UNITS
from edgefl.scenario.scenario import Scenario
from tests.tools.pages import LANGUAGES, ROOT, blocks_of, follow, scenario_of

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
MOST_ENTRIES = 25  # largest number of pages in the site's navigation


def nav(entries: list) -> list[str]:
    """Return the files in the site's navigation."""
    files: list[str] = []
    for entry in entries:
        target = next(iter(entry.values())) if isinstance(entry, dict) else entry
        files += nav(target) if isinstance(target, list) else [target]
    return files


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.stem)
def test_page(page: Path, tmp_path: Path) -> None:
    """Run a page's commands in an empty folder: only edgefl's files and files that the page makes are available."""
    if "flwr" in page.read_text():
        pytest.importorskip("flwr", reason="needs pip install 'edgefl-cosim[flower]'")
    follow(page, tmp_path)


def test_every_page_is_on_the_site() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    listed, patterns = nav(site["nav"]), site["not_in_nav"].split()
    linked_only = [page.name for page in PAGES if any(fnmatch(page.name, pattern) for pattern in patterns)]
    assert sorted(listed + linked_only) == [page.name for page in PAGES], "add the page to nav in mkdocs.yml"
    assert len(listed) <= MOST_ENTRIES


def test_every_page_can_be_reached_from_the_overview() -> None:
    reached, waiting = set(), {"index.md"}
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = {link.partition("#")[0] for link in LINK.findall((DOCS / page).read_text())}
        waiting |= {target for target in targets if target.endswith(".md") and "/" not in target} - reached
    assert reached == {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_say_what_they_are(page: Path) -> None:
    """Each code block is of a kind that `test_page` handles, so no block remains untested."""
    blocks = blocks_of(page)
    assert page.read_text().count("\n```") == 2 * len(blocks)
    assert {block.language for block in blocks} <= set(LANGUAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        target = link.partition("#")[0]
        if target and "://" not in target:
            assert (DOCS / target).exists(), link


def rows(page: str) -> dict[str, str]:
    """Return the first two columns of a page's tables, without Markdown's markup."""
    lines = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", (DOCS / page).read_text(), re.MULTILINE)
    return {first: second.strip().strip("`") for first, second in lines}


def test_the_units_told_are_those_of_keys() -> None:
    assert rows("authoring.md") == {f"_{suffix}": unit for suffix, unit in UNITS.items()}


def test_the_kinds_told_are_all_and_stand_where_the_page_says() -> None:
    told = rows("components.md")
    assert set(told) == set(registry.KINDS)
    scenario = yaml.safe_load(next(b.text for b in blocks_of(DOCS / "components.md") if b.title))
    written = Scenario.model_validate(scenario).model_dump(mode="json")
    for kind, keys in told.items():
        for key in re.findall(r"[a-z_.]+", keys):
            value = written
            for part in key.split("."):
                value = value[part]
            name = value["name"] if isinstance(value, dict) else value
            assert name in registry.names(kind), f"{key} has no component of {kind}"


def test_the_town_shown_has_the_cells_and_the_week_that_it_says() -> None:
    shown = [
        yaml.safe_load(block.text) for block in blocks_of(DOCS / "authoring.md") if block.language == "yaml"
    ]
    town = scenario_of(next(keys for keys in shown if "areas" in keys))
    assert town.layout.cells == 9
    assert town.devices.mobility.calendar.period_h == 168


def test_a_program_that_fails_fails_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for block in (
        "python\nassert False\n",
        "sh\nfalse | true; false\n",
        "bash\nif then\n",
        "yaml\nradio: {bandwidth: 3}\n",
    ):
        page.write_text(f"```{block}```\n")
        with pytest.raises(BaseException):  # noqa: B017, PT011
            follow(page, tmp_path)
