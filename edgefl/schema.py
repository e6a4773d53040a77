"""The JSON Schema (draft 2020-12) of scenarios and studies: editors complete and check with it while one types.

A schema is stricter than words and looser than a run: it knows each key, its type, range and choices, but not how
keys depend on one another; `edgefl validate` does.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from edgefl import registry
from edgefl.component import parameters_of
from edgefl.errors import EdgeflError
from edgefl.meaning import meaning
from edgefl.scenario_fields import MARK
from edgefl.units_of_keys import unit_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"
OUTSIDE = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$"  # module:Class, a component of one's own
Json = dict[str, Any]


def schema(of: str) -> Json:
    """Return the schema of a `scenario` or a `study` file.

    Raises:
        EdgeflError: there is no other.
    """
    if of == "scenario":
        from edgefl.scenario import Scenario

        return {"$schema": DIALECT, **Scenario.model_json_schema()}
    if of == "study":
        return _study()
    raise EdgeflError(f"no schema '{of}'{registry.did_you_mean(of, ['scenario', 'study'])}")


def complete(raw: Json) -> Json:
    """Complete what pydantic knows of a scenario: every component with its parameters, and units.

    Args:
        raw: of pydantic; fields that hold a component are marked.
    """
    definitions = raw.setdefault("$defs", {})
    kinds: set[str] = set()
    whole: Json = _filled(raw, definitions, kinds)
    whole["$defs"] |= {kind: _kind(kind) for kind in sorted(kinds)}
    return whole


def _filled(node: Any, definitions: Mapping[str, Any], kinds: set[str], key: str = "") -> Any:
    """Return a part of the schema with references in place of marked fields, defaults of values, and units."""
    if isinstance(node, list):
        return [_filled(each, definitions, kinds) for each in node]
    if not isinstance(node, dict):
        return node
    if MARK in node:
        return _component_field(node, kinds)
    filled: Json = {}
    for name, value in node.items():
        if name == "properties":
            filled[name] = {k: _filled(v, definitions, kinds, k) for k, v in value.items()}
        elif name not in ("title", "default"):
            filled[name] = _filled(value, definitions, kinds)
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
    if default:  # parameters without a name are the default's
        options.append(_parameters(kind, default, named=False))
    if mark["optional"]:
        options.append({"type": "null"})
    field: Json = {"description": node.get("description", "")}
    if isinstance(node.get("default"), str):
        field["default"] = node["default"]
    return field | (options[0] if len(options) == 1 else {"oneOf": options})


def _kind(kind: str) -> Json:
    """Return the schema of a component: its name alone, or its name and parameters."""
    names = registry.names(kind)
    alone = [name for name in names if not _required(kind, name)]
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


def _required(kind: str, name: str) -> list[str]:
    fields = parameters_of(registry.get(kind, name)).model_fields
    return [key for key, field in fields.items() if field.is_required()]


def _parameters(kind: str, name: str, *, named: bool) -> Json:
    """Return the schema of a component's mapping; not named: without the key `name`."""
    component = registry.get(kind, name)
    plain = _inlined(parameters_of(component).model_json_schema())
    filled = _filled(plain, {}, set())
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
    """Return a schema whose definitions stand where they are used."""
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


def _study() -> Json:
    from edgefl.scenario import Scenario
    from edgefl.studies import Study

    base = Scenario.model_json_schema()
    keys = {key: value for key, value in _dotted(base, base) if key != "seed"}
    open_ended = [key.replace(".", r"\.") for key, value in keys.items() if _open_ended(value)]
    overrides = {
        "type": ["object", "null"],
        "description": "dotted keys of the scenario, and their values in place of the base scenario's",
        "properties": keys,
        "patternProperties": {rf"^{key}\..+$": {} for key in open_ended},
        "additionalProperties": False,
    }
    whole = _filled(Study.model_json_schema(), {}, set())
    properties = whole["properties"]
    properties["variants"]["additionalProperties"] = {"$ref": "#/$defs/overrides"}
    points = {"type": "object", "additionalProperties": {"$ref": "#/$defs/overrides"}, "minProperties": 1}
    values = {"type": "array", "minItems": 1}
    properties["grid"]["additionalProperties"] = {"oneOf": [points, values]}
    return {
        "$schema": DIALECT,
        **whole,
        "$defs": {**whole.get("$defs", {}), **base["$defs"], "overrides": overrides},
    }


def _dotted(node: Json, root: Json, before: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the dotted key of every section and value, with its schema."""
    for key, value in node.get("properties", {}).items():
        yield before + key, value
        options = [value, *value.get("anyOf", ())]
        for reference in (each.get("$ref", "").rpartition("/")[2] for each in options):
            section = root["$defs"].get(reference, {})
            if "properties" in section:
                yield from _dotted(section, root, f"{before}{key}.")


def _open_ended(node: Json) -> bool:
    """Whether a dotted key may go on below: parameters of a component, or something that a user names."""
    options = [node, *(each for way in ("anyOf", "oneOf") for each in node.get(way, ()))]
    named = {f"#/$defs/{kind}" for kind in registry.KINDS}
    return any(each.get("$ref") in named or "patternProperties" in each for each in options)
