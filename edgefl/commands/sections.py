"""List a scenario's sections as types, and find the full names that match a bare name."""

import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from edgefl.config import registry
from edgefl.config.scenario_fields import Named
from edgefl.config.units import without_unit
from edgefl.engine.class_settings import OWN_KEYS
from edgefl.scenario.scenario import Scenario

PAPERS = """\
papers

J, the journal paper: Z.-L. Chang, D.-J. Han, S. Hosseinalipour, M. Chiang, C. G. Brinton, Communication-Efficient
Federated Learning under Dynamic Device Arrival and Departure: Convergence Analysis and Algorithm Design.

N, its conference version: the same authors, Federated Learning with Dynamic Client Arrival and Departure: Convergence
and Rapid Adaptation via Initial Model Construction.

I, an earlier version of N, under anonymous review.

F: K. Panchal et al., Flash: Concept Drift Adaptation in Federated Learning, ICML 2023.

A number after a letter is the number of an equation: J 18 is equation (18) of the journal paper."""


def tree() -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the key prefix and type of every section of a scenario, outer sections first.

    Sections that a federation can override appear once, as sections of the scenario.
    """
    waiting: list[tuple[str, type[BaseModel]]] = [("", Scenario)]
    seen: set[type[BaseModel]] = set()
    while waiting:
        before, section = waiting.pop(0)
        if before.startswith("federations.") and section in seen:
            continue
        seen.add(section)
        yield before, section
        inner = ((name, model_of(field)) for name, field in section.model_fields.items())
        waiting += [(f"{before}{name}.", model) for name, model in inner if model is not None]


def model_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the type of the section that a field contains, directly or in a mapping, or may read from a file."""
    kinds = list(types_of(field.annotation))
    kinds += [kind for each in kinds if get_origin(each) is dict for kind in get_args(each)]
    kinds += [mark.section for mark in marks_of(field) if hasattr(mark, "section")]
    return next((kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, BaseModel)), None)


def marks_of(field: FieldInfo) -> Iterator[Any]:
    """Yield the annotations of a key (bounds and kinds), including those of each type in a union."""
    inner = (mark for each in types_of(field.annotation) for mark in getattr(each, "__metadata__", ()))
    for mark in (*field.metadata, *inner):
        yield from mark.metadata if isinstance(mark, FieldInfo) else [mark]


def named_in(field: FieldInfo) -> Named | None:
    return next((mark for mark in marks_of(field) if isinstance(mark, Named)), None)


def types_of(annotation: Any) -> Iterator[Any]:
    """Yield the member types of a union, or the type itself."""
    if get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from types_of(each)
    else:
        yield annotation


@cache
def full_names() -> Mapping[str, list[str]]:
    """Map short names (of a component, or of a key with or without its unit) to the full names that they may mean."""
    found: dict[str, list[str]] = defaultdict(list)
    for kind in registry.KINDS:
        for name in registry.names(kind):
            found[name].append(f"{kind}/{name}")
    for before, section in tree():
        for name in section.model_fields:
            if before == "devices.classes." and name in OWN_KEYS:
                continue  # the section `devices` already lists this key
            for short in {name, without_unit(name)}:
                found[short].append(f"{before}{name}")
    return found
