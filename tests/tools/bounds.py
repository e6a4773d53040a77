"""Print pip constraints for the lowest versions that pyproject.toml declares, or for the newest versions.

make lowest
python -m tests.tools.bounds lowest > lowest.txt && pip install -c lowest.txt -e '.[test]'
"""

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRA = "test"
KEPT = "torch"  # pinned as in constraints.txt, because other releases install gigabytes of CUDA libraries
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w, -]+)\])?(?P<bounds>[^;]*)")


def requirements(project: dict, extra: str) -> list[tuple[str, str]]:
    """Return name and bounds of each direct dependency of the project, of an extra, and of the extras it includes."""
    found, extras = [], [extra]
    for extra in extras:  # the loop appends the extras that this one includes
        for line in [*project["dependencies"], *project["optional-dependencies"][extra]]:
            parts = REQUIREMENT.fullmatch(line)
            if parts is None:
                raise ValueError(f"pyproject.toml: {line!r} has a marker, which this script does not read")
            if parts["name"] != project["name"]:
                found.append((parts["name"], parts["bounds"].replace(" ", "")))
            else:
                extras += [name.strip() for name in parts["extras"].split(",") if name.strip() not in extras]
    return list(dict.fromkeys(found))


def lowest(project: dict, extra: str, kept: str = KEPT) -> list[str]:
    """Return `name==version` of each lower bound, except for the dependency `kept`."""
    return [
        f"{name}=={bound.removeprefix('>=')}"
        for name, bounds in requirements(project, extra)
        for bound in bounds.split(",")
        if bound.startswith(">=") and name != kept
    ]


def tested(constraints: str) -> str:
    """Return the line of constraints.txt that pins PyTorch."""
    return next(line for line in constraints.splitlines() if line.startswith(f"{KEPT}=="))


def main() -> None:
    """Print pip constraints: PyTorch's pin and, for `lowest`, the lowest version of each other dependency."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("which", choices=("lowest", "newest"))
    parser.add_argument(f"--{KEPT}", action="store_true", help=f"also the lowest or newest {KEPT}")
    asked = parser.parse_args()
    keep = "" if getattr(asked, KEPT) else KEPT
    lines = [tested((ROOT / "constraints.txt").read_text())] if keep else []
    if asked.which == "lowest":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        lines += lowest(project, EXTRA, keep)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
