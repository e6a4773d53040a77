"""List the keys that a scenario file may hold, each with its JSON schema, and draw values for them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter

from edgefl.config import registry
from edgefl.config.component import parameters_of
from edgefl.config.scenario_fields import Named
from edgefl.errors import EdgeflError
from edgefl.scenario.scenario import Scenario

Place = tuple[str, ...]
DECADES = 1.5  # a number is drawn within this many decades of its default, unless its bounds are narrower
SPAN = 1e4  # a number without a default is drawn between its upper bound and this fraction of the bound


@dataclass(frozen=True)
class Key:
    """A key that a scenario may have.

    kind: kind of its component, or None if it holds a value or a section. schema: JSON schema of its value.
    """

    place: Place
    kind: str | None
    schema: Mapping[str, Any]
    required: bool


@cache  # pydantic needs a millisecond per schema, and a case needs each schema several times
def keys_of(model: type[BaseModel], place: Place = ()) -> tuple[Key, ...]:
    """Return all keys of a model, including sections and their keys, without parameters of components."""
    keys = []
    for name, field in model.model_fields.items():
        here = (*place, name)
        options = [field.annotation, *getattr(field.annotation, "__args__", ())]
        marks = [*field.metadata, *(mark for each in options for mark in getattr(each, "__metadata__", ()))]
        named = next((mark for mark in marks if isinstance(mark, Named)), None)
        if named:
            keys.append(Key(here, named.kind, {}, field.is_required()))
            continue
        inner = next(
            (each for each in options if isinstance(each, type) and issubclass(each, BaseModel)), None
        )
        if inner:
            keys += [Key(here, None, {"type": "object"}, field.is_required()), *keys_of(inner, here)]
            continue
        wanted: Any = Annotated[field.annotation, *(field.metadata or [None])]
        schema = _written_out(TypeAdapter(wanted).json_schema())
        if isinstance(field.default, int | float):
            schema["default"] = field.default
        keys.append(Key(here, None, schema, field.is_required()))
    return tuple(keys)


def keys_in(data: Mapping[str, Any]) -> list[Key]:
    """Return all keys that this scenario may have: keys of all scenarios, and parameters of its components."""
    keys = [*keys_of(Scenario)]
    for key in keys_of(Scenario):
        if key.kind:
            name = name_at(data, key.place)
            try:
                keys += keys_of(parameters_of(registry.get(key.kind, name)), key.place) if name else ()
            except EdgeflError:
                continue
    return keys


def at(data: Any, place: Place) -> Any:
    """Return the value at a place, or None."""
    for part in place:
        data = data.get(part) if isinstance(data, dict) else None
    return data


def name_at(data: Any, place: Place) -> str | None:
    """Return the name of the component at a place."""
    held = at(data, place)
    name = held.get("name") if isinstance(held, dict) else held
    return name if isinstance(name, str) else None


def put(data: dict[str, Any], place: Place, value: Any) -> None:
    """Set a key; add missing sections above it, and turn a component's name into a mapping."""
    for part in place[:-1]:
        held = data.get(part)
        if not isinstance(held, dict):
            held = {"name": held} if isinstance(held, str) else {}
        data[part] = data = held
    data[place[-1]] = value


def valid(schema: Mapping[str, Any], rng: Random) -> Any:
    """Draw a value that a JSON schema allows; numbers are near the default or log-uniform within their bounds."""
    if "anyOf" in schema:
        inner = rng.choice(schema["anyOf"])
        return valid({"default": schema["default"], **inner} if "default" in schema else inner, rng)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    if "examples" in schema:
        return rng.choice(schema["examples"])
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return _number(schema, rng, whole=kind == "integer")
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        items = schema.get("prefixItems") or [schema.get("items", {})] * rng.randint(
            schema.get("minItems", 1), 3
        )
        return [valid(item, rng) for item in items]
    if kind == "object":
        known = {name: valid(inner, rng) for name, inner in schema.get("properties", {}).items()}
        further = schema.get("additionalProperties")
        return known | ({"a": valid(further, rng)} if isinstance(further, dict) else {})
    return None if kind == "null" else rng.choice(["a", "DDSU", "x.csv"])


def bounds(schema: Mapping[str, Any], strictly: bool = True) -> list[float]:
    """Return the bounds of a JSON schema's numbers, including numbers in its options and items.

    Args:
        strictly: whether to include exclusive bounds.
    """
    names = ["minimum", "maximum", *(["exclusiveMinimum", "exclusiveMaximum"] if strictly else [])]
    numbers = [schema[name] for name in names if name in schema]
    for option in (*schema.get("anyOf", ()), *schema.get("prefixItems", ()), schema.get("items", {})):
        numbers += bounds(option, strictly) if option and isinstance(option, dict) else []
    return numbers


def _written_out(schema: Any, definitions: Mapping[str, Any] | None = None) -> Any:
    """Replace references with their definitions."""
    if isinstance(schema, list):
        return [_written_out(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = schema.get("$defs", definitions)
    if "$ref" in schema:
        return _written_out((definitions or {})[schema["$ref"].rpartition("/")[2]], definitions)
    return {name: _written_out(each, definitions) for name, each in schema.items() if name != "$defs"}


def _number(schema: Mapping[str, Any], rng: Random, *, whole: bool) -> float:
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))
    default = schema.get("default")
    if default:
        value = default * 10 ** rng.uniform(-DECADES, DECADES)
    elif low > 0 or (low == 0 and high < math.inf):
        top = high if high < math.inf else SPAN * low
        value = top * SPAN ** -rng.random()
    else:
        value = rng.uniform(low if low > -math.inf else -10.0, high if high < math.inf else 10.0)
    value = min(max(value, low), high)
    room = min(high, low + 1.0) - low
    if value == schema.get("exclusiveMinimum"):
        value += 0.01 * room
    if value == schema.get("exclusiveMaximum"):
        value -= 0.01 * room
    return max(math.ceil(low) if low > -math.inf else -10, round(value)) if whole else float(f"{value:.4g}")
