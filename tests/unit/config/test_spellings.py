"""Test that American spellings of keys are read as the British ones, with a note."""

import logging

import pytest

from edgefl.config import strict
from edgefl.scenario.scenario import load
from tests.refusals import refused_at

SCENARIO = {
    "name": "a",
    "devices": {"count": 3},
    "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "workload": {"payload_bits": 1000, "flops_per_sample": 1},
}


def test_keys_are_understood_at_any_depth_and_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    strict._note_spelling.cache_clear()
    given = {
        **SCENARIO,
        "areas": {"park": {"disc": {"center_m": [3, 4], "radius_m": 5}}},
        "layout": {"rings": 1, "isd_m": 300},
        "radio": {"neighbor_load": 0.2},
    }
    with caplog.at_level(logging.WARNING):
        load(given)
        loaded = load(given)
    assert loaded.areas["park"].disc.centre_m == (3, 4)
    assert loaded.radio.neighbour_load == 0.2
    assert [record.message.split(";")[0] for record in caplog.records] == [
        "note: center_m is read as centre_m",
        "note: neighbor_load is read as neighbour_load",
    ]


def test_both_spellings_at_once_are_a_mistake() -> None:
    both = {"neighbor_load": 0.2, "neighbour_load": 0.1}
    with refused_at("radio.neighbor_load"):
        load({**SCENARIO, "radio": both})


def test_words_that_are_spelled_alike_stay_and_unknown_ones_are_refused() -> None:
    assert strict._british({"center_line": 1, 3: 2}, {"centre_m"}) == {"center_line": 1, 3: 2}
    assert strict._british({"neighbor_load": 1}, {"neighbour_load"}) == {"neighbour_load": 1}
