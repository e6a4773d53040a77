"""Check whether a component fulfils the contract of its kind; errors say what to change."""

import copy
import importlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

import numpy as np
import yaml
from pydantic import TypeAdapter, ValidationError

from edgefl.config import registry
from edgefl.config.answers import WrongAnswer
from edgefl.config.component import AnyComponent, build, parameters_of
from edgefl.config.error_messages import dotted, flat, in_short
from edgefl.config.scenario_fields import Named
from edgefl.errors import EdgeflError
from edgefl.learning.chance import Chance
from edgefl.rng import Streams

# kind -> module whose function of that name checks the contract; the engine's kinds, which need no torch, come first
ROOMS = {
    **dict.fromkeys(
        ("selectors", "servers", "sessions", "churn", "mobility", "power_models", "backgrounds"),
        "engine_contracts",
    ),
    **dict.fromkeys(("schedulers", "path_loss"), "channel_contracts"),
    "algorithms": "algorithm_contract",
    **dict.fromkeys(("optimisers", "lr_schedules", "warm_starts", "models"), "learning_contracts"),
    "codecs": "codec_contract",
    "tasks": "task_contract",
    **dict.fromkeys(("datasets", "partitions", "drifts"), "data_contracts"),
}


class ContractError(AssertionError):
    """An error raised when a component breaks the contract of its kind."""


def must(holds: Any, remedy: str) -> None:
    """Raise a ContractError with the remedy unless `holds` is true."""
    if not holds:
        raise ContractError(remedy)


def must_be_shaped(what: str, values: Any, shape: tuple[int, ...], remedy: str) -> None:
    """Raise a ContractError with the remedy unless an array has the given shape."""
    must(tuple(values.shape) == shape, f"{what} of shape {tuple(values.shape)}: {remedy}")


def must_repeat(what: str, one: Any, other: Any, remedy: str) -> None:
    """Raise a ContractError unless two calls with the same arguments return equal values."""
    must(same(one, other), f"{what} returned different values for the same arguments: {remedy}")


def pure(what: str, method: Callable[..., Any], *lent: Any, remedy: str) -> Any:
    """Call a method twice with equal arguments, and return its first answer.

    Raises:
        ContractError: the method modified an argument, or gave another answer the second time.
    """
    first, second = copy.deepcopy(lent), copy.deepcopy(lent)
    answer = method(*first)
    must(same(first, lent), f"{what} modified an argument in place: work on a copy")
    must_repeat(what, answer, method(*second), remedy)
    return answer


def same(one: Any, other: Any) -> bool:
    """Return whether two values, which may be containers, are equal bit for bit; NaN equals NaN.

    Generators are equal, because drawing from them changes them.
    """
    if isinstance(one, np.random.Generator | Streams | Chance):
        return type(one) is type(other)
    if is_dataclass(one):  # its fields: cached properties are no part of it
        return type(one) is type(other) and all(
            same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "dtype"):
        return other is not None and one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)
    return bool(one == other or (one != one and other != other))  # nan differs from itself


def check(component: type[AnyComponent], **parameters: Any) -> None:
    """Test a component class against the contract of all components, then against its kind's contract.

    Args:
        component: the class, not an instance.
        parameters: values of the component's parameters; parameters without a default are required.

    Raises:
        ContractError: the class breaks a rule; the error names the rule, and what to change.
    """
    if not isinstance(component, type):
        given = type(component).__name__
        raise ContractError(
            f"pass the class and its parameters by name, check({given}, ...), not an instance"
        )
    name = f"{component.__module__}:{component.__name__}"
    kind = _kind_of(component)
    try:
        made = build(component, parameters)
    except ValueError as error:
        raise ContractError(
            f"{name} cannot be instantiated: pass valid values to check(): {_told(error, component)}"
        ) from error
    _check_parameters(name, made)
    _check_yaml(name, kind, made)
    if kind not in ROOMS:
        return
    try:
        getattr(importlib.import_module(f"edgefl.testing.{ROOMS[kind]}"), kind)(made)
    except (ContractError, WrongAnswer) as error:
        raise ContractError(f"{name}: {error}") from error
    except EdgeflError as error:
        raise ContractError(
            f"{name} refuses the small world of its check; pass parameters that fit it: {error}"
        ) from error
    except Exception as error:  # a method that returns a wrong type or shape may cause any exception
        raise ContractError(
            f"{name} fails its check with {type(error).__name__}: {error}; the traceback shows which result is wrong"
        ) from error


def _told(error: ValueError, component: type[AnyComponent]) -> str:
    """Format an error about a component's parameters like an error about a scenario."""
    if not isinstance(error, ValidationError):
        return str(error)
    faults = flat(error.errors(), parameters_of(component))
    lines = (
        f"{dotted(fault.place)}: {fault.message()}" if fault.place else fault.message() for fault in faults
    )
    return in_short(lines, len(faults))


def _kind_of(component: type[AnyComponent]) -> str:
    """Return the kind of a component class.

    Raises:
        ContractError: the class is not a component.
    """
    kinds = [*ROOMS, *(kind for kind in registry.PACKAGES if kind not in ROOMS)]
    for kind in kinds:
        if issubclass(component, registry.base(kind)):
            return kind
    bases = ", ".join(f"{registry.base(kind).__module__}.{registry.base(kind).__name__}" for kind in kinds)
    raise ContractError(f"{component.__name__} is not a component: extend one of {bases}")


def _check_parameters(name: str, made: AnyComponent) -> None:
    """Check that a component's parameters are frozen, described and strict, with defaults within their bounds."""
    cls = type(made)
    must((cls.__doc__ or "").strip(), f"{name}: write a docstring; `edgefl describe` shows it")
    fields = parameters_of(cls).model_fields
    for field_name, field in fields.items():
        must(field.description, f"{name}.{field_name}: give it a description, with the unit")
        try:
            setattr(made, field_name, getattr(made, field_name))
        except AttributeError:
            continue
        raise ContractError(
            f"{name} can be modified after construction: keep it frozen like its base class, and pass state in"
            " and out instead"
        )
    given = {field_name: getattr(made, field_name) for field_name in fields}
    try:
        build(cls, {**given, "no_such_parameter": 1})
    except ValidationError:
        pass
    else:
        raise ContractError(f"{name} accepts unknown parameters: forbid them like its base class")
    try:
        again = build(cls, given)
    except ValueError as error:
        raise ContractError(f"{name}: a default is outside its bounds: {_told(error, cls)}") from error
    must(again == made, f"{name}: validating its parameters again changes them; make validators idempotent")


def _check_yaml(name: str, kind: str, made: AnyComponent) -> None:
    """Check that a component written to scenario.yaml and read again is the same component."""
    try:
        named = registry.get(kind, registry.name_of(kind, made))
    except EdgeflError as error:
        raise ContractError(f"{name} cannot be named in a scenario: {error}") from error
    must(named is type(made), f"{name}: define the class once, at the top level of its module")
    field: TypeAdapter[Any] = TypeAdapter(Annotated[Any, Named(kind)])
    text = yaml.safe_dump(field.dump_python(made, mode="json"))
    must(
        field.validate_python(yaml.safe_load(text)) == made,
        f"{name}: it differs after being written to YAML and read again; choose parameters that JSON supports:"
        f"\n{text}",
    )
