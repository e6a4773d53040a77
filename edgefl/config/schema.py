"""Extend pydantic's JSON Schema with every component and its parameters, and with units."""

from collections.abc import Mapping
from typing import Any

from edgefl.config import registry
from edgefl.config.component import meaning, parameters_of
from edgefl.config.scenario_fields import MARK
from edgefl.config.units import unit_of

OUTSIDE = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$"  # module:Class, a user's own component
Json = dict[str, Any]


def complete(raw: Json) -> Json:
    """Add every component with its parameters, and the keys' units, to a scenario's JSON Schema.

    Args:
        raw: schema from pydantic; fields that contain a component are marked.
    """
    definitions = raw.setdefault("$defs", {})
    kinds: set[str] = set()
    whole: Json = filled_in(raw, definitions, kinds)
    whole["$defs"] |= {kind: _kind(kind) for kind in sorted(kinds)}
    return whole


def filled_in(node: Any, definitions: Mapping[str, Any], kinds: set[str], key: str = "") -> Any:
    """Return part of a JSON Schema, with marked fields replaced by references, and with scalar defaults and units."""
    if isinstance(node, list):
        return [filled_in(each, definitions, kinds) for each in node]
    if not isinstance(node, dict):
        return node
    if MARK in node:
        return _component_field(node, kinds)
    filled: Json = {}
    for name, value in node.items():
        if name == "properties":
            filled[name] = {k: filled_in(v, definitions, kinds, k) for k, v in value.items()}
        elif name not in ("title", "default"):
            filled[name] = filled_in(value, definitions, kinds)
    if isinstance(node.get("default"), bool | int | float | str):
        filled["default"] = node["default"]
    reference = node.get("$ref", "").rpartition("/")[2]
    if "description" not in filled and reference in definitions:
        filled["description"] = definitions[reference].get("description", "").partition("\n")[0]
    unit = unit_of(key)
    if unit and "description" in filled:
        filled["description"] = f"{filled['description']} [{unit}]"
    return filled


def _component_field(node: Json, kinds: set[str]) -> Json:
    mark = node[MARK]
    kind, default = mark["kind"], mark["default"]
    kinds.add(kind)
    options: list[Json] = [{"$ref": f"#/$defs/{kind}"}]
    if default:  # parameters without a name belong to the default component
        options.append(_parameters(kind, default, named=False))
    if mark["optional"]:
        options.append({"type": "null"})
    field: Json = {"description": node.get("description", "")}
    if isinstance(node.get("default"), str):
        field["default"] = node["default"]
    return field | (options[0] if len(options) == 1 else {"oneOf": options})


def _kind(kind: str) -> Json:
    """Return the JSON Schema of all components of a kind, each written as a bare name or with parameters."""
    names = registry.names(kind)
    keys = {name: parameters_of(registry.get(kind, name)).model_fields.values() for name in names}
    alone = [name for name in names if not any(key.is_required() for key in keys[name])]
    return {
        "oneOf": [
            {"enum": alone, "enumDescriptions": [meaning(registry.get(kind, name)) for name in alone]},
            *(_parameters(kind, name, named=True) for name in names),
            {"type": "string", "pattern": OUTSIDE, "description": "module:Class, a component of your own"},
            {
                "type": "object",
                "properties": {"name": {"type": "string", "pattern": OUTSIDE}},
                "required": ["name"],
                "description": "a component of your own: its module:Class and its parameters",
            },
        ]
    }


def _parameters(kind: str, name: str, *, named: bool) -> Json:
    """Return the JSON Schema of a component's mapping of parameters, with or without the key `name`."""
    component = registry.get(kind, name)
    plain = _inlined(parameters_of(component).model_json_schema())
    filled = filled_in(plain, {}, set())
    own = {"name": {"const": name, "description": meaning(component)}} if named else {}
    required = [*own, *plain.get("required", [])]
    return {
        "title": name,
        "description": meaning(component),
        "type": "object",
        "properties": {**own, **filled.get("properties", {})},
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _inlined(schema: Json) -> Json:
    """Replace each reference in a JSON Schema by the definition that it refers to."""
    definitions = schema.pop("$defs", {})

    def replaced(node: Any) -> Any:
        if isinstance(node, list):
            return [replaced(each) for each in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            rest = {key: value for key, value in node.items() if key != "$ref"}
            node = {**definitions[node["$ref"].rpartition("/")[2]], **rest}
        return {key: replaced(value) for key, value in node.items()}

    whole: Json = replaced(schema)
    return whole
