"""Errors caused by user input, and context managers that add an error's place."""

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_origin

__all__ = ["Divergence", "EdgeflError"]

LONGEST_QUOTE = 80  # maximum characters of a value in a message
LONGEST_PATH = 300  # paths are truncated at the beginning, since the name at the end matters most
OPTION = re.compile(r"(?<![\w-])--(?P<name>[a-z]+(?:-[a-z]+)*)(?P<blank> (?=[\w'\"\[.]))?")
ARGUMENTS = {
    "set": "overrides",
    "key": "keys",
    "seed": "seeds",
    "session": "sessions",
}  # options that may be given several times
Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def quoted(value: object) -> str:
    """Format a value for a message on one line: quote text, and truncate long values."""
    shown = repr(value[: 2 * LONGEST_QUOTE] if isinstance(value, str) else value)
    if value is None or isinstance(value, bool):
        shown = {None: "null", True: "true", False: "false"}[value]  # as YAML writes it
    return shown if len(shown) <= LONGEST_QUOTE else f"{shown[: LONGEST_QUOTE - 3]}..."


def clipped(text: str, longest: int = LONGEST_QUOTE) -> str:
    """Format a string for a message on one line, without quotes; truncate long strings."""
    shown = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[: 2 * longest])
    return shown if len(shown) <= longest and len(text) <= longest else f"{shown[: longest - 3]}..."


def near_path(path: Path) -> str:
    """Return a hint for a message about a missing path: `; did you mean 'x'?` with a similar path, or ''."""
    try:
        names = sorted(each.name for each in path.parent.iterdir())
    except OSError:
        return ""
    near = [name for name in names if name.startswith(f"{path.name}-")]  # such as runs/quickstart-seed100
    by_stem = {Path(name).stem: name for name in names}  # a common suffix alone makes no two names similar
    near = near or [by_stem[s] for s in difflib.get_close_matches(path.stem, by_stem, n=1, cutoff=0.75)]
    return f"; did you mean '{path.parent / near[0]}'?" if near else ""


class EdgeflError(ValueError):
    """An error in user input, with its place and remedy. The command line prints the error and exits with code 2.

    The class is a ValueError, so that pydantic adds the place if a component raises it during validation.

    Args:
        message: what is wrong, and the remedy.
        place: keys of the scenario that caused the error, e.g. ("learning", "dataset").
    """

    def __init__(self, message: str, place: tuple[str, ...] = ()) -> None:
        # args must contain message and place, since SimPy and pickle rebuild an exception from its args
        super().__init__(message, place)
        self.place = place

    def __str__(self) -> str:
        return str(self.args[0])


class Divergence(EdgeflError):
    """An error raised when training diverges, that is, produces numbers that are not finite.

    Args:
        message: where training diverged, and the remedy.
        last: tensors by name: the tensors of the last finite model, and the state of its learning algorithm.
    """

    def __init__(self, message: str, last: dict[str, Any]) -> None:
        super().__init__(message)
        self.last = last


@contextmanager
def about(*place: str) -> Iterator[None]:
    """Attribute errors of the code inside a `with` block to given keys of the scenario."""
    try:
        yield
    except EdgeflError as error:
        raise EdgeflError(str(error), error.place or place) from error


@contextmanager
def moved(from_: tuple[str, ...], to: tuple[str, ...]) -> Iterator[None]:
    """Move errors of a `with` block's code from keys below one place to the same keys below another place."""
    try:
        yield
    except EdgeflError as error:
        if error.place[: len(from_)] != from_:
            raise
        raise EdgeflError(str(error), (*to, *error.place[len(from_) :])) from error


@contextmanager
def refused(*place: str) -> Iterator[None]:
    """Turn a ValueError from `channel`, such as for a transfer that never ends, into an error about given keys.

    A ValueError of other code, such as a user's component, is not about these keys.
    """
    try:
        yield
    except EdgeflError:
        raise
    except ValueError as error:
        if not _raised_here(error):
            raise
        raise EdgeflError(str(error), place) from error


def _raised_here(error: BaseException) -> bool:
    """Return whether code of edgefl, and not other code that it called, raised an error."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return is_own(frame)


def is_own(frame: FrameType) -> bool:
    """Return whether a frame belongs to code of edgefl."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "edgefl"


def in_python(function: Callable[Asked, Answer], name: str = "") -> Callable[Asked, Answer]:
    """Make a function's errors name its arguments (`out=`) instead of command-line options (`--out`).

    A ValueError from `analysis` becomes an EdgeflError. If a public `name` is given, help() shows it,
    and the signature omits the command line's annotations.
    """

    @wraps(function)
    def call(*args: Asked.args, **options: Asked.kwargs) -> Answer:
        try:
            return function(*args, **options)
        except EdgeflError as error:
            error.args = (_with_arguments(str(error), function), *error.args[1:])
            raise
        except ValueError as error:
            raise EdgeflError(_with_arguments(str(error), function)) from error
        except TypeError:
            _check_arguments(function, args, options)
            _check_paths(function, args, options)
            raise

    if name:
        call.__name__ = name
        setattr(call, "__signature__", _plain_signature(function))  # noqa: B010
    call.__doc__ = (function.__doc__ or "").replace("        ValueError: ", "        EdgeflError: ")
    return call


def check_values(
    counts: Mapping[str, Any], functions: Mapping[str, Any] | None = None, device: Any = ""
) -> None:
    """Raise an EdgeflError unless the values of a function's arguments are of the right kind.

    Args:
        counts: name -> value that must be an integer of at least 1, or None.
        functions: name -> value that must be a function, or None.
        device: a value that must be text.
    """
    for name, value in counts.items():
        is_whole = hasattr(value, "__index__") and not isinstance(value, bool)
        if value is not None and not (is_whole and value >= 1):
            raise EdgeflError(f"{name} is {clipped(repr(value))}: give a whole number of at least 1, or None")
    for name, value in (functions or {}).items():
        if value is not None and not callable(value):
            raise EdgeflError(f"{name} is {clipped(repr(value))}: give a function, or None")
    if not isinstance(device, str):
        raise EdgeflError(f"device is {clipped(repr(device))}: give a name as text, such as 'cpu' or 'cuda'")


def _check_arguments(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raise TypeError if a function cannot be called with these arguments, e.g. with a scenario's key."""
    from inspect import signature  # slow to import

    try:
        signature(function).bind(*args, **options)
    except TypeError as error:
        how = "; set keys of the scenario in the scenario itself, as in scenario.with_(seed=3)"
        of_scenario = "scenario" in signature(function).parameters
        raise TypeError(f"{function.__name__}(): {error}{how if of_scenario else ''}") from None


def _check_paths(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raise an EdgeflError if an argument that may be a path, or an item of it, is of a type that is not allowed."""
    from inspect import signature  # slow to import

    called = signature(function)
    for name, value in called.bind(*args, **options).arguments.items():
        kinds = str(called.parameters[name].annotation)
        for one in _items(value) if "Path" in kinds else ():
            known = one is None or isinstance(one, str | os.PathLike | Mapping)
            if not known and type(one).__name__ not in kinds:
                raise EdgeflError(
                    f"{function.__name__}(): {name} is {clipped(repr(one))}, not a path: give text or a pathlib.Path"
                )


def _items(value: Any) -> Iterator[Any]:
    """Yield the items of a list that may contain lists, or a value that is no list."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _items(one)
    else:
        yield value


def _plain_signature(function: Callable[..., Any]) -> Any:
    """Return a function's signature with each parameter's plain type instead of the command line's annotation."""
    from inspect import signature  # slow to import

    found = signature(function)
    plain = [
        one.replace(annotation=get_args(one.annotation)[0])
        if get_origin(one.annotation) is Annotated
        else one
        for one in found.parameters.values()
    ]
    return found.replace(parameters=plain)


def _with_arguments(message: str, function: Callable[..., Any]) -> str:
    """Replace command-line options in a message by a function's arguments; leave commands in backticks unchanged."""
    from inspect import signature  # slow to import

    arguments = signature(function).parameters

    def argument(option: re.Match[str]) -> str:
        name = option["name"].replace("-", "_")
        name = name if name in arguments else ARGUMENTS.get(name, name)
        if name not in arguments:
            return option[0]
        if isinstance(arguments[name].default, bool):
            return f"{name}=True{option['blank'] or ''}"
        return f"{name}="

    parts = message.split("`")
    parts[::2] = [OPTION.sub(argument, part) for part in parts[::2]]
    return "`".join(parts)
