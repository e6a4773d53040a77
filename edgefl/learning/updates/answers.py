"""Check the results of an algorithm's methods.

Each function raises an EdgeflError that names the method and the required result, if the result is wrong.
"""

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from edgefl.config.answers import must_be_shaped, wrong
from edgefl.learning.algorithms import Notes, Received, Sent, ServerState
from edgefl.learning.models import OutputTerm

PLACE = ("learning", "algorithm")
ROWS = "a row for each device,"
Method = Callable[..., Any]


def state(method: Method, answer: object) -> ServerState:
    """Return a server's state after checking its type."""
    if not _named(answer):
        raise wrong(method, answer, "the server's state, a dict of tensors by name", *PLACE)
    return answer  # type: ignore[return-value]


def model_and_state(method: Method, answer: object, model: Tensor) -> tuple[Tensor, ServerState]:
    """Return the next model, which is like the current `model` [M], and the server's next state."""
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise wrong(
            method, answer, f"two values, the next model [{len(model)}] and the server's state", *PLACE
        )
    made, after = answer
    _tensor(method, made, (tuple(model.shape),), model, "first the next model,")
    return made, state(method, after)


def models(method: Method, answer: object, count: int, like: Tensor, *, for_all: bool = True) -> Tensor:
    """Return the models of `count` devices, [count, M], or if `for_all` one model for all devices, [M].

    Args:
        like: a tensor [..., M] of the models' type, on their device.
    """
    size = like.shape[-1]
    shapes = (((size,),) if for_all else ()) + ((count, size),)
    what = "a model for all devices or one per device," if for_all else ROWS
    found = _tensor(method, answer, shapes, like, what)
    if not torch.isfinite(found.sum()):
        raise wrong(method, answer, "finite numbers, not nan or inf", *PLACE)
    return found


def received(method: Method, answer: object, count: int, model: Tensor) -> Received:
    """Return the `Received` of `count` devices."""
    if not isinstance(answer, Received):
        raise wrong(method, answer, "a Received", *PLACE)
    shapes = ((len(model),), (count, len(model)))
    _tensor(method, answer.start, shapes, model, "start: a model for all devices or one per device,")
    _about_devices(method, answer.notes, count, bits=answer.bits, vectors=answer.vectors)
    return answer


def sent(method: Method, answer: object, like: Tensor) -> Sent:
    """Return devices' uploads; their rows are like the devices' models [k, M]."""
    if not isinstance(answer, Sent):
        raise wrong(method, answer, "a Sent", *PLACE)
    _tensor(method, answer.rows, (tuple(like.shape),), like, f"rows: {ROWS}")
    _about_devices(method, answer.notes, len(like), bits=answer.bits)
    return answer


def rate(method: Method, answer: Any) -> float:
    """Return a learning rate."""
    if not (isinstance(answer, Real) and 0 <= float(answer) < math.inf):
        raise wrong(method, answer, "a learning rate, a number of at least 0", *PLACE)
    return float(answer)


def term(method: Method, answer: object, *place: str) -> OutputTerm | None:
    """Return an extra term of the local loss, or None."""
    if not (answer is None or isinstance(answer, OutputTerm)):
        raise wrong(method, answer, "an OutputTerm or None", *(place or PLACE))
    return answer


def vectors(method: Method, answer: object, names: tuple[str, ...], like: Tensor) -> Mapping[str, Tensor]:
    """Return the vectors by name that devices keep, each like the devices' models [k, M]."""
    if not isinstance(answer, Mapping):
        raise wrong(method, answer, f"a dict with {', '.join(names)}", *PLACE)
    for name, rows in answer.items():
        _tensor(method, rows, (tuple(like.shape),), like, f"{name}: {ROWS}")
    return answer


def _named(answer: object) -> bool:
    return isinstance(answer, Mapping) and all(isinstance(each, Tensor) for each in answer.values())


def _tensor(
    method: Method, answer: object, shapes: tuple[tuple[int, ...], ...], like: Tensor, what: str
) -> Tensor:
    must_be_shaped(method, answer, shapes, f"{what} a tensor", *PLACE, like=like)
    return answer  # type: ignore[return-value]


def _about_devices(method: Method, notes: Notes, count: int, **counted: Tensor | None) -> None:
    """Raise an error unless notes and numbers have an entry for each device, and the numbers are integers."""
    if not _named(notes):
        raise wrong(method, notes, "notes: a dict of tensors by name", *PLACE)
    for name, note in notes.items():
        if note.shape[:1] != (count,):
            raise wrong(method, note, f"note {name}: a value for each of {count} devices", *PLACE)
    for name, numbers in counted.items():
        if numbers is None:
            continue
        must_be_shaped(method, numbers, ((count,),), f"{name}: a tensor with one integer per device", *PLACE)
        if not isinstance(numbers, Tensor) or numbers.is_floating_point() or bool(torch.any(numbers < 0)):
            raise wrong(method, numbers, f"{name}: integers of at least 0", *PLACE)
