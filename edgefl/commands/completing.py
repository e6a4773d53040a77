"""Completions of `--set KEY=VALUE` and of `edgefl describe`."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from edgefl.commands.descriptions import WHOLE, section_of
from edgefl.commands.sections import model_of, named_in, types_of
from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.run_directory.columns import meanings


def settable(begun: str) -> Iterator[str]:
    """Yield completions of KEY=VALUE: `radio.` for a section, `radio.sharing=` for a key, then the key's choices."""
    key, equals, value = begun.partition("=")
    with suppress(EdgeflError):  # an unknown section has no completions
        section, before = section_of(key)
        last = key.rpartition(".")[2]
        if equals:
            yield from (
                f"{key}={one}" for one in _values(section.model_fields[last]) if one.startswith(value)
            )
            return
        for name, field in section.model_fields.items():
            if name.startswith(last):
                yield f"{before}{name}{'.' if model_of(field) else '='}"


def _values(field: FieldInfo) -> list[str]:
    """Return the choices of a key: names of components, the allowed words, or true and false."""
    if named := named_in(field):
        return registry.names(named.kind)
    options = list(types_of(field.annotation))
    words = [str(one) for each in options if get_origin(each) is Literal for one in get_args(each)]
    return words + ["true", "false"] * (bool in options)


def describable(begun: str) -> Iterator[str]:
    """Yield completions: components of a kind, keys of a section, or everything at the top level."""
    if "/" in begun:
        kind = begun.partition("/")[0]
        yield from (f"{kind}/{name}" for name in registry.names(kind)) if kind in registry.KINDS else ()
        return
    with suppress(EdgeflError):  # an unknown section has no completions
        section, before = section_of(begun)
        yield from (f"{before}{name}" for name in section.model_fields)
    if "." not in begun:
        yield from (*WHOLE, *meanings(), "papers", *(f"{kind}/" for kind in registry.KINDS))
