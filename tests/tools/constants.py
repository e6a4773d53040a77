"""Make classes and components with changed class constants."""

from typing import Any


def with_constants(cls: Any, **values: Any) -> Any:
    """Return a subclass with the same name and these values of its constants."""
    where = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return type(cls)(cls.__name__, (cls,), {**where, **values})


def made(cls: Any, **values: Any) -> Any:
    """Return a component with these parameters and class constants."""
    given = {name: value for name, value in values.items() if name in cls.model_fields}
    constants = {name: value for name, value in values.items() if name not in given}
    return (with_constants(cls, **constants) if constants else cls)(**given)
