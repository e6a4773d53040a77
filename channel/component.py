"""Base class of all components of this package, with frozen parameters that have a description and a range."""

import operator
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from numbers import Real
from typing import Any

__all__ = ["ChannelComponent", "parameter"]

# checks of bounds, and their symbols
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
    """Declare a parameter of a component; the arguments become the field's metadata, which pydantic reads.

    Args:
        default: value of a parameter that is left out; a parameter without a default is required.
        description: meaning of the parameter.
        ge, gt, le, lt: bounds of the parameter: >=, >, <=, <.
    """
    about = {"description": description, "ge": ge, "gt": gt, "le": le, "lt": lt}
    return field(default=default, metadata={key: value for key, value in about.items() if value is not None})


@dataclass(frozen=True)
class ChannelComponent:
    """Base class of components, which have frozen parameters and one or two methods.

    Each component has its own file in the package of its kind, and is named after that file: the component in
    `channel/schedulers/round_robin.py` is called `round_robin`. A component is a frozen dataclass with fields
    declared by `parameter`; it keeps no state.
    """

    def __post_init__(self) -> None:
        """Raise an error for parameters out of range.

        Raises:
            ValueError: a parameter is out of range; the message begins with its name.
        """
        for each in fields(self):
            bounds = {key: each.metadata[key] for key in _BOUNDS if key in each.metadata}
            value = getattr(self, each.name)
            inside = isinstance(value, Real) and all(_BOUNDS[key][0](value, bounds[key]) for key in bounds)
            if bounds and not inside:
                range_ = " and ".join(f"{_BOUNDS[key][1]} {bound:g}" for key, bound in bounds.items())
                raise ValueError(f"{each.name} must be {range_}, got {value!r}")
