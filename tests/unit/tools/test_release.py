"""Test what a package index, a citation and a release need: an author, a version, valid links, no placeholder."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from edgefl.version import __version__
from tests.tools.release import ROOT, faults

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text())
BASE = PROJECT["project"]["urls"]["Repository"]


def test_the_citation_names_what_the_package_names() -> None:
    """The citation has the keys that Citation File Format 1.2.0 requires, and agrees with pyproject.toml."""
    assert CITED["cff-version"] == "1.2.0"
    assert CITED["type"] == "software"
    assert CITED["title"]
    assert CITED["message"]
    assert CITED["version"] == __version__
    project = PROJECT["project"]
    assert CITED["license"] == project["license"]
    assert sorted(CITED["keywords"]) == sorted(project["keywords"])
    assert [author["name"] for author in CITED["authors"]] == [
        author["name"] for author in project["authors"]
    ]
    for reference in CITED["references"]:
        assert reference["type"] == "article"
        assert reference["title"]
        assert all(author["family-names"] and author["given-names"] for author in reference["authors"])


def described() -> str:
    """Return the README as the package index receives it."""
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = "".join((ROOT / part["path"]).read_text() for part in hook["fragments"])
    for one in hook["substitutions"]:
        text = re.sub(one["pattern"], one["replacement"].replace("$HFPR_VERSION", __version__), text)
    return text


def test_links_and_pictures_of_the_readme_work_on_a_package_index() -> None:
    """Each link leads to a file of the repository at this version's tag, or to another site."""
    text, here = described(), f"{BASE}/blob/v{__version__}/"
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 30
    pictures = re.findall(r'<img [^>]*src="([^"]+)"', text)
    assert len(pictures) == 1
    assert "<picture>" not in text
    assert "<source" not in text
    assert all(picture.endswith("?raw=true") for picture in pictures)
    for link in (*links, *pictures):
        assert link.startswith(("https://", "#")), link
        if link.startswith(here):
            assert (ROOT / re.split(r"[?#]", link.removeprefix(here))[0]).exists(), link
    assert sum(link.startswith(here) for link in links) > 30


@pytest.mark.skipif("date-released" in CITED, reason="edgefl is published")
def test_no_page_installs_what_is_not_published() -> None:
    pages = [
        ROOT / "README.md",
        *(page for page in (ROOT / "docs").glob("*.md") if page.name != "history.md"),
    ]
    bare = re.compile(r"pip install (-U )?edgefl-cosim\b(?!\[)")
    assert not [page.name for page in pages if bare.search(page.read_text())]


def checkout(folder: Path, **changes: str) -> Path:
    """Write a checkout that may be released, except for the changed files."""
    files = {
        "edgefl/version.py": '__version__ = "1.2.0"\n',
        "CITATION.cff": "version: 1.2.0\ndate-released: 2026-11-30\nrepository-code: https://code.example/edgefl\n",
        "mkdocs.yml": "site_url: https://pages.example\n",
        "CHANGELOG.md": "## [1.2.0] - 2026-11-30\n\n## [1.1.0] - 2026-10-01\n",
        "README.md": "pip install edgefl-cosim\n",
    }
    for name, text in (files | changes).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_checkout_without_faults_may_be_released(tmp_path: Path) -> None:
    assert list(faults(checkout(tmp_path))) == []


NOWHERE, CITATION = "edgefl.invalid", "version: 1.2.0\nrepository-code: x\n"


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("pyproject.toml", f'a = 1\nRepository = "https://{NOWHERE}"\n', f"pyproject.toml:2: '{NOWHERE}'"),
        (
            "docs/index.md",
            "It is not on a package index yet.\n",
            "docs/index.md:1: 'not on a package index yet'",
        ),
        (
            "edgefl/version.py",
            '__version__ = "1.1.0"\n',
            "CITATION.cff: version is 1.2.0, but edgefl's is 1.1.0",
        ),
        ("CITATION.cff", CITATION, "CITATION.cff: has no date-released"),
        ("CITATION.cff", f"{CITATION}date-released: soon\n", "date-released is soon"),
        ("mkdocs.yml", "site_name: edgefl\n", "mkdocs.yml: has no site_url"),
        ("CHANGELOG.md", "## [Unreleased]: 1.2.0\n", "CHANGELOG.md: the latest version is not 1.2.0"),
        ("CHANGELOG.md", "## [1.2.0]\n", "CHANGELOG.md: version 1.2.0 has no date"),
    ],
)
def test_what_stands_in_the_way_of_a_release(tmp_path: Path, name: str, text: str, fault: str) -> None:
    found = list(faults(checkout(tmp_path, **{name: text})))
    assert any(one.startswith(fault) or fault in one for one in found)
    assert len(found) <= 2


def test_the_checklist_may_name_a_placeholder(tmp_path: Path) -> None:
    (tmp_path / ".github").mkdir()
    assert list(faults(checkout(tmp_path, **{".github/release.md": "no `edgefl.invalid` is left\n"}))) == []
