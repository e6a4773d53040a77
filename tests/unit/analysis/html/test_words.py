"""The report's tables say what each session had, also one that had no round."""

from collections.abc import Callable
from pathlib import Path

from edgefl.analysis import load_runs
from edgefl.analysis.html.words import session_table


def test_a_session_without_rounds_has_no_rounds_and_no_energy(write_run: Callable[..., Path]) -> None:
    rounds = [{"session": 1, "round": number, "accuracy": 0.5, "energy_j": 5.0} for number in (1, 2)]
    runs = load_runs(write_run("a", rounds, [{"session": 1}, {"session": 2}]))
    table = session_table(runs, next(runs.info.itertuples()))
    assert table["session"].tolist() == ["1", "2"]
    assert table["rounds"].tolist() == ["2", "0"]
    assert table["energy"].tolist() == ["10.0\N{NO-BREAK SPACE}J", "0"]
