"""The base of all that a scenario file is checked against: no unknown keys, no nan, no infinity, strict types.

Pydantic takes true for the number 1, "1" for 1, and 'off' for false. In a settings file each of them is a slip.
"""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from edgefl.config.unit_slips import with_unit
from edgefl.config.yaml_nodes import scalar
from edgefl.errors import quoted


class Strict(BaseModel):
    """A frozen model that takes numbers only as numbers and true or false only as that."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _strict(cls, value: Any, info: ValidationInfo) -> Any:
        assert info.field_name is not None
        for wrong, wanted in _wrong(value, cls.model_fields[info.field_name].annotation):
            # braces are the syntax of pydantic's templates
            message = {
                "message": f"must be {wanted}, got {quoted(wrong)}{_remedy(wrong, wanted, info.field_name)}"
            }
            raise PydanticCustomError("strict", "{message}", message)
        # -0.0 is a 0, but NumPy refuses it as a deviation
        return 0.0 if isinstance(value, float) and value == 0 else value


def _wrong(value: Any, annotation: Any) -> Iterator[tuple[Any, str]]:
    """Yield what in a value has the wrong type, and what is wanted; other faults are left to pydantic."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _wrong(value, arguments[0])
    elif origin in (Union, types.UnionType):
        options = [option for option in arguments if option is not type(None)]
        faults = [next(_wrong(value, option), None) for option in options]
        if value is not None and None not in faults:
            yield value, " or ".join(fault[1] for fault in faults if fault)
    elif origin is Literal:
        if value not in arguments or type(value) not in map(type, arguments):
            yield value, " or ".join(quoted(option) for option in arguments)
    elif isinstance(value, list | tuple) and origin in (list, tuple):
        inner = [arguments[0]] * len(value) if origin is list or arguments[-1:] == (...,) else arguments
        for item, kind in zip(value, inner, strict=False):
            yield from _wrong(item, kind)
    elif isinstance(value, dict) and origin is dict:
        for item in value.values():
            yield from _wrong(item, arguments[1])
    elif annotation is bool and not isinstance(value, bool):
        yield value, "true or false"
    elif annotation in (int, float) and (value is None or isinstance(value, bool | str)):
        yield value, "a whole number" if annotation is int else "a number"


def _remedy(value: Any, wanted: str, key: str) -> str:
    """Say how a text that stands for a number is written."""
    if not isinstance(value, str) or "number" not in wanted:
        return ""
    if remedy := with_unit(key, value):
        return remedy
    try:
        if isinstance(scalar(value), int | float):
            return ": write it without quotes"
        decimal = int(value) if value.isdecimal() else int(value, 0)
    except ValueError:
        return ""
    return f": write {decimal}"
