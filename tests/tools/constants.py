"""Classes with other values of their constants."""

from typing import Any


def with_constants(cls: Any, **values: Any) -> Any:
    """Return a subclass with these values of the constants, which goes by the same name."""
    where = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return type(cls)(cls.__name__, (cls,), {**where, **values})


def made(cls: Any, **values: Any) -> Any:
    """Return a component with these parameters, and these values of its class's constants."""
    given = {name: value for name, value in values.items() if name in cls.model_fields}
    constants = {name: value for name, value in values.items() if name not in given}
    return (with_constants(cls, **constants) if constants else cls)(**given)
