"""Suggest how to write a plain value, or a key with dots, that stands where a section or text is expected."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from edgefl.config.gone_keys import ABROAD
from edgefl.errors import clipped


def plain_value(error: Mapping[str, Any], wanted: type[BaseModel] | None, place: Sequence[str]) -> str:
    """Suggest a remedy for a wrong value; '' if unsure.

    Args:
        error: pydantic's error about the value.
        wanted: the model that the value should fit.
        place: the value's key; a section whose name is another program's key is written as in edgefl.
    """
    given = error["input"]
    if error["type"] == "string_type" and isinstance(given, bool | int | float):
        return ": write it in quotes"
    if error["type"] in ("model_type", "dict_type") and given is None:
        return ": are the lines below indented?"
    if error["type"] != "model_type" or wanted is None or not isinstance(given, str | int | float):
        return ""
    if isinstance(given, int) and not isinstance(given, bool) and place and place[-1] in ABROAD:
        return f": write {nested(ABROAD[place[-1]], given)}"
    own = [key for key in wanted.model_fields if not _faults(wanted, {key: given}, key)]
    whole = [key for key in own if not _faults(wanted, {key: given})]
    sure = next((keys for keys in (whole, own) if len(keys) == 1), [])
    if not own:
        return ""
    further = "" if whole else ", ..."  # other keys that the section needs
    return f": write {'' if sure else 'keys, such as '}{{{(sure or own)[0]}: {_shown(given)}{further}}}"


def nested(key: str, value: Any) -> str:
    """Return a key with dots and its value as nested sections: `radio: {link: {harq_bler: 0.1}}`."""
    outer, *inner = map(clipped, key.split("."))
    text = _shown(value)
    for part in reversed(inner):
        text = f"{{{part}: {text}}}"
    return f"{outer}: {text}"


def _shown(value: Any) -> str:
    return clipped(str(value)) if isinstance(value, str | int | float) else "..."


def _faults(model: type[BaseModel], values: Mapping[str, Any], key: str = "") -> bool:
    """Return whether a key's value is wrong, or, without a key, whether the model rejects the values."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        return not key or any(one["loc"][:1] == (key,) for one in error.errors())
    except ValueError:
        return True
    return False
