"""Test that CONTRIBUTING lists every kind of component, and every package in its layer."""

import re

from edgefl.config import registry
from tests.tools.pages import ROOT
from tests.unit.test_floors import FLOORS

TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def test_all_kinds_are_named_with_their_folders() -> None:
    rows = dict(re.findall(r"^   \| (\w+) \| `([\w/]+)/` \|", TEXT, re.MULTILINE))
    assert rows == {kind: package.replace(".", "/") for kind, package in registry.PACKAGES.items()}


def test_all_rooms_are_named_on_their_floors() -> None:
    floors: list[list[str]] = []
    for number, path in re.findall(r"^\| (\d*) ?\| `([\w/{},.]+)` \|", TEXT, re.MULTILINE):
        parent, _, files = path.removesuffix(".py").removesuffix("/").partition("/{")
        rooms = [f"{parent}/{file}" for file in files.rstrip("}").split(",")] if files else [parent]
        names = [room.removesuffix("/__init__").replace("/", ".") for room in rooms]
        if number:
            assert int(number) == len(floors) + 1
            floors.append([])
        floors[-1] += names
    assert [sorted(floor) for floor in floors] == [sorted(floor) for floor in FLOORS]
