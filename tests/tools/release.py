"""List the obstacles to a release: placeholders, and versions or dates that disagree.

`python -m tests.tools.release` prints the obstacles and fails if there are any; .github/ISSUE_TEMPLATE/release.md
lists the other steps of a release.
"""

import re
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PLACEHOLDERS = {  # placeholder used until edgefl is public -> its replacement
    "edgefl.invalid": "the repository's address",
    "not on a package index yet": "how to install it from there",
}
READ = ("*.md", "*.toml", "*.yml", "*.cff", "docs/*.md", ".github/**/*.md", ".github/**/*.yml")
HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?P<rest>.*)$", re.M)


def faults(root: Path) -> Iterator[str]:
    """Yield the faults of a checkout that is to be released: file, line and remedy."""
    for pattern in READ:
        for file in sorted(root.glob(pattern)):
            for number, line in enumerate(file.read_text().splitlines(), start=1):
                for found, wanted in PLACEHOLDERS.items():
                    if found in line and f"`{found}`" not in line:
                        yield f"{file.relative_to(root)}:{number}: '{found}' is a placeholder: write {wanted}"
    version = _version(root)
    cited = yaml.safe_load((root / "CITATION.cff").read_text())
    if str(cited["version"]) != version:
        yield f"CITATION.cff: version is {cited['version']}, but edgefl's is {version}"
    for key, wanted in (("date-released", "the day of the release"), ("repository-code", "the repository")):
        if key not in cited:
            yield f"CITATION.cff: has no {key}: add {wanted}"
    if not isinstance(cited.get("date-released", date.min), date):
        yield f"CITATION.cff: date-released is {cited['date-released']}, which is not a date such as 2026-11-30"
    if "site_url" not in (root / "mkdocs.yml").read_text():
        yield "mkdocs.yml: has no site_url: add the address of the pages"
    yield from _changes(root, version)


def _version(root: Path) -> str:
    text = (root / "edgefl" / "version.py").read_text()
    found = re.search(r'^__version__ = "(.+)"', text, re.M)
    assert found, "version.py has a version"
    return found[1]


def _changes(root: Path, version: str) -> Iterator[str]:
    """Yield a fault if the latest heading of the changelog lacks this version or its date."""
    latest = HEADING.search((root / "CHANGELOG.md").read_text())
    if latest is None or latest["version"] != version:
        yield f"CHANGELOG.md: the latest version is not {version}: write '## [{version}] - {date.today()}'"
    elif not re.fullmatch(r" - \d{4}-\d\d-\d\d", latest["rest"]):
        yield f"CHANGELOG.md: version {version} has no date: write '## [{version}] - {date.today()}'"


if __name__ == "__main__":
    found = list(faults(ROOT))
    print("\n".join(found or ["no obstacles"]))
    sys.exit(bool(found))
