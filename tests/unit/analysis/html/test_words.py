"""Test the words in the report's tables, also for a session without rounds."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from edgefl.analysis import load_runs, report_network
from edgefl.analysis.html.words import _one, comparison, outcome_table, session_table
from edgefl.analysis.measures.notes import further
from edgefl.analysis.page.report import noted
from tests.unit.analysis.conftest import change


def told(run: Path) -> str:
    """Return the summary of a run."""
    runs = load_runs(run)
    return " ".join(_one(runs, next(runs.info.itertuples()))).replace("\N{NO-BREAK SPACE}", " ")


def test_a_session_without_rounds_has_no_rounds_and_no_energy(write_run: Callable[..., Path]) -> None:
    rounds = [{"session": 1, "round": number, "accuracy": 0.5, "energy_j": 5.0} for number in (1, 2)]
    runs = load_runs(write_run("a", rounds, [{"session": 1}, {"session": 2}]))
    table = session_table(runs, next(runs.info.itertuples()))
    assert table["session"].tolist() == ["1", "2"]
    assert table["rounds"].tolist() == ["2", "0"]
    assert table["energy"].tolist() == ["10.0\N{NO-BREAK SPACE}J", "0"]


def test_energy_of_unused_updates_is_told_if_there_is_any(write_run: Callable[..., Path]) -> None:
    path = write_run("a", [{"session": 1, "round": n, "energy_j": 5.0} for n in (1, 2)], [{"session": 1}])
    for wasted_j, ends in (
        (0.0, "2 of 2 participations completed."),
        (0.5, "10.0 % of the energy went into"),
    ):
        change(path, "rounds", energy_wasted_j=wasted_j)
        text = told(path)
        assert ends in text
        assert ("not used" in text) is (wasted_j > 0)


def test_handovers_back_to_the_previous_cell_are_counted_within_a_stated_time(
    write_run: Callable[..., Path],
) -> None:
    """Returns after a longer stay are not counted, so the sentence and the table say what they count."""
    events = [
        {"time_s": time_s, "event": "handover", "device": 1, "detail": detail}
        for time_s, detail in ((1.0, ""), (1.5, "ping_pong"), (9.0, ""))
    ]
    path = write_run("a", [{"session": 1, "round": 1}], [{"session": 1}], events=events)
    assert told(path).endswith(" 1 of 3 handovers went back to the previous cell within 1 s (ping-pong).")
    ((_, table),) = report_network(path).tables
    assert table.loc["Ping-pong within 1 s (%)"].tolist() == ["33.3"]


def test_the_best_model_is_one_that_a_round_made_and_pilot_rounds_are_counted(
    write_run: Callable[..., Path],
) -> None:
    """A session may open with a better model than any round makes, and the summary names both."""
    rounds = [
        {"session": 1, "round": 1, "accuracy": 0.5, "phase": "pilot"},
        {"session": 2, "round": 1, "accuracy": 0.4},
    ]
    text = told(write_run("a", rounds, [{"session": 1}, {"session": 2, "accuracy_start": 0.9}]))
    assert "2 training rounds, 1 of them in pilot sessions, took" in text
    untrained = write_run("untrained", [{"session": 1, "round": 1}], [{"session": 1}], variant="b")
    assert "1 session with 1 round took" in told(untrained)
    assert "; the best after a round is 50.0 %, in session 1, round 1." in text
    assert "open with models of 90.0 % accuracy." in text


def overlapping(write_run: Callable[..., Path]) -> Path:
    """Write an asynchronous server's run of one session with two models, from updates of staleness 1 and 2."""
    rounds = [
        {"session": 1, "round": n, "staleness_mean": float(n), "staleness_max": 2.0 * n} for n in (1, 2)
    ]
    path = write_run("a", rounds, [{"session": 1}])
    change(path, "devices", outcome=["completed", "surplus_uplink"], dispatch=[1, 2])
    return path


def test_work_that_a_session_s_end_cuts_off_is_not_called_a_surplus(write_run: Callable[..., Path]) -> None:
    path = overlapping(write_run)
    runs = load_runs(path)
    meanings = outcome_table(runs, next(runs.info.itertuples())).set_index("outcome")["meaning"]
    assert meanings["surplus_uplink"] == "the session had ended, in the uplink step"
    devices = pd.read_csv(path / "devices.csv").drop(columns="dispatch")
    devices.to_csv(path / "devices.csv", index=False)  # without the columns of an asynchronous server
    runs = load_runs(path)
    meanings = outcome_table(runs, next(runs.info.itertuples())).set_index("outcome")["meaning"]
    assert meanings["surplus_uplink"] == "enough other updates had arrived, in the uplink step"


def test_the_age_of_updates_is_reported_for_asynchronous_servers_only(write_run: Callable[..., Path]) -> None:
    path = overlapping(write_run)
    runs = load_runs(path)
    assert comparison(runs)["staleness, mean"].tolist() == ["1.50"]
    run = next(runs.info.itertuples())
    told = [sentence for _, _, sentence in further(runs, run.variant)]
    assert told == ["Devices' updates were on average 1.50 models old (staleness)."]
    assert noted([*told, "left out b"]) == [f"Note: {told[0]}", "Note: left out b."], "one full stop each"
    rounds = pd.read_csv(path / "rounds.csv").drop(columns=["staleness_mean", "staleness_max"])
    rounds.to_csv(path / "rounds.csv", index=False)
    runs = load_runs(path)
    assert "staleness, mean" not in comparison(runs)
    assert not list(further(runs, run.variant))


def test_sessions_of_several_cells_and_devices_without_coverage_are_counted(
    write_run: Callable[..., Path],
) -> None:
    cells = [{"session": 1, "cell": cell} for cell in (0, 1)]
    path = write_run("a", [{**one, "round": 1, "accuracy": 0.5} for one in cells], cells)
    some = "In {} of 2 training rounds some devices had no coverage and did not take part, at most {} in a round."
    for without, said in (
        ((0, 0), ""),
        ((1, 2), some.format(2, "2 devices")),
        ((0, 1), some.format(1, "1 device")),
    ):
        change(path, "rounds", out_of_coverage=without)
        text = told(path)
        assert "2 sessions in 2 cells with 2 training rounds" in text
        assert said in text
        assert ("coverage" in text) is bool(said)
