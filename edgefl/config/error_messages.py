"""Translate pydantic's errors into edgefl's messages, with one short line for each wrong key."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from edgefl.config.component import Component
from edgefl.config.gone_keys import ABROAD, GONE, MOVED, NEW_NAMES
from edgefl.config.plain_values import nested, plain_value
from edgefl.config.registry import KINDS, did_you_mean, names, nearest
from edgefl.config.union_errors import of_one_type
from edgefl.config.units import unit_slip
from edgefl.config.yaml_faults import colon_missing
from edgefl.errors import quoted

Place = tuple[str, ...]
LONGEST_KEY = 40
LONGEST_LINE = 600
LONGEST_MESSAGE = 2_000
MOST_PLACES = 3  # maximum number of places of a key in a message
MOST_SLIPS = 20  # maximum number of unknown keys that are compared with missing ones
_WORDS = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("model_type", "dict_type"), "must be a mapping of keys to values"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    "string_type": "must be text",
    "string_pattern_mismatch": "does not have the required form",
}
# pydantic's phrases, longer ones first, and shorter replacements
_SHORTER = {
    **dict.fromkeys(("Dictionary should", "List should", "Tuple should", "String should"), "must"),
    "Input should be": "must be",
    " after validation": "",
    "greater than or equal to": ">=",
    "less than or equal to": "<=",
    "greater than": ">",
    "less than": "<",
}
KEY = "[key]"  # pydantic's name for the place of a key, rather than a value, in a mapping
_PAIR = ("missing", "extra_forbidden")


@dataclass(frozen=True)
class _Fault:
    """An error at a key of the document, with a function that makes the message on request."""

    place: Place
    message: Callable[[], str]


def dotted(place: Place) -> str:
    """Join the parts of a key's place by dots; quote and truncate parts that are long or not printable."""
    return ".".join(
        part if len(part) <= LONGEST_KEY and part.isprintable() else quoted(part) for part in place
    )


def in_short(lines: Iterable[str], count: int) -> str:
    """Join the first of `count` lines into at most LONGEST_MESSAGE characters; state the number of lines left out."""
    shown: list[str] = []
    room = LONGEST_MESSAGE - len(f"\nand {count} more")
    for line in lines:
        short = line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."
        room -= len(short) + 1
        if room < 0:
            break
        shown.append(short)
    return "\n".join([*shown, *([f"and {count - len(shown)} more"] if len(shown) < count else [])])


def flat(
    errors: Sequence[Any],
    model: type[BaseModel] | None,
    unnamed: tuple[str, str] | None = None,
    root: type[BaseModel] | None = None,
) -> list[_Fault]:
    """Flatten pydantic's errors, including those nested in the errors of components.

    Args:
        unnamed: kind and name of the field's default component, if the value with these errors names no component.
        root: the whole document's model, to find where a misplaced key belongs; None if only a section is checked.
    """
    faults: list[_Fault] = []
    errors = of_one_type(errors)
    for error in errors:
        place = tuple(str(part) for part in error["loc"])
        if _is_option(place, model):
            place = place[:-1]
            if error["type"] == "literal_error":
                continue  # the key also allows a number, and only pydantic's error about the number is reported
        context: Mapping[str, Any] = error.get("ctx", {})
        if error["type"] == "too_short" and len(error["input"]) >= context["min_length"]:
            continue  # pydantic counts the valid items only, and the others have errors of their own
        if error["type"] == "component":
            inner = flat(context["errors"], context["model"], context["unnamed"])
            faults += [_Fault((*place, *fault.place), fault.message) for fault in inner]
        else:
            # a check of several keys names the faulty key in its error
            named = getattr(context.get("error"), "place", ())
            place = named if named[: len(place)] == place else place
            own = place[:-1] if place[-1:] == (KEY,) else place
            faults.append(_Fault(own, partial(_message, error, place, model, unnamed, root)))
    doubled = _keys_of_empty_sections(errors, model) | _meant_by_others(errors, model)
    return [_of_gone_keys(fault) for fault in faults if fault.place not in doubled]


def _of_gone_keys(fault: _Fault) -> _Fault:
    """Explain a key of an earlier version or another program: why it was removed, or what edgefl calls it now."""
    key = ".".join([part for part in fault.place if not part.isdigit()][-2:])
    if key in MOVED:
        now = f"has moved to another section: write {dotted((*fault.place[:-1], MOVED[key]))}"
    elif key in NEW_NAMES:
        now = f"has a new name: write {dotted((*fault.place[:-1], NEW_NAMES[key]))}"
    elif key in GONE:
        now = f"was removed: {GONE[key]}"
    elif "." in key and key in ABROAD:
        now = f"unknown key; edgefl calls it {ABROAD[key]}"
    else:
        return fault

    def told() -> str:
        text = fault.message()
        return now if text.startswith("unknown key") else text

    return _Fault(fault.place, told)


def _meant_by_others(errors: Sequence[Any], model: type[BaseModel] | None) -> set[Place]:
    """Return missing keys that are present but misspelled; the error on the misspelled key names the right key."""
    places = {kind: [tuple(map(str, one["loc"])) for one in errors if one["type"] == kind] for kind in _PAIR}
    return {
        missing
        for missing in places["missing"]
        for unknown in places["extra_forbidden"][:MOST_SLIPS]
        if missing[:-1] == unknown[:-1] and nearest(unknown[-1], _known(model, unknown)) == missing[-1]
    }


def _known(model: type[BaseModel] | None, place: Place) -> list[str]:
    parent = _model_at(model, place[:-1])
    return sorted(parent.model_fields) if parent else []


def _keys_of_empty_sections(errors: Sequence[Any], model: type[BaseModel] | None) -> set[Place]:
    """Return unknown keys that look like the unindented body of an empty section, which already has its own error."""
    empty = [
        error["loc"]
        for error in errors
        if error["type"] in ("model_type", "dict_type") and error["input"] is None
    ]
    sections = [_model_at(model, tuple(map(str, section))) for section in empty]
    known = {key for section in sections if section for key in section.model_fields}
    unknown = (tuple(map(str, error["loc"])) for error in errors if error["type"] == "extra_forbidden")
    return {place for place in unknown if place[-1] in known}


def _message(
    error: Mapping[str, Any],
    place: Place,
    model: type[BaseModel] | None,
    unnamed: tuple[str, str] | None,
    root: type[BaseModel] | None,
) -> str:
    parent = _model_at(model, place[:-1])
    if error["type"] == "extra_forbidden":
        if named := _named(model, place[:-1]):
            return f"unknown key{named}"
        if parent and place[-1] in parent.__class_vars__:
            own = f", or inherit from {parent.__name__}" if issubclass(parent, Component) else ""
            return f"is now a constant, {getattr(parent, place[-1])}: leave it out{own}"
        return _unknown(error, place[-1], _known(model, place), unnamed, root)
    field = parent.model_fields.get(place[-1]) if parent and place else None
    meaning = f" ({field.description})" if field and field.description else ""
    if place and place[-1] == KEY and error["type"] == "literal_error":
        allowed = re.findall("'([^']+)'", error["ctx"]["expected"])
        return f"unknown key{did_you_mean(str(error['input']), allowed)}"
    if place and place[-1] == KEY:
        meaning = " (a-z or A-Z, then a-z, A-Z, 0-9, _ and -)"
    if error["type"] == "missing":
        return f"is missing; add it{meaning}"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] == "string_pattern_mismatch" and meaning.startswith(" (a-z"):
        return f"got {quoted(error['input'])}: use only {meaning[2:-1]}"
    text = _WORDS.get(error["type"]) or str(error["msg"])
    for words, shorter in _SHORTER.items():
        text = text.replace(words, shorter)
    if error["type"] != "strict":  # the message of a strict error already contains the value
        remedy = (
            _named(model, place)
            or plain_value(error, _model_at(model, place), place)
            or unit_slip(place, error, field)
        )
        text = f"{text}, got {quoted(error['input'])}{remedy}"
    return f"{text}{meaning}"


def _unknown(
    error: Mapping[str, Any],
    key: str,
    known: list[str],
    unnamed: tuple[str, str] | None,
    root: type[BaseModel] | None,
) -> str:
    if key.isdigit() and error["input"] is None:  # YAML reads {mu: 0,1} as a mapping of mu and 1
        return "unknown key; if the comma before it is a decimal comma, write a point, as in 0.1"
    if error["input"] is None and (" " in key or ":" in key):  # {mu 0.1} and {mu:0.1} map a key to null
        return f"unknown key; {colon_missing(key)}"
    if "." in key and key.partition(".")[0] in known:
        return f"unknown key; write the sections one inside the other: {nested(key, error['input'])}"
    if unnamed and not nearest(key, known):
        kind, default = unnamed
        meant = nearest(key, names(kind))
        write = f"did you mean {{name: {meant}, ...}}?" if meant else f"write {{name: ..., {key}: ...}}"
        return f"unknown key of {default}, the default if no name is given: {write}"
    if (here := _here(key, known, root)) and not nearest(key, known):
        return f"unknown key; edgefl calls it {here}"
    near = nearest(key, known) or (
        _beginning(key, known) if root and set(known) != set(root.model_fields) else ""
    )
    # a section with a `name` is meant as a component; the name of the scenario is not what it lacks
    if root and not near and key != "name" and (elsewhere := _place_of(key, root)):
        return f"unknown key here; {elsewhere}"
    return f"unknown key{did_you_mean(near or key, known)}" if known else "this component takes no parameters"


def _beginning(key: str, known: list[str]) -> str:
    """Return the known key with which an unknown key begins, as noise_std begins with noise, or ''."""
    return next((name for name in known if key.startswith(f"{name}_")), "")


def _here(key: str, known: list[str], root: type[BaseModel] | None) -> str:
    """Return edgefl's name for another tool's key; '' if this document lacks the key, as a study lacks `stop`."""
    here = ABROAD.get(key, "")
    top, _, below = here.partition(".")
    there = top in root.model_fields if root else bool(below)  # without root, the kind of document is unknown
    return here if there or top in known else ""


def _place_of(key: str, root: type[BaseModel]) -> str:
    """Return a phrase that names the sections to which a misplaced key belongs; '' if no section has the key."""
    schema = _schema(root)
    places = list(_places(key, schema, schema.get("$defs", {}), ()))
    sections = [place for place, names in places if not names]
    parts = [f"{place} ({', '.join(names)})" for place, names in places if names]
    if sections:
        return f"write {' or '.join(sections[:MOST_PLACES])}"
    return f"it belongs to {' or to '.join(parts[:MOST_PLACES])}" if parts else ""


@cache
def _schema(root: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of the document's model, cached, since each misplaced key needs it."""
    return root.model_json_schema()


def _places(
    key: str, section: dict[str, Any], definitions: dict[str, Any], above: tuple[str, ...]
) -> Iterator[tuple[str, list[str]]]:
    """Yield each place of a key: its dotted name and [], or a component's place and the components that have the key.

    If the key is a component's name, yield the text with which a scenario selects this component, and [].
    """
    for name, value in section.get("properties", {}).items():
        place = (*above, name)
        if name == key:
            yield ".".join(place), []
        options = [value, *value.get("anyOf", ()), *value.get("oneOf", ())]
        for kind in (option.get("$ref", "").rpartition("/")[2] for option in options):
            inner = definitions.get(kind, {})
            if kind in KINDS:
                if any(one.get("title") == key.lower() for one in inner["oneOf"]):
                    yield f"{'.'.join(place)}: {{name: {key.lower()}, ...}}", []
                having = [
                    one["title"] for one in inner["oneOf"] if "title" in one and key in one["properties"]
                ]
                if having and key != "name":
                    yield ".".join(place), having
            else:
                yield from _places(key, inner, definitions, place)


def _is_option(place: Place, model: type[BaseModel] | None) -> bool:
    """Return whether the last part of an error's place is not a key, but one of the types allowed for the key."""
    if len(place) < 2 or not place[-1].startswith(("float", "int", "constrained-", "literal[", "tuple[")):
        return False
    parent = _model_at(model, place[:-2])
    return parent is not None and place[-2] in parent.model_fields and _model_at(model, place[:-1]) is None


def _named(model: type[BaseModel] | None, place: Place) -> str:
    """Suggest the missing name if a section's key is written where a section's name is expected; otherwise ''."""
    item = _model_at(model, place)
    if item is None or not place or place[-1] not in item.model_fields or _model_at(model, place[:-1]):
        return ""
    return f"; a name is missing: write {dotted(place[:-1])}: {{NAME: {{{place[-1]}: ...}}}}"


def _model_at(model: type[BaseModel] | None, place: Sequence[str]) -> type[BaseModel] | None:
    """Return the pydantic model that validates a place of the document, or None if no model does."""
    annotation: Any = model
    for part in place:
        one = _model(annotation)
        if one is not None:
            field = one.model_fields.get(part)
            annotation = field.annotation if field else None
        else:  # this part of the place is an item of a list or mapping
            inner = [kind for option in _options(annotation) for kind in get_args(option)]
            annotation = next((kind for kind in inner if _model(kind)), None)
    return _model(annotation)


def _model(annotation: Any) -> type[BaseModel] | None:
    """Return the first pydantic model among the types of an annotation, or None."""
    options = _options(annotation)
    return next((kind for kind in options if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _options(annotation: Any) -> list[Any]:
    """Return the types of a union annotation, or the annotation itself as a list of one."""
    if get_origin(annotation) is Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [kind for option in get_args(annotation) for kind in _options(option)]
    return [annotation]
