"""Base class of all models that check a scenario file: it refuses unknown keys, nan, infinity and wrong types.

Pydantic accepts true for the number 1, "1" for 1, and 'off' for false; in a settings file each of these is a mistake.
"""

import itertools
import logging
import types
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from edgefl.config.clock import Words
from edgefl.config.scenario_files import located
from edgefl.config.units import with_unit
from edgefl.config.yaml_nodes import scalar
from edgefl.errors import EdgeflError, quoted

Model = TypeVar("Model", bound=BaseModel)
BRITISH = {"center": "centre", "neighbor": "neighbour", "color": "colour", "optimizer": "optimiser"}
log = logging.getLogger(__name__)


class Strict(BaseModel):
    """A frozen model that accepts only numbers as numbers, and only true or false as booleans."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self).model_fields and self.model_config.get("frozen"):
            raise EdgeflError(
                f"{name} cannot be assigned, since a scenario is frozen: make a changed copy, such as"
                " scenario.with_(radio__bandwidth_hz=5e7)"
            )
        super().__setattr__(name, value)

    @model_validator(mode="before")
    @classmethod
    def _spelled(cls, values: Any) -> Any:
        return _british(values, cls.model_fields) if isinstance(values, dict) else values

    @field_validator("*", mode="before")
    @classmethod
    def _strict(cls, value: Any, info: ValidationInfo) -> Any:
        assert info.field_name is not None
        field = cls.model_fields[info.field_name]
        if _reads_text(field.metadata):
            return value
        if slip := _slip(value, field.annotation):
            wrong, right = slip
            remedy = _of_none(value, field) or _remedy(wrong, right, info.field_name)
            # pydantic's templates interpret braces
            message = {"message": f"must be {right}, got {quoted(wrong)}{remedy}"}
            raise PydanticCustomError("strict", "{message}", message)
        value = located(value, field.annotation)
        # NumPy rejects a standard deviation of -0.0
        return 0.0 if isinstance(value, float) and value == 0 else value


def one_of(model: Model, what: str) -> Model:
    """Return the model if exactly one of its fields is given.

    Args: what: word for such a field in the error message, e.g. `shape`.

    Raises:
        ValueError: no field is given, or several are; the message names the fields.
    """
    given = [name for name in type(model).model_fields if getattr(model, name) is not None]
    if len(given) != 1:
        names = ", ".join(type(model).model_fields)
        raise ValueError(f"set one {what} ({names}), got {' and '.join(given) or 'none'}")
    return model


def _british(keys: Mapping[Any, Any], known: Container[str]) -> dict[Any, Any]:
    """Replace American spellings of known keys with the British ones, such as `center_m` with `centre_m`."""
    read = {}
    for key, value in keys.items():
        ours = "_".join(BRITISH.get(word, word) for word in key.split("_")) if isinstance(key, str) else key
        if ours != key and key not in known and ours in known and ours not in keys:
            _note_spelling(key, ours)
            key = ours
        read[key] = value
    return read


@cache
def _note_spelling(key: str, ours: str) -> None:
    log.warning("note: %s is read as %s; write it that way to avoid this note", key, ours)


def _slip(value: Any, kind: Any) -> tuple[Any, str] | None:
    """Return the first part of a value with a wrong type, and name the right type; None if all types are right."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return None if _reads_text(inner[1:]) else _slip(value, inner[0])
    if origin in (Union, types.UnionType):
        slips = [_slip(value, option) for option in inner if option is not type(None)]
        fits = value is None or None in slips
        return None if fits else (value, " or ".join(slip[1] for slip in slips if slip))
    if origin is Literal:
        fits = any(value == option and type(value) is type(option) for option in inner)
        return None if fits else (value, " or ".join(map(quoted, inner)))
    if kind is bool:
        return None if isinstance(value, bool) else (value, "true or false")
    if kind in (int, float):
        fits = value is not None and not isinstance(value, bool | str)
        return None if fits else (value, "a whole number" if kind is int else "a number")
    return next(filter(None, itertools.starmap(_slip, _items(value, origin, inner))), None)


def _reads_text(metadata: Iterable[Any]) -> bool:
    """Return whether annotations allow a number to be written as text, which class `Words` then checks."""
    return any(isinstance(mark, Words) for mark in metadata)


def _items(value: Any, origin: Any, inner: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """Pair the items of a list, tuple or mapping with the types they must have; yield nothing for other values."""
    if origin is dict and isinstance(value, dict):
        return zip(value.values(), itertools.repeat(inner[1]), strict=False)
    if origin in (list, tuple) and isinstance(value, list | tuple):
        alike = origin is list or inner[-1:] == (...,)
        return zip(value, itertools.repeat(inner[0]) if alike else inner, strict=False)
    return ()


def _of_none(value: Any, field: FieldInfo) -> str:
    """Suggest how to write null, or what to write where null is not allowed; '' if neither applies."""
    if value is None:
        return "" if field.is_required() else ": null is not allowed here; leave the key out for its default"
    may_be_none = type(None) in get_args(field.annotation)
    return ": write null for none" if may_be_none and str(value).lower() == "none" else ""


def _remedy(value: Any, right: str, key: str) -> str:
    """Suggest how to write a number that was given as text; '' if unsure."""
    if not isinstance(value, str) or "number" not in right:
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
