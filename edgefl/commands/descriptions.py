"""Write the text of `edgefl describe` and `edgefl list`: meaning and values of components, sections and keys."""

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from edgefl.commands import examples
from edgefl.commands.scenarios import shipped_as, shipped_names
from edgefl.commands.sections import PAPERS, full_names, marks_of, model_of, named_in, tree, types_of
from edgefl.commands.sizes import cells, size
from edgefl.config import gone_keys, registry
from edgefl.config.component import meaning, parameters_of
from edgefl.config.registry import MEANINGS, did_you_mean, nearest
from edgefl.config.units import unit_of, yaml_number
from edgefl.engine.class_settings import OWN_KEYS
from edgefl.errors import EdgeflError, quoted
from edgefl.run_directory.columns import meanings, tables_with
from edgefl.scenario.presets import defaults_of, following
from edgefl.scenario.scenario import Scenario, load
from edgefl.studies.study_file import Study

CITED = re.compile(r"\((?:J|N|I|F)\b|\b[JNIF] \d|journal paper|session papers")
WHOLE: dict[str, type[BaseModel]] = {"scenario": Scenario, "study": Study}
MOST_NAMES = 8  # maximum number of names suggested by an error, each containing the unknown word
DIGITS = 12  # maximum number of digits; numbers with more, such as 2 / 3, are rounded
SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}  # bounds, by their names in annotated_types
TYPES = {float: "a number", int: "a whole number", str: "text", bool: "true or false", Path: "a path"}


def listed(kind: str | None) -> list[str]:
    """List the kinds of components, or the components of one kind, one line each."""
    if kind is not None and kind not in registry.KINDS and (found := _components(kind)):
        raise EdgeflError(f"'{kind}' is a component, not a kind: run `edgefl describe {found[0]}`")
    meant = MEANINGS if kind is None else {name: _meaning_of(kind, name) for name in registry.names(kind)}
    return _aligned(meant)


def _aligned(meant: Mapping[str, str]) -> list[str]:
    """Return a line for each name, with the meanings below each other."""
    width = max(map(len, meant), default=0)
    return [f"{name:{width}}  {text}".rstrip() for name, text in meant.items()]


def describe(what: str, file: Path | None = None) -> str:
    """Describe a component (`algorithms/fedprox`), a kind, a section (`radio`) or any key (`radio.bandwidth_hz`).

    A bare name suffices if only one component or key has this name: `fedprox`, `bandwidth`, `time to trigger`. If
    several components have the name, all are described. The name of a shipped file is allowed too; `study` stands for
    a study's keys, and `papers` explains the letters J, N, I and F.

    Args:
        file: a scenario; a description of `layout` lists this scenario's cells.

    Raises:
        EdgeflError: no component, kind, section or key has this name.
    """
    if file is not None and what != "layout":
        raise EdgeflError(
            f"'{file}': one name at a time, as in `edgefl describe {what}`; only layout takes a scenario's file"
        )
    if what == "papers":
        return PAPERS
    if "/" not in what and what not in full_names():
        what = re.sub("[ -]+", "_", what)
    text = _text(what, file)
    return f"{text}\n\nPapers: `edgefl describe papers`." if CITED.search(text) else text


def _text(what: str, file: Path | None) -> str:
    if "/" in what:
        return _component(*what.split("/", 1))
    if what in registry.KINDS and what not in ("sessions",):  # bare `sessions` means the scenario's key
        return "\n".join([f"{what}: {MEANINGS[what]}", "", *_choices(what)])
    if what in WHOLE:
        return _section(what, WHOLE[what])
    if what in meanings():
        meant, columns = meanings()[what]
        return "\n".join([f"{what}: {meant}", "", *_aligned(columns)])
    if what not in full_names() and what not in gone_keys.ABROAD and (files := shipped_as(what)):
        return "\n\n".join(files)
    if "." not in what and what not in Scenario.model_fields:
        return "\n\n".join([*(_text(full, file) for full in _full_names(what)), *_column(what)])
    place, _, name = what.rpartition(".")
    kind = next((kind for kind, at in _places() if at == place), None)
    if kind is not None and name != "name":
        return _parameter(kind, what)
    return _key(what if kind is None else place, file)


def _full_names(bare: str) -> list[str]:
    """Return the full names of all components with this bare name, or of the only key that has it; [] for a column.

    Raises:
        EdgeflError: no component, key or column has this name, or several keys have this name.
    """
    known = full_names()
    found, components = known.get(bare, []), _components(bare)
    if components or len(found) == 1:
        return components or found
    if found:
        raise EdgeflError(f"'{bare}' may be {', '.join(found[:-1])} or {found[-1]}: write one of these")
    if bare in gone_keys.ABROAD:
        raise EdgeflError(f"'{bare}': no key has this name; edgefl calls it {gone_keys.ABROAD[bare]}")
    if tables_with(bare):
        return []
    word = bare.removesuffix("s") or " "
    inside = dict.fromkeys(full for every in known.values() for full in every if word in full)
    named, near = ", ".join(islice(inside, MOST_NAMES)), nearest(bare, [*known, *shipped_names()])
    hints = [f"did you mean '{near}'?" * bool(near), f"these names contain it: {named}" * bool(named)]
    hint = " or ".join(filter(None, hints)) or "write KIND/NAME, e.g. algorithms/fedprox, or a key"
    raise EdgeflError(f"'{bare}': no component, section or key has this name: {hint}")


def _column(name: str) -> list[str]:
    """Describe the column of a run directory's tables that has this name, if there is one."""
    meant = tables_with(name)
    return ["\n".join([f"{name} is a column of:", "", *_aligned(meant)])] if meant else []


def _components(bare: str) -> list[str]:
    """Return KIND/NAME of every component with this bare name."""
    return [full for full in full_names().get(bare, []) if "/" in full]


def _meaning_of(kind: str, name: str) -> str:
    try:
        return meaning(registry.get(kind, name))
    except EdgeflError as error:  # a broken installed package must not hide other packages
        return f"(broken: {error})"


def _component(kind: str, name: str) -> str:
    component = registry.get(kind, name, trusted=True)
    lines = [f"{kind}/{name}", "", inspect.getdoc(component) or "(no description)"]
    lines += ["", *_parameters(parameters_of(component).model_fields)]
    if place := next((place for each, place in _places() if each == kind), None):
        example = examples.of(place, name, parameters_of(component))
        lines += ["", *example] if example else []
    if kind == "models":
        lines += ["", *size(component)]
    return "\n".join([*lines, "", f"Defined by {component.__module__}:{component.__qualname__}"])


def _key(dotted: str, file: Path | None) -> str:
    """Describe a section or a key of a scenario."""
    section, before = section_of(dotted)
    field = _field(section, dotted.rpartition(".")[2], before, dotted)
    inner = model_of(field)
    if inner is None:
        return "\n".join([dotted, "", *_one(field, dotted), "", *examples.of(dotted)]).rstrip()
    lines = [_section(dotted, inner, field)]
    if dotted == "layout":
        lines += ["", *cells(load(file) if file else None)]
    return "\n".join(lines)


def _parameter(kind: str, dotted: str) -> str:
    """Describe a key of a kind's components, once for all components in which the key has the same meaning."""
    same: dict[str, list[str]] = {}
    for name in registry.names(kind):
        with suppress(EdgeflError):  # a broken installed package must not hide other packages
            if field := parameters_of(registry.get(kind, name)).model_fields.get(dotted.rpartition(".")[2]):
                same.setdefault("\n".join(_one(field, dotted)).rstrip(), []).append(f"{kind}/{name}")
    if not same:
        raise EdgeflError(f"'{dotted}': no component of {kind} has this key; see edgefl describe {kind}/NAME")
    return "\n\n".join([dotted, *(f"Of {', '.join(names)}: {text}" for text, names in same.items())])


def section_of(dotted: str) -> tuple[type[BaseModel], str]:
    """Return the section that contains a dotted key, and the prefix of the section's keys."""
    *parts, _ = dotted.split(".")
    of_study = parts[:1] == ["study"]
    section, before = (WHOLE["study"], "study.") if of_study else (WHOLE["scenario"], "")
    for part in parts[of_study:]:
        field = _field(section, part, before, dotted)
        inner = model_of(field)
        if inner is None:
            named = named_in(field)
            see = f"edgefl describe {named.kind}/NAME" if named else f"edgefl describe {before}{part}"
            raise EdgeflError(f"'{dotted}': {part} is not a section with keys; see {see}")
        section, before = inner, f"{before}{part}."
    return section, before


def _field(section: type[BaseModel], part: str, before: str, dotted: str) -> FieldInfo:
    if part in section.model_fields:
        return section.model_fields[part]
    elsewhere = full_names().get(part, [])
    inside = [full for full in elsewhere if before and full.startswith(before)] or elsewhere
    hint = (
        f": did you mean '{inside[0]}'?"
        if len(inside) == 1
        else did_you_mean(part, list(section.model_fields))
    )
    raise EdgeflError(f"'{dotted}': {before[:-1] or 'a scenario'} has no such key{hint}")


def sections() -> Iterator[tuple[str, str, list[tuple[str, ...]]]]:
    """Yield the dotted key and the description of every section of a scenario, with facts about its keys."""
    for before, section in tree():
        about = (inspect.getdoc(section) or "").partition("\n\n")[0]
        yield before.removesuffix(".") or "scenario", about, facts_of(section, before)


def facts_of(section: type[BaseModel], before: str = "") -> list[tuple[str, ...]]:
    """Return each key of a section with its meaning, unit, range and default, as text."""
    rows: list[tuple[str, ...]] = []
    for name, field in section.model_fields.items():
        kind = _kind(field, f"{before}{name}")
        about = field.description or ""
        meaning = f"{about} ({kind})" if about and kind else about or kind
        default = "required" if field.is_required() else _default(field, f"{before}{name}")
        rows.append((f"`{before}{name}`", meaning, unit_of(name) or "", _bounds(field), default))
    return rows


def _places() -> Iterator[tuple[str, str]]:
    """Yield each kind of component, with a scenario's dotted key for that kind."""
    for before, section in tree():
        for name, field in section.model_fields.items():
            if (named := named_in(field)) is not None:
                yield named.kind, f"{before}{name}"


def _section(name: str, section: type[BaseModel], field: FieldInfo | None = None) -> str:
    about = [field.description, ""] if field and field.description else []
    return "\n".join(
        [name, "", *about, inspect.getdoc(section) or "", "", *_parameters(section.model_fields, name)]
    )


def _one(field: FieldInfo, dotted: str) -> list[str]:
    """Describe a single key, one fact per line."""
    lines = [field.description or "", ""]
    lines += [f"  type:    {_type(field)}"]
    if unit := unit_of(dotted.rpartition(".")[2]):
        lines += [f"  unit:    {unit}"]
    if bounds := _bounds(field):
        lines += [f"  range:   {bounds}"]
    lines += [f"  default: {_default(field, dotted)}"]
    named = named_in(field)
    return [*lines, "", *_choices(named.kind)] if named else lines


def _choices(kind: str) -> list[str]:
    return [
        *(f"  {line}" for line in listed(kind)),
        "",
        f"`edgefl describe {kind}/NAME` shows a component's parameters.",
    ]


def _parameters(fields: dict[str, FieldInfo], of: str = "scenario") -> list[str]:
    if not fields:
        return ["Parameters: none"]
    lines = ["Parameters:"]
    for name, field in fields.items():
        dotted = name if of == "scenario" else f"{of}.{name}"
        unit, about = unit_of(name), field.description or ""
        facts = [
            "" if unit is None or re.search(rf", {re.escape(unit)}\b", about) else unit,
            _bounds(field),
            _kind(field, dotted),
            f"default {_default(field, dotted)}",
        ]
        facts[-1] = "required" if field.is_required() else facts[-1]
        inner = model_of(field)
        of_section = (inspect.getdoc(inner) or "").partition("\n")[0] if inner else ""
        lines.append(f"  {name}: {field.description or of_section} ({', '.join(filter(None, facts))})")
    return lines


def _kind(field: FieldInfo, key: str) -> str:
    """Describe a parameter's type unless it is a plain number or text."""
    named = named_in(field)
    if named:
        return f"see edgefl list {named.kind}"
    if model_of(field):
        return f"a section: edgefl describe {key}"
    options = [each for each in types_of(field.annotation) if each is not NoneType]
    choices = [option for each in options if get_origin(each) is Literal for option in get_args(each)]
    others = any(get_origin(each) is not Literal for each in options)
    return f"{'or' if others else 'one of'} {', '.join(map(str, choices))}" if choices else ""


def _default(field: FieldInfo, dotted: str) -> str:
    """Return a key's default as text, or the default in each preset if presets differ."""
    if field.is_required():
        return "none; the key is required"
    if dotted.startswith("devices.classes.") and dotted.rpartition(".")[2] in OWN_KEYS:
        return "as in devices"
    own = field.get_default(call_default_factory=True)
    by_preset = {preset: _written(value) for preset, value in defaults_of(dotted, own).items()}
    usual = by_preset["nr"]
    others = (f", or {said} with preset: {preset}" for preset, said in by_preset.items() if said != usual)
    return usual + following(dotted) + "".join(others)


def _written(value: Any) -> str:
    if isinstance(value, BaseModel):
        return "set by its keys"
    return "null" if value is None else _number(value)


def _type(field: FieldInfo) -> str:
    named = named_in(field)
    if named:
        return f"one of the {named.kind.replace('_', ' ')} below: its name, or {{name: ..., parameters}}"
    return " or ".join(
        dict.fromkeys(_word(option) for option in types_of(field.annotation) if option is not NoneType)
    )


def _word(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _word(arguments[0])
    if origin is Literal:
        return ", ".join(map(str, arguments))
    if origin in (list, tuple):
        return "a list"
    if origin is dict:
        return "a mapping"
    return TYPES.get(kind, getattr(kind, "__name__", str(kind)))


def _bounds(field: FieldInfo) -> str:
    bounds = ((sign, getattr(mark, name, None)) for mark in marks_of(field) for name, sign in SIGNS.items())
    return ", ".join(f"{sign} {_number(value)}" for sign, value in bounds if value is not None)


def _number(value: Any) -> str:
    """Format a value as YAML writes it."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_defaults=True)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_number(each)}' for name, each in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_number, value))}]"
    if isinstance(value, float):
        return yaml_number(value) if len(yaml_number(value)) <= DIGITS else f"{value:.4g}"
    return quoted(value) if isinstance(value, bool) else repr(value)
