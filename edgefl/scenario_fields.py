"""Fields of a scenario that name a component, a scheduler or a path-loss model."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from channel.schedulers import Scheduler
from edgefl import registry
from edgefl.component import Component
from edgefl.registry import did_you_mean


class Section(BaseModel):
    """A part of the scenario: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class Named:
    """Marks a field that holds a component: `fedprox` or `{name: fedprox, mu: 1.0}` in YAML.

    Parameters without a name are those of the default component, if the field has one.
    """

    kind: str
    default: str | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._parse, serialization=core_schema.plain_serializer_function_ser_schema(self._write)
        )

    def _parse(self, value: object) -> Component:
        if isinstance(value, Component):
            return value
        if isinstance(value, str):
            value = {"name": value}
        elif isinstance(value, dict) and self.default:
            value = {"name": self.default, **value}
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            raise ValueError(
                f"write a name or {{name: ..., parameters}}; `edgefl list {self.kind}` lists the names"
            )
        component = registry.get(self.kind, value["name"])
        try:
            return component.model_validate({k: v for k, v in value.items() if k != "name"})
        except ValidationError as error:
            # keep the places of the inner errors: they are unfolded when the message is written
            raise PydanticCustomError(
                "component", "invalid parameters", {"errors": error.errors(), "model": component}
            ) from error

    def _write(self, component: Component) -> dict[str, Any]:
        return {"name": registry.name_of(self.kind, component), **component.model_dump(mode="json")}


@dataclass(frozen=True)
class PathLossName:
    """Marks a field that names a path-loss model of `channel`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, core_schema.str_schema())

    def _check(self, value: str) -> str:
        registry.path_loss(value)
        return value


@dataclass(frozen=True)
class SchedulerName:
    """Marks a field that holds a scheduler of `channel`: `equal_share` or `{name: ..., parameters}`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._parse, serialization=core_schema.plain_serializer_function_ser_schema(self._write)
        )

    def _parse(self, value: object) -> Scheduler:
        if isinstance(value, Scheduler):
            return value
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, dict) or "name" not in value:
            raise ValueError(
                "write a name or {name: ..., parameters}; `edgefl list schedulers` lists the names"
            )
        parameters = {k: v for k, v in value.items() if k != "name"}
        scheduler = registry.scheduler(str(value["name"]))
        known = [field.name for field in fields(scheduler)]  # type: ignore[arg-type]  # all are dataclasses
        for key in parameters:
            if key not in known:
                raise ValueError(f"{value['name']} has no parameter '{key}'{did_you_mean(key, known)}")
        return scheduler(**parameters)

    def _write(self, scheduler: Scheduler) -> Any:
        return {"name": scheduler.name, **asdict(scheduler)}  # type: ignore[call-overload]
