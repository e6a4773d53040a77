"""Check the replies of ClientApps and strategies."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from flwr.app import ArrayRecord, Message

from edgefl.errors import EdgeflError, quoted

MOST_SAMPLES = 10**12
NUMBERS = "fiub"  # kinds of NumPy types
OF_BYTES = np.dtype(np.uint8)  # a model that is not an array of numbers, for example of trees


@contextmanager
def of_strategy(what: str, number: int) -> Iterator[None]:
    """Turn a strategy's failure into an error that names the round."""
    try:
        yield
    except EdgeflError:
        raise
    except Exception as error:
        raise EdgeflError(
            f"the strategy cannot {what} round {number}: {type(error).__name__}: {error}; fix the strategy, or the"
            " ClientApp's reply"
        ) from error


def whole(given: object, who: str) -> int:
    """Return a number of samples as an integer."""
    fits = isinstance(given, int | float) and 0 <= given <= MOST_SAMPLES and given == int(given)
    if not fits:
        raise EdgeflError(
            f"{who} reports {quoted(given)} samples: reply with an integer from 0 to {MOST_SAMPLES:g}"
        )
    return int(given)  # type: ignore[call-overload]


def numbers_of(record: ArrayRecord, who: str) -> list[np.ndarray]:
    """Return the arrays of a record.

    Raises:
        EdgeflError: an array cannot be read, or is not of numbers.
    """
    arrays = []
    for name, array in record.items():
        try:
            read = array.numpy()
        except Exception as error:  # NumPy's reader raises nearly anything
            raise EdgeflError(
                f"{who}: array {quoted(name)} cannot be read ({error}): give a NumPy array"
            ) from error
        if read.dtype.kind not in NUMBERS:
            raise EdgeflError(f"{who}: array {quoted(name)} is of {read.dtype}: give real numbers")
        arrays.append(read)
    return arrays


def check_reply(device: int, reply: Message, model: ArrayRecord, alike: bool) -> bool:
    """Return whether all numbers of a reply are finite.

    Args:
        model: the global model.
        alike: whether replies are combined with the model array by array.

    Raises:
        EdgeflError: arrays cannot be read, or do not have the model's shapes although `alike`.
    """
    who = f"the reply of device {device}"
    records = [numbers_of(record, who) for record in reply.content.array_records.values()]
    if alike and len(records) == 1:
        shapes, own = [array.shape for array in records[0]], numbers_of(model, "the model")
        wanted = [array.shape for array in own]
        of_bytes = any(array.dtype == OF_BYTES for array in [*records[0], *own])
        if shapes != wanted and not of_bytes:
            raise EdgeflError(
                f"{who} has arrays of shapes {quoted(shapes)}, but the model has {quoted(wanted)}: reply "
                "with all arrays of the model in their shapes"
            )
    return all(np.isfinite(array).all() for arrays in records for array in arrays)
