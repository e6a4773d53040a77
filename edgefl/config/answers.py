"""Refuse a wrong result of a component's method; the error names method, file, line and the required result."""

from collections.abc import Callable
from typing import Any

from edgefl.config import outside
from edgefl.errors import EdgeflError, clipped, quoted


class WrongAnswer(EdgeflError):
    """An error raised when a method of a component returns a wrong result."""


def wrong(method: Callable[..., Any], answer: object, wanted: str, *place: str) -> WrongAnswer:
    """Return the error about a method's wrong result.

    Args:
        method: the component's bound method.
        wanted: what the method must return, after "return ".
        place: keys that lead to the component in the scenario.
    """
    owner, code = getattr(method, "__self__", None), getattr(method, "__code__", None)
    of = type(owner)
    where = outside.place_of(code) or f"{of.__module__}:"
    return WrongAnswer(
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
    method: Callable[..., Any],
    answer: object,
    shapes: tuple[tuple[int, ...], ...],
    wanted: str,
    *place: str,
    like: Any = None,
) -> None:
    """Raise an error unless a method's result is an array or tensor of one of the given shapes.

    Args:
        like: a tensor with the type and the device that the result must have; None for any.

    Raises:
        EdgeflError: the result has no shape or a different one; the message states the required shapes.
    """
    if getattr(answer, "shape", None) not in shapes:
        right = " or ".join(map(str, shapes))
        raise wrong(method, answer, f"{wanted} of shape {right}", *place)
    if like is None:
        return
    if not isinstance(answer, type(like)):
        of = wanted.removesuffix("a tensor").rstrip(", ")
        raise wrong(method, answer, f"{of}, a torch tensor", *place)
    if not is_alike(answer, like):
        have, right = (f"{one.dtype} on {one.device}".removeprefix("torch.") for one in (answer, like))
        raise wrong(method, answer, f"{wanted} of type {right}, not {have}", *place)


def is_alike(answer: Any, like: Any) -> bool:
    """Return whether a tensor has the same type and device as another tensor."""
    return answer.dtype == like.dtype and answer.device == like.device
