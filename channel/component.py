"""The shape of every component of this package: frozen parameters, each with its meaning and its range."""

import operator
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from numbers import Real
from typing import Any, NamedTuple

# how a bound is checked, and how it is written
_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, ">="),
    "gt": (operator.gt, ">"),
    "le": (operator.le, "<="),
    "lt": (operator.lt, "<"),
}


def parameter(
    default: Any = MISSING,
    *,
    description: str,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
) -> Any:
    """Declare a parameter of a component.

    Args:
        default: its value where none is given; without a default it is required.
        description: what it means, with its unit.
        ge, gt, le, lt: its range: >=, >, <=, <.
    """
    bounds = {"ge": ge, "gt": gt, "le": le, "lt": lt}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return field(default=default, metadata={"description": description, "bounds": given})


class Parameter(NamedTuple):
    """What is known of a component's parameter."""

    name: str
    default: Any  # ...: it is required
    description: str | None
    bounds: dict[str, float]  # by ge, gt, le and lt


@dataclass(frozen=True)
class Component:
    """Frozen parameters plus one or two methods.

    A component is one file of its kind's package and is named by it: the class in
    `channel/schedulers/round_robin.py` is `round_robin`. It is a frozen dataclass, its fields are declared by
    `parameter`; state is passed in and handed back.
    """

    def __post_init__(self) -> None:
        """Refuse parameters out of range.

        Raises:
            ValueError: the message begins with the parameter's name.
        """
        for each in parameters(type(self)):
            if each.bounds:
                _check(each.name, getattr(self, each.name), each.bounds)


def parameters(cls: type[Component]) -> list[Parameter]:
    """The parameters of a component, in the order of its fields."""
    return [
        Parameter(
            each.name,
            ... if each.default is MISSING else each.default,
            each.metadata.get("description"),
            each.metadata.get("bounds", {}),
        )
        for each in fields(cls)
        if each.init
    ]


def _check(name: str, value: Any, bounds: dict[str, float]) -> None:
    inside = isinstance(value, Real) and all(_BOUNDS[key][0](value, bound) for key, bound in bounds.items())
    if not inside:
        wanted = " and ".join(f"{_BOUNDS[key][1]} {bound:g}" for key, bound in bounds.items())
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
