"""Find examples of keys and components in the shipped scenarios."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import yaml
from pydantic import BaseModel

from edgefl.config import shipped
from edgefl.config.units import yaml_number
from edgefl.config.yaml_source import Dumper, Source

MOST_LINES = 12  # maximum number of lines of an example; longer examples are avoided
FIRST = ("quickstart", "handover_hexagonal", "commute_clock", "city_day")  # readers know these files best
SOME = 3  # maximum number of parameters in an example of a component that no scenario uses


def of(dotted: str, name: str | None = None, parameters: type[BaseModel] | None = None) -> list[str]:
    """Return an example of a key or of a component, from a shipped scenario or with defaults.

    Args:
        name: name of the component.
        parameters: the component's parameters.
    """
    found = [(file, value) for file, value in _used(dotted) if name is None or _name(value) == name]
    if found:
        texts = [(file, _nested(dotted, value)) for file, value in found]
        fitting = [text for text in texts if len(text[1]) <= MOST_LINES] or [
            min(texts, key=lambda t: len(t[1]))
        ]
        known = [text for text in fitting if text[0] in FIRST]
        file, lines = max(known or fitting, key=lambda text: len("".join(text[1])))
        return [f"Example, from scenario {file}:", *lines]
    if name is None or parameters is None:
        return []
    fields = parameters.model_fields.items()
    if any(field.is_required() for _, field in fields):
        return []
    plain = {key: field.default for key, field in fields if isinstance(field.default, int | float | str)}
    return ["Example:", *_nested(dotted, {"name": name, **dict(list(plain.items())[:SOME])})]


def _used(dotted: str) -> Iterator[tuple[str, Any]]:
    for file, data in _scenarios().items():
        value: Any = data
        for key in dotted.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            yield file, value


@cache
def _scenarios() -> dict[str, dict[str, Any]]:
    return {file: Source(path).data for file, path in shipped.names("scenario").items()}


def _name(value: Any) -> str | None:
    return value.get("name") if isinstance(value, dict) else value


def _nested(dotted: str, value: Any) -> list[str]:
    """Write a value as YAML below its nested keys; short values take one line."""
    *above, last = dotted.split(".")
    flow = _dumped({last: value}, default_flow_style=True, width=10_000).strip()[1:-1]
    text = [flow] if len(flow) <= 90 else _dumped({last: value}).rstrip().split("\n")
    lines = [f"{'  ' * depth}{key}:" for depth, key in enumerate(above)]
    return [f"  {line}" for line in [*lines, *(f"{'  ' * len(above)}{line}" for line in text)]]


def _dumped(data: Any, **style: Any) -> str:
    return yaml.dump(data, Dumper=_Readable, sort_keys=False, **style)


class _Readable(Dumper):
    """A YAML dumper that writes large numbers as the documentation does: 100.0e+6."""


def _number(dumper: Dumper, number: float) -> yaml.ScalarNode:
    text = yaml_number(number)
    return (
        dumper.represent_scalar("tag:yaml.org,2002:float", text)
        if "e+" in text and "." in text
        else dumper.represent_float(number)
    )


_Readable.add_representer(float, _number)
