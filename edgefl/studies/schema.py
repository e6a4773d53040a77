"""The JSON Schema (draft 2020-12) of scenarios and studies, for editors that complete and check keys as you type.

A schema checks each key, its type, range and choices, but not how keys depend on each other; `edgefl validate` does.
"""

from collections.abc import Iterator

from edgefl.config import registry
from edgefl.config.schema import Json, filled_in
from edgefl.errors import EdgeflError
from edgefl.scenario.scenario import Scenario
from edgefl.studies.study_file import Study

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(of: str) -> Json:
    """Return the schema of a `scenario` or a `study` file."""
    if of == "scenario":
        return {"$schema": DIALECT, **Scenario.model_json_schema()}
    if of == "study":
        return _study()
    raise EdgeflError(f"no schema '{of}'{registry.did_you_mean(of, ['scenario', 'study'])}")


def _study() -> Json:
    base = Scenario.model_json_schema()
    keys = {key: value for key, value in _dotted(base, base) if key != "seed"}
    open_ended = [key.replace(".", r"\.") for key, value in keys.items() if _open_ended(value)]
    overrides = {
        "type": ["object", "null"],
        "description": "dotted keys of the scenario, with values that replace those of the base scenario",
        "properties": keys,
        "patternProperties": {rf"^{key}\..+$": {} for key in open_ended},
        "additionalProperties": False,
    }
    whole = filled_in(Study.model_json_schema(), {}, set())
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
    """Whether a dotted key may have further parts: parameters of a component, or names that the user chooses."""
    options = [node, *(each for way in ("anyOf", "oneOf") for each in node.get(way, ()))]
    named = {f"#/$defs/{kind}" for kind in registry.KINDS}
    return any(each.get("$ref") in named or "patternProperties" in each for each in options)
