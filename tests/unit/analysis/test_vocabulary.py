"""Test that the vocabulary of the tables lists every word, and derives no word from its spelling."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from edgefl.analysis import handover_figures, load_runs
from edgefl.analysis.runs.vocabulary import CAUSES, EVENTS, OUTCOMES, PING_PONG_S, STAGES, split_outcome
from edgefl.engine.parts import Outcome
from edgefl.engine.records import EventName
from edgefl.engine.settings import HandoverSettings
from tests.unit.analysis.conftest import change

Write = Callable[..., Path]
ROOT = Path(__file__).parents[3]
ROUNDS, SESSIONS = [{"session": 1, "round": 1}], [{"session": 1}]


def test_every_outcome_splits_into_cause_and_stage() -> None:
    assert split_outcome("completed") is None
    assert split_outcome("left_uplink") == ("left", "uplink")
    # links never fail while a device computes, and only uploads are lost over the air
    assert len(OUTCOMES) == 1 + len(CAUSES) * len(STAGES) - 1 - 2 - 2


@pytest.mark.parametrize("outcome", ["", "left", "left_", "left_handover", "uplink_left", "Completed"])
def test_an_unknown_outcome_is_refused_by_name(outcome: str) -> None:
    with pytest.raises(
        ValueError, match=f"unknown word '{outcome}', known to this release: completed, left_downl"
    ):
        split_outcome(outcome)


@pytest.mark.parametrize(
    ("table", "column", "word"),
    [("devices", "outcome", "left_the_building"), ("events", "event", "teleport")],
)
def test_the_place_of_an_unknown_word_is_named(write_run: Write, table: str, column: str, word: str) -> None:
    path = write_run("a", ROUNDS, SESSIONS)
    change(path, table, **{column: word})
    with pytest.raises(ValueError, match=rf"a/{table}\.csv: unknown word '{word}'"):
        handover_figures(load_runs(path))


def test_the_engine_speaks_these_words_and_no_others() -> None:
    assert {outcome.value for outcome in Outcome} == set(OUTCOMES)
    assert {event.value for event in EventName} == set(EVENTS)
    assert HandoverSettings.min_time_of_stay_s == PING_PONG_S


def test_the_docs_list_these_words_and_no_others() -> None:
    text = (ROOT / "docs" / "run-directory.md").read_text()
    for head, known in (("`outcome` in", OUTCOMES), ("`event` in", EVENTS)):
        table = text.split(f"| {head}")[1].split("\n\n")[0]
        listed = [line.split("|")[1] for line in table.splitlines()[2:]]
        assert {word for cell in listed for word in re.findall(r"`(\w+)`", cell)} == set(known)
