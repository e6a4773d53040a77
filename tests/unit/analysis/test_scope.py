"""Test which sessions a comparison averages over if runs have different sessions."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from edgefl.analysis import compare
from edgefl.analysis.html.answer import answer
from edgefl.analysis.runs.load import load_runs

Write = Callable[..., Path]
LEFT_OUT = "only sessions that all runs have are compared; left out: "


def write_sessions(
    write_run: Write, variant: str, lasts_s: list[float], seed: int = 1, **how: object
) -> Path:
    """Write a run with two rounds per session, the second at 90 %, and the latencies of each session's rounds."""
    rounds = [
        {
            "session": session,
            "round": t,
            "phase": "pilot" if session == 1 else "train",
            "accuracy": accuracy,
            "latency_s": latency_s,
            "cell": how.get("cell", 0),
        }
        for session, latency_s in enumerate(lasts_s, start=1)
        for t, accuracy in ((1, 0.5), (2, 0.9))
    ]
    # session 3 has the labels of session 2, and so on
    sessions = [
        {"session": s, "labels": "0 1" if s > 1 else "2 3", "cell": how.get("cell", 0)}
        for s in range(1, len(lasts_s) + 1)
    ]
    return write_run(
        f"{variant}/{seed}", rounds, sessions, variant=variant, seed=seed, reference="a"
    ).parents[1]


def test_runs_that_share_only_the_pilot_are_compared_by_it(write_run: Write) -> None:
    """As if the target had stopped a after its first session: the pilot takes a 20 s, and b 40 s."""
    for seed in (1, 2):
        write_sessions(write_run, "a", [10.0], seed)
        root = write_sessions(write_run, "b", [20.0, 5.0, 5.0], seed)
    for reference in "ab":
        comparison = compare(root, reference=reference)
        assert (comparison.scope, comparison.sessions) == ("pilot sessions", (1,))
        assert comparison.table.set_index("variant").seconds_to_target_mean.to_dict() == {
            "a": 20.0,
            "b": 40.0,
        }
        assert f"{LEFT_OUT}sessions 2, 3 of b" in comparison.notes
    assert "a needs 0.50 times the time of b" in comparison.verdicts[1]
    assert comparison.time_to(0.8).to_dict() == {"a": 20.0, "b": 40.0}
    assert "of peak in pilot session 1 (2 seeds" in (root / "comparison.md").read_text()
    assert "2.0 times the time" in answer(load_runs(root)).replace("\u00a0", " ")


def test_only_transitions_that_all_runs_have_are_averaged(write_run: Write) -> None:
    """a and b are the same runs, except that b has a third session, which takes half the time."""
    write_sessions(write_run, "a", [10.0, 8.0])
    root = write_sessions(write_run, "b", [10.0, 8.0, 4.0])
    comparison = compare(root, target=0.8)
    assert (comparison.scope, comparison.sessions) == ("sessions after the pilot", (2,))
    assert list(comparison.table.seconds_to_target_ratio) == [1.0, 1.0]
    assert list(comparison.to_targets.seconds_to_target_mean) == [16.0, 16.0]
    assert [note for note in comparison.notes if note.startswith(LEFT_OUT)] == [f"{LEFT_OUT}session 3 of b"]
    write_sessions(write_run, "a", [10.0, 8.0, 4.0], 2)
    write_sessions(write_run, "b", [10.0, 8.0, 4.0, 2.0], 2)
    comparison = compare(root, target=0.8)  # the first kind that every seed has
    assert comparison.sessions == (2, 3)
    assert f"{LEFT_OUT}session 3 (seed 1), session 4 (seed 2) of b" in comparison.notes
    assert comparison.sessions_in_words == "sessions 2, 3, after the pilot"


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ("recurring sessions", "recurring session 2"),
        ("sessions whose population came back", "session 2, whose population came back"),
        ("sessions after the pilot", "session 2, after the pilot"),
        ("pilot sessions", "pilot session 2"),
        ("all sessions", "session 2"),
    ],
)
def test_a_session_is_named_by_its_number(scope: str, words: str, write_run: Write) -> None:
    """`sessions: 2` would read like a count."""
    found = compare(write_sessions(write_run, "a", [10.0, 8.0]), target=0.8)
    assert replace(found, scope=scope).sessions_in_words == words


def test_sessions_that_all_runs_have_need_no_note(write_run: Write) -> None:
    write_sessions(write_run, "a", [10.0, 8.0, 4.0])
    comparison = compare(write_sessions(write_run, "b", [10.0, 8.0, 4.0]))
    assert (comparison.scope, comparison.sessions) == ("recurring sessions", (3,))
    assert not [note for note in comparison.notes if "session" in note]


def test_seeds_of_one_variant_are_averaged_over_the_same_kind_of_session(write_run: Write) -> None:
    write_sessions(write_run, "a", [10.0])
    comparison = compare(write_sessions(write_run, "a", [10.0, 8.0], 2))
    assert comparison.sessions == (1,)
    assert f"{LEFT_OUT}session 2 (seed 2) of a" in comparison.notes


def test_many_sessions_of_several_cells_are_counted(write_run: Write) -> None:
    rounds = [{"session": s, "round": 1, "cell": c, "start_s": 10.0 * s} for s in (1, 2) for c in (0, 1)]
    rounds = [row | {"accuracy": 0.9} for row in rounds]
    sessions = [{"session": row["session"], "cell": row["cell"], "labels": "0"} for row in rounds]
    write_run("a/1", rounds[:2], sessions[:2], variant="a")
    comparison = compare(write_run("b/1", rounds, sessions, variant="b").parents[1])
    assert f"{LEFT_OUT}2 sessions of b" in comparison.notes


def test_runs_without_a_common_session_are_refused(write_run: Write) -> None:
    write_sessions(write_run, "a", [10.0, 8.0])
    root = write_sessions(write_run, "b", [10.0], cell=1)
    with pytest.raises(
        ValueError, match=r"'b' has no session in common with the other variants \(seed 1\): simulate"
    ):
        compare(root)


@pytest.mark.parametrize("reference", "ab")
@pytest.mark.parametrize("target", [0.8, "95%"])
def test_a_variant_without_accuracy_has_an_unknown_cost(
    write_run: Write, reference: str, target: float | str
) -> None:
    write_sessions(write_run, "a", [10.0, 8.0])
    rounds = [{"session": s, "round": 1} for s in (1, 2)]
    sessions = [{"session": s, "labels": "0 1"} for s in (1, 2)]
    root = write_run("b/1", rounds, sessions, variant="b", reference="a").parents[1]
    comparison = compare(root, target=[target, 0.9], reference=reference)
    assert any(told.startswith("The cost of b to") for told in comparison.verdicts)
    assert any("the cost of b is unknown" in told for told in comparison.verdicts)
    assert not any("—" in told or "unknown number" in told for told in comparison.verdicts)
