"""Where a key belongs that stands in the wrong place, by the JSON Schema."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel

from edgefl.config.registry import KINDS

Json = dict[str, Any]
MOST_PLACES = 3


def place_of(key: str, root: type[BaseModel]) -> str:
    """Say where a document has this key; empty: nowhere."""
    schema = _schema(root)
    places = list(_places(key, schema, schema.get("$defs", {}), ()))
    sections = [place for place, names in places if not names]
    parts = [f"{place} ({', '.join(names)})" for place, names in places if names]
    if sections:
        return f"write {' or '.join(sections[:MOST_PLACES])}"
    return f"it belongs to {' or to '.join(parts[:MOST_PLACES])}" if parts else ""


@cache
def _schema(root: type[BaseModel]) -> Json:
    """Write the schema once, however many keys are in the wrong place."""
    return root.model_json_schema()


def _places(
    key: str, section: Json, definitions: Json, above: tuple[str, ...]
) -> Iterator[tuple[str, list[str]]]:
    """Yield each place of a key: its dotted name, or that of a component with the names of those that have it."""
    for name, value in section.get("properties", {}).items():
        place = (*above, name)
        if name == key:
            yield ".".join(place), []
        options = [value, *value.get("anyOf", ()), *value.get("oneOf", ())]
        for kind in (option.get("$ref", "").rpartition("/")[2] for option in options):
            inner = definitions.get(kind, {})
            if kind in KINDS:
                having = [
                    one["title"] for one in inner["oneOf"] if "title" in one and key in one["properties"]
                ]
                if having and key != "name":
                    yield ".".join(place), having
            else:
                yield from _places(key, inner, definitions, place)
