"""Make the errors of functions name their arguments, where errors on the command line name options."""

import re
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

OPTION = re.compile(r"(?<![\w-])--([a-z]+)\b( (?=[\w'\"\[.]))?")
ARGUMENTS = {"key": "keys", "session": "sessions", "transpose": "transposed"}  # option -> its argument
Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def naming_arguments(function: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
    """Make a function's ValueErrors name its arguments: `partial=True` instead of `--partial`.

    `edgefl.errors.in_python` does so for the functions of `edgefl`; neither package imports the other.
    """

    @wraps(function)
    def call(*args: Asked.args, **options: Asked.kwargs) -> Answer:
        try:
            return function(*args, **options)
        except ValueError as error:
            error.args = (_with_arguments(str(error), function),)
            raise

    return call


def _with_arguments(message: str, function: Callable[..., object]) -> str:
    """Replace options in a message by the function's arguments; leave commands in backticks unchanged."""
    known = signature(function).parameters

    def argument(option: re.Match[str]) -> str:
        name = ARGUMENTS.get(option[1], option[1])
        if name not in known:
            return option[0]
        return f"{name}=True{option[2] or ''}" if isinstance(known[name].default, bool) else f"{name}="

    parts = message.split("`")
    parts[::2] = [OPTION.sub(argument, part) for part in parts[::2]]
    return "`".join(parts)
