"""Components, the pluggable parts of a scenario, and their common base class.

Components of `edgefl` are pydantic models. `channel` does not depend on pydantic: its components are frozen
dataclasses. `parameters_of`, `build` and `values_of` handle both kinds.
"""

import inspect
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, get_type_hints

from pydantic import BaseModel, create_model

from edgefl.channel.component import ChannelComponent
from edgefl.config.strict import Strict


class Component(Strict):
    """Base class of edgefl's components, each with frozen, validated parameters and one or two methods.

    A component's name in YAML is the name of its file: `algorithm: {name: fedprox, mu: 1.0}` selects the class in
    `edgefl/learning/algorithms/fedprox.py`. Methods take state and a random generator, and return the new state.
    """

    # method -> attributes that describe it; a subclass that overrides the method does not inherit them from a parent,
    # since a parent's formula, declaration or faster code is about the parent's method
    about_methods: ClassVar[Mapping[str, tuple[str, ...]]]

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        for name in sorted(cls.__class_vars__ & vars(cls).keys()):
            if inspect.isfunction(vars(cls)[name]):
                raise TypeError(
                    f"{cls.__name__}.{name} is a value, not a method: write {name}: ClassVar = ..."
                )
        for method, about in getattr(cls, "about_methods", {}).items():
            overriding = _definers(cls, method)[0]
            for name in about:
                definers = _definers(cls, name)
                if cls.__mro__.index(overriding) < cls.__mro__.index(definers[0]):
                    setattr(cls, name, vars(definers[-1])[name])

    def __setattr__(self, name: str, value: Any) -> None:
        # no EdgeflError: one from an own component's method must be reported with file and line, as any other fault
        # undeclared attributes, too: a resumed run would begin without the state that they hold
        if name not in type(self).__private_attributes__ and self.model_config.get("frozen"):
            raise AttributeError(
                f"{name} cannot be assigned, since a component is frozen: take state as an argument and return the"
                " new state; to change a scenario, make a copy, such as scenario.with_(learning__algorithm__mu=0.1)"
            )
        super().__setattr__(name, value)


def _definers(cls: type, name: str) -> list[type]:
    """Return the classes that define an attribute, the nearest first."""
    return [each for each in cls.__mro__ if name in vars(each)]


AnyComponent = Component | ChannelComponent
# the base class of each kind directly extends one of these two classes
SHAPES: tuple[type[AnyComponent], ...] = (Component, ChannelComponent)


def meaning(component: type) -> str:
    """Return the first sentence of a component's own docstring, or ''."""
    text = inspect.cleandoc(component.__doc__ or "").partition("\n\n")[0]
    return re.split(r"(?<=[a-z0-9)%^][a-z0-9)%^])\.(?=\s+[A-Z]|$)", " ".join(text.split()))[0].rstrip(".")


def parameters_of(cls: type[AnyComponent]) -> type[BaseModel]:
    """Return the pydantic model of a component's parameters: types, ranges, defaults and descriptions."""
    if issubclass(cls, BaseModel):
        return cls
    one: Any = cls  # mypy treats a dataclass as unhashable because its instances are
    return _parameters(one)


@cache  # creating a class takes longer than reading the rest of a scenario
def _parameters(cls: Any) -> type[BaseModel]:
    types = get_type_hints(cls)
    declared: dict[str, Any] = {each.name: (types[each.name], each) for each in fields(cls) if each.init}
    return create_model(cls.__name__, __base__=Strict, **declared)


def build(cls: type[AnyComponent], values: Mapping[str, Any]) -> AnyComponent:
    """Build a component from its parameters.

    Raises:
        ValidationError: parameters are invalid; the error names each one.
        ValueError: parameters contradict each other.
    """
    checked = parameters_of(cls).model_validate(values)
    return checked if isinstance(checked, Component) else cls(**dict(checked))


def values_of(component: AnyComponent) -> dict[str, Any]:
    """Return a component's parameters as written in a scenario file; `build` makes the component from them."""
    if isinstance(component, BaseModel):
        return component.model_dump(mode="json")
    model = parameters_of(type(component))
    values = {name: getattr(component, name) for name in model.model_fields}
    return model.model_construct(**values).model_dump(mode="json")
