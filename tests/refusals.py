"""Check errors by their key and a few nouns; other tests check the wording of messages."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pydantic import ValidationError

from edgefl.config.error_messages import dotted, flat
from edgefl.errors import EdgeflError

REFUSALS = (EdgeflError, ValidationError)


@contextmanager
def refused_at(
    place: str, *nouns: object, kind: type[Exception] | tuple[type[Exception], ...] = REFUSALS
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expect an error about one key.

    Args: place: the key's path, such as "learning.algorithm.mu"; "" for errors about a file, an option, or no key at
    all. nouns: other words in the error, such as a value, a component, a file, an option. kind: class of the error.
    """
    with pytest.raises(kind) as refusal:
        yield refusal
    text = str(refusal.value)
    assert not place or is_about(refusal.value, place), f"not about {place}: {text}"
    for noun in nouns:
        assert str(noun) in text, f"does not name {noun}: {text}"


def is_about(error: BaseException, place: str) -> bool:
    """Return whether an error is about a key, which is the error's place or begins a line of its text."""
    if isinstance(error, ValidationError):
        faults = [(dotted(fault.place), fault.message()) for fault in flat(error.errors(), None)]
        # the place of an error about several keys is their section, and its text begins with a key
        return any(place == at or re.match(rf"{re.escape(place)}[: ]", message) for at, message in faults)
    placed = dotted(getattr(error, "place", ())) == place
    return placed or re.search(rf"(?m)(^|\s){re.escape(place)}: ", str(error)) is not None
