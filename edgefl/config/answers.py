"""Refuse a wrong result of a component's method; the error names method, file, line and the required result."""

from collections.abc import Callable
from typing import Any

from edgefl.config import outside
from edgefl.errors import EdgeflError, clipped, quoted


def wrong(method: Callable[..., Any], answer: object, wanted: str, *place: str) -> EdgeflError:
    """Return the error about a method's wrong result.

    Args:
        method: the component's bound method.
        wanted: what the method must return, after "return ".
        place: keys that lead to the component in the scenario.
    """
    owner, code = getattr(method, "__self__", None), getattr(method, "__code__", None)
    of = type(owner)
    where = outside.place_of(code) or f"{of.__module__}:"
    return EdgeflError(
        f"{where}{of.__name__}.{method.__name__}() returned {_described(answer)}: return {wanted}", place
    )


def _described(answer: object) -> str:
    """Describe a result for a message: an array by its shape, a sequence by its length, other values as they are."""
    shape = getattr(answer, "shape", None)
    if isinstance(shape, tuple):
        return f"an array of shape {tuple(shape)}"
    if isinstance(answer, dict):
        return f"a dict with {clipped(str(list(answer)), 300)}"
    if isinstance(answer, tuple | list):
        return f"a {type(answer).__name__} of {len(answer)}"
    return f"{quoted(answer)} ({type(answer).__name__})" if answer is not None else "None"


def must_be_shaped(
    method: Callable[..., Any], answer: object, shapes: tuple[tuple[int, ...], ...], wanted: str, *place: str
) -> None:
    """Raise an error unless a method's result is an array or tensor of one of the given shapes.

    Raises:
        EdgeflError: the result has no shape or a different one; the message states the required shapes.
    """
    if getattr(answer, "shape", None) not in shapes:
        right = " or ".join(map(str, shapes))
        raise wrong(method, answer, f"{wanted} of shape {right}", *place)
