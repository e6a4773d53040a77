"""Test that components of the channel package are frozen, and that their values must be within range."""

import dataclasses
import math
from typing import Any

import pytest

from edgefl.channel.component import ChannelComponent, parameter
from edgefl.config.component import parameters_of


@dataclasses.dataclass(frozen=True)
class Example(ChannelComponent):
    needed: float = parameter(description="a share", gt=0, le=1)
    count: int = parameter(3, description="how many", ge=2)
    free: str = parameter("x", description="any text")


def test_parameters_tell_all_there_is_to_know() -> None:
    assert [(each.name, each.default, dict(each.metadata)) for each in dataclasses.fields(Example)] == [
        ("needed", dataclasses.MISSING, {"description": "a share", "gt": 0, "le": 1}),
        ("count", 3, {"description": "how many", "ge": 2}),
        ("free", "x", {"description": "any text"}),
    ]


def test_pydantic_reads_the_same() -> None:
    parameters = parameters_of(Example)
    assert parameters.model_json_schema()["properties"] == {
        "needed": {
            "description": "a share",
            "exclusiveMinimum": 0,
            "maximum": 1,
            "title": "Needed",
            "type": "number",
        },
        "count": {"default": 3, "description": "how many", "minimum": 2, "title": "Count", "type": "integer"},
        "free": {"default": "x", "description": "any text", "title": "Free", "type": "string"},
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"needed": 0.0}, r"needed must be > 0 and <= 1, got 0\.0"),
        ({"needed": math.nan}, "needed must be > 0 and <= 1, got nan"),
        ({"needed": "x"}, "needed must be > 0 and <= 1, got 'x'"),
        ({"needed": 1.0, "count": 1}, "count must be >= 2, got 1"),
    ],
)
def test_values_out_of_range_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Example(**values)


def test_a_component_is_frozen_and_equal_to_its_like() -> None:
    example = Example(needed=1.0)
    assert example == Example(needed=1.0, count=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        example.count = 4  # type: ignore[misc]
    with pytest.raises(TypeError, match="needed"):
        Example()
