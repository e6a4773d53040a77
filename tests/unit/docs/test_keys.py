"""Test that every key is set in a shipped scenario, study or example, or on a page about its feature."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.tools.pages import ROOT, blocks_of

Keys = tuple[str, ...]
MOST_PATHS, MOST_NAMES = 427, 331
NOT_ABOUT = {"history.md"}  # pages generated from the code are not counted either
INLINE = re.compile(r"`([\w.]+: [^`\n]+)`")
SET = re.compile(r"--set ['\"]?([\w.]+)=(\S+)")


def paths_of(schema: Any, node: Any, path: Keys, seen: frozenset[str]) -> Iterator[Keys]:
    """Yield the keys below a node of a JSON schema; for a list or a mapping by names, yield an element's keys."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name not in seen:
            yield from paths_of(schema, schema["$defs"][name], path, seen | {name})
        return
    for one in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
        yield from paths_of(schema, one, path, seen)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from paths_of(schema, node[key], path, seen)
    for name, one in node.get("properties", {}).items():
        yield (*path, name)
        yield from paths_of(schema, one, (*path, name), seen)


def set_by(value: Any, path: Keys = ()) -> Iterator[Keys]:
    """Yield the keys that a document sets, each with the keys above it; dotted keys count as levels."""
    for item in value if isinstance(value, list) else ():
        yield from set_by(item, path)
    for name, item in value.items() if isinstance(value, dict) else ():
        whole = (*path, *str(name).split("."))
        yield whole
        yield from set_by(item, whole)


def documents() -> Iterator[Any]:
    """Yield the keys set in each scenario, study, example and page (in code blocks and code words)."""
    for folder in ("scenarios", "examples"):
        for file in (ROOT / folder).rglob("*.yaml"):
            yield yaml.safe_load(file.read_text())
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text()
        if page.name in NOT_ABOUT or "made from the code -->" in text:
            continue
        yield from (yaml.safe_load(block.text) for block in blocks_of(page) if block.language == "yaml")
        yield from ({key: _read(value)} for key, value in SET.findall(text))
        yield from map(_read, INLINE.findall(text))


def _read(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def test_each_key_is_set_somewhere_and_there_are_no_more_than_so_many() -> None:
    schema = json.loads((ROOT / "scenarios" / "scenario.schema.json").read_text())
    keys = set(paths_of(schema, schema, (), frozenset()))
    # device classes and federations repeat sections of the scenario, and uplink and downlink have the same codecs
    ends = {whole[-2:] for document in documents() for whole in set_by(document)}
    codecs = {"uplink_codec", "downlink_codec"}
    ends |= {(way, end[1]) for end in ends if end[0] in codecs for way in codecs}
    unused = sorted(".".join(key) for key in keys if key[-2:] not in ends and len(key) > 1)
    assert not unused, "make the key a constant, or show its purpose on a page"
    assert len(keys) <= MOST_PATHS
    assert len({key[-1] for key in keys}) <= MOST_NAMES
