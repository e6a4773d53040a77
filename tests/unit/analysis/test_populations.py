"""Test populations that return, and how a comparison treats their sessions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from edgefl.analysis import compare, load_runs
from edgefl.analysis.commands.line import main
from edgefl.analysis.measures.scope import jaccard, notes_on, population_kinds
from tests.unit.analysis.conftest import rounds_of

Write = Callable[..., Path]
# a pilot session, then two populations in turn; in each, devices leave and join
MEMBERS = ["1 2 3 4", "1 2 3 4", "5 6 7", "1 2 3 9", "5 6 8 10"]


def study(write_run: Write, members: list[str] = MEMBERS, others: list[str] | None = None) -> Path:
    for name, population, accuracy in (("best", members, 0.8), ("slow", others or members, 0.4)):
        rounds = [
            row
            for number in range(1, len(population) + 1)
            for row in rounds_of(number, [accuracy + 0.01 * number], "pilot" if number == 1 else "train")
        ]
        sessions = [
            {"session": number, "labels": "0 1", "devices": devices, "accuracy_start": 0.1 * number}
            for number, devices in enumerate(population, start=1)
        ]
        root = write_run(name, rounds, sessions).parent
    return root


def test_jaccard() -> None:
    assert jaccard(frozenset("abc"), frozenset("bcd")) == 2 / 4
    assert jaccard(frozenset(), frozenset()) == 0
    assert jaccard(frozenset("a"), frozenset()) == 0


def test_a_population_comes_back(write_run: Write) -> None:
    runs = load_runs(study(write_run))
    kinds = population_kinds(runs.rounds, runs.sessions)
    best = kinds[kinds.variant == "best"].set_index("session")
    assert best.pilot.tolist() == [True, False, False, False, False]
    # session 2 has the pilot's devices, for which no model was saved
    assert best.overlap.isna().tolist() == [True, True, False, False, False]
    assert best.overlap.dropna().tolist() == [0, 3 / 5, 2 / 5]  # 1 2 3 of 1 2 3 4 9, and 5 6 of 5 6 7 8 10
    assert best.resembles.dropna().tolist() == [2, 2, 3]
    assert best.recurring.tolist() == [False, False, False, True, False]
    lower = population_kinds(runs.rounds, runs.sessions, overlap=0.4)
    assert lower[lower.variant == "best"].recurring.tolist() == [False, False, False, True, True]
    with pytest.raises(ValueError, match="overlap is 3"):
        compare(runs, overlap=3)
    for overlap in (0.0, 1.1):
        with pytest.raises(ValueError, match="a share of devices"):
            population_kinds(runs.rounds, runs.sessions, overlap=overlap)


def test_only_sessions_in_which_it_comes_back_in_every_variant_are_compared(write_run: Write) -> None:
    runs = load_runs(study(write_run, others=[*MEMBERS[:3], "11 12", MEMBERS[4]]))
    kinds = population_kinds(runs.rounds, runs.sessions)
    assert not kinds.recurring.any()
    notes = notes_on(kinds, runs.sessions, 0.5)
    assert notes[0].startswith("1 session left out: the population came back in only some variants")
    assert notes[1].startswith("the variants have different devices in session 4")


def test_a_population_that_stayed_is_named(write_run: Write) -> None:
    runs = load_runs(study(write_run, ["0 1", "1 2 3", "1 2 3", "7", "1 2 3"]))
    kinds = population_kinds(runs.rounds, runs.sessions)
    (note,) = notes_on(kinds, runs.sessions, 0.5)
    assert note.startswith(
        "2 of the 4 sessions whose population came back are most similar to the session directly"
    )


def test_compare_averages_over_populations_that_came_back(
    write_run: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    root = study(write_run)
    by_population = compare(root, recurring="population")
    assert by_population.sessions == (4,)
    assert by_population.scope == "sessions whose population came back"
    assert by_population.table.set_index("variant").accuracy_start_mean["best"] == pytest.approx(0.4)
    kinds = by_population.per_session.set_index("session").kind
    assert kinds.tolist() == ["pilot", "new", "new", "returning", "new"]
    # the labels never change
    assert compare(root).sessions == (3, 4, 5)
    assert compare(root, recurring="population", overlap=0.4).sessions == (4, 5)
    assert main(["compare", str(root), "--recurring", "population", "--overlap", "0.9"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "no session has the population of an earlier session that is not a pilot: averages are over" in shown
    )
    assert "population" in (root / "comparison.md").read_text()
