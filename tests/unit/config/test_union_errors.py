"""Test that the error about a value of several types is about the type that was meant, without pydantic's names."""

import pytest

from edgefl.config.error_messages import dotted, flat
from edgefl.mobility.itinerary import Itinerary, _Trip
from tests.refusals import REFUSALS

PLAN = [{"leave": 8, "to": "work"}]


@pytest.mark.parametrize(
    ("address", "lines"),
    [
        (
            {"work": 80, "home": 0.2},
            ["addresses.work.work: must be <= 1, got 80: it is a share, so write 0.8 for 80 %"],
        ),
        ([1, "a"], ["addresses.work.1: must be a number, got 'a'"]),
        (5, ["addresses.work: must be text, a mapping of keys to values or a list, got 5"]),
    ],
)
def test_only_the_type_that_was_meant_is_named(address: object, lines: list[str]) -> None:
    with pytest.raises(REFUSALS) as refusal:
        Itinerary.model_validate({"addresses": {"work": address}, "plan": PLAN})
    faults = flat(refusal.value.errors(), Itinerary)
    assert [f"{dotted(fault.place)}: {fault.message()}" for fault in faults] == lines


def test_a_word_is_compared_with_the_words_of_the_field() -> None:
    with pytest.raises(REFUSALS) as refusal:
        _Trip.model_validate({**PLAN[0], "days": "weekday"})
    (fault,) = flat(refusal.value.errors(), _Trip)
    assert fault.place == ("days",)
    assert fault.message().startswith("must be 'daily', 'weekdays' or 'weekend' or a list, got 'weekday'")
