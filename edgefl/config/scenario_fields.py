"""Base class of a scenario's sections, and the annotation of fields that contain a component."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from edgefl.config import registry
from edgefl.config.component import SHAPES, AnyComponent, build, parameters_of, values_of
from edgefl.config.strict import Strict

MARK = "x-edgefl-component"  # key that marks a component's field in a JSON schema


class Section(Strict):
    """Base class of a scenario's sections, which are frozen and refuse unknown keys."""


def given_keys(section: object) -> dict[str, Any] | None:
    """Return the keys given in a section or mapping, including null ones; None for any other value."""
    if isinstance(section, Section):
        return {
            key: getattr(section, key)
            for key in type(section).model_fields
            if key in section.model_fields_set
        }
    return dict(section) if isinstance(section, Mapping) else None


@dataclass(frozen=True)
class Named:
    """Mark a field that contains a component: `fedprox` or `{name: fedprox, mu: 1.0}` in YAML.

    Parameters without a name belong to the field's default component, if there is one.
    """

    kind: str
    default: str | None = None
    short: bool = False  # whether a component without parameters is written as its bare name
    optional: bool = False  # whether null is allowed

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._parse, serialization=core_schema.plain_serializer_function_ser_schema(self._write)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Mark the field in the JSON Schema; `edgefl.studies.schema` adds each kind's components once."""
        return {MARK: {"kind": self.kind, "default": self.default, "optional": self.optional}}

    def _parse(self, value: object) -> AnyComponent | None:
        if value is None and self.optional:
            return None
        if isinstance(value, SHAPES):
            return value
        if isinstance(value, str):
            value = {"name": value}
        unnamed = isinstance(value, dict) and "name" not in value
        if isinstance(value, dict) and self.default:
            value = {"name": self.default, **value}
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            default = ", or leave it out for its default" if value is None and self.default else ""
            hint = f"{default}; `edgefl list {self.kind}` lists the names"
            for key in value if isinstance(value, dict) else ():
                if near := registry.nearest(str(key), registry.names(self.kind)):
                    hint = f": did you mean {{name: {near}, ...}}?"
            raise ValueError(f"write a name or {{name: ..., parameters}}{hint}")
        component = registry.get(self.kind, value["name"])
        try:
            return build(component, {k: v for k, v in value.items() if k != "name"})
        except ValidationError as error:
            # keep the inner errors' places for the message
            raise PydanticCustomError(
                "component",
                "invalid parameters",
                {
                    "errors": error.errors(),
                    "model": parameters_of(component),
                    "unnamed": (self.kind, value["name"]) if unnamed else None,
                },
            ) from error

    def _write(self, component: AnyComponent | None) -> dict[str, Any] | str | None:
        if component is None:
            return None
        name, values = registry.name_of(self.kind, component), values_of(component)
        return name if self.short and not values else {"name": name, **values}
