"""Reduce pydantic's errors about a value of several types to those about the type that was meant."""

from collections.abc import Mapping, Sequence
from typing import Any

CONTAINERS = ("dict[", "tuple[", "'tuple[", "list[")
TYPES = (*CONTAINERS, "literal[", "constrained-", "str", "int", "float")
# the value has another type, in pydantic's words, and what the type is called in a message
MISFITS = {
    "string_type": "text",
    "dict_type": "a mapping of keys to values",
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("int_type", "float_type"), "a number"),
}


def of_one_type(errors: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return errors without the names of types in their places, and without errors about types that were not meant.

    If a value has none of the types, one error names them all. Only fields that allow a list or a mapping are
    considered, since the name of another type, such as str, may also be a key.
    """
    errors = list(errors)
    places = {
        error["loc"][:at] for error in errors for at, part in enumerate(error["loc"]) if _is(part, CONTAINERS)
    }
    for place in sorted(places, key=len):
        at = len(place)
        own = [one for one in errors if one["loc"][:at] == place and _is((*one["loc"][at:], "")[0], TYPES)]
        if len({one["loc"][at] for one in own}) < 2:
            continue
        meant = [one for one in own if len(one["loc"]) > at + 1 or not _other_type(one)]
        first = errors.index(own[0])
        kept: list[Mapping[str, Any]] = [
            {**one, "loc": (*place, *one["loc"][at + 1 :])} for one in meant
        ] or [_of_all(place, own)]
        errors = (
            [one for one in errors[:first] if one not in own]
            + kept
            + [one for one in errors[first:] if one not in own]
        )
    return errors


def _is(part: Any, beginnings: tuple[str, ...]) -> bool:
    return isinstance(part, str) and part.startswith(beginnings)


def _other_type(error: Mapping[str, Any]) -> bool:
    return error["type"] in (*MISFITS, "literal_error")


def _of_all(place: tuple[Any, ...], errors: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    named = [MISFITS.get(one["type"]) or str(one["msg"]).removeprefix("Input should be ") for one in errors]
    *others, last = dict.fromkeys(named)
    message = f"must be {', '.join(others)}{' or ' if others else ''}{last}"
    return {**errors[0], "type": "union", "loc": place, "msg": message}
