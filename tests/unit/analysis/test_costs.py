"""Compare the division of energy and time, and the journal paper's cost analysis, with hand-computed values."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis import load_runs
from edgefl.analysis.commands.line import main
from edgefl.analysis.measures.cost_analysis import cost_analysis
from edgefl.analysis.measures.energy import energy_by_class
from edgefl.analysis.page.formatting import ENERGY_UNITS
from edgefl.analysis.reports.costs import _participations, _spreads, breakdown, report_costs
from tests.unit.analysis.conftest import change

Write = Callable[..., Path]
STEPS = [f"{step}_{end}_s" for step in ("downlink", "compute", "uplink") for end in ("start", "end")]
SENT = ["iterations", "downlink_bits", "uplink_bits", "energy_j", "outcome"]
COLUMNS = ["session", "round", "phase", "device", "cell", *STEPS, "access_s", *SENT]


def a_run(write_run: Write, warm_start: dict, **run: object) -> Path:
    """Write a run of two devices, with a pilot, a probe and two training rounds in three sessions.

    In session 2, whose rounds begin at 20 s and 30 s, device 1 downloads for 1 s, computes for 2 s, waits 0.5 s
    (0.4 s of it for access), and uploads for 3 s; device 2 uploads a second longer, and does not complete round 2.
    """
    rounds = [
        {"session": 1, "round": 1, "phase": "pilot", "participants": 2, "completed": 2},
        {"session": 2, "round": 1, "phase": "probe", "participants": 2, "completed": 2},
        {"session": 2, "round": 1, "participants": 2, "completed": 2},
        {"session": 2, "round": 2, "participants": 2, "completed": 1},
        {"session": 3, "round": 1, "participants": 2, "completed": 2, "start_s": 50.0},
    ]
    for row, count in zip(rounds, (0, 0, 0, 3, 0), strict=True):
        row["out_of_coverage"] = count
    sessions, learning = [{"session": s} for s in (1, 2, 3)], {"pilot_sessions": 1, "warm_start": warm_start}
    about = {"model": {"payload_bits": 8e6}, "scenario": {"learning": learning}, **run}
    path = write_run("a", rounds, sessions, **about)
    rows = []
    for round_, start_s in ((1, 20.0), (2, 30.0)):
        for device in (1, 2):
            ends_s = start_s + np.cumsum([0, 1, 0, 2, 0.5, 3.0 + (device == 2)])
            outcome = "late_uplink" if (round_, device) == (2, 2) else "completed"
            rows.append([2, round_, "train", device, 0, *ends_s, 0.4, 5, 32, 32, 5.0, outcome])
    pd.DataFrame(rows, columns=COLUMNS).to_csv(path / "devices.csv", index=False)
    (path / "ledger.csv").write_text(
        "device,receive_j,transmit_j,compute_j,tail_j,energy_j,idle_j,total_j,wasted_j\n"
        "1,2,7,2,0,11,2,13,0\n2,3,8,3,0,14,3,17,0\n"
    )
    return path


def test_energy_and_time_add_up(write_run: Write) -> None:
    runs = load_runs(a_run(write_run, {"name": "similarity"}))
    found = breakdown(runs, energy_by_class(runs)).iloc[0]
    # each of five rounds has 1 J to receive, 3 J to send and 1 J to compute
    assert (found.receive_j, found.amplifier_j, found.compute_j) == (5, 15, 5)
    assert found.idle_j == 5
    assert (found.tail_j, found.energy_j, found.total_j) == (0, 25, 30)
    assert found.probe_j == 5
    assert (found.rounds_s, found.probe_s, found.between_s, found.simulated_s) == (40, 10, 10, 60)
    assert (found.downlink_s, found.compute_s) == (1, 2)
    assert (found.access_s, found.waiting_s) == (pytest.approx(0.4), pytest.approx(0.1))
    assert found.uplink_s == pytest.approx((3 + 4 + 3) / 3)  # the upload that did not complete is left out
    assert found.slowest_uplink_s == (4 + 3) / 2  # device 2 in round 1 and device 1 in round 2


def test_no_waiting_is_known_where_devices_begin_before_their_round(write_run: Write) -> None:
    path = a_run(write_run, {"name": "similarity"})
    change(path, "devices", downlink_start_s=lambda table: table.downlink_start_s - 60)
    runs = load_runs(path)
    found = breakdown(runs, energy_by_class(runs)).iloc[0]
    assert math.isnan(found.waiting_s)
    assert math.isnan(found.slowest_waiting_s)


def test_no_waiting_is_zero_despite_rounding() -> None:
    """0.3 s, 0.4 s and 0.1 s from 0.2 s on end at 1.0 s, up to an error of 1e-16 s."""
    keys = {"variant": ["a"], "seed": [1], "cell": [0], "session": [1], "phase": ["train"], "round": [1]}
    rounds = pd.DataFrame(keys | {"start_s": [0.2]})
    ends = {"downlink": (0.2, 0.5), "compute": (0.5, 0.9), "uplink": (0.9, 1.0)}
    times = {
        f"{step}_{end}_s": [at]
        for step, both in ends.items()
        for end, at in zip(("start", "end"), both, strict=True)
    }
    assert (1.0 - 0.2) - ((0.5 - 0.2) + (0.9 - 0.5) + (1.0 - 0.9)) != 0
    found = _participations(pd.DataFrame(keys | times | {"outcome": ["completed"]}), rounds).iloc[0]
    assert (found.waiting_s, found.slowest_waiting_s) == (0, 0)


def test_bits_of_a_stage_are_printed_in_mbit(write_run: Write) -> None:
    rounds = [{"session": 1, "round": n, "uplink_bits": 4e6, "downlink_bits": 1.5e6} for n in (1, 2)]
    about = {"model": {"payload_bits": 8e6}, "scenario": {"learning": {"pilot_sessions": 1}}}
    path = write_run("a", rounds, [{"session": 1}], **about)
    report_costs(path)
    text = (path / "costs.md").read_text()
    assert "training: uplink (Mbit) | 8.00" in text
    assert "training: downlink (Mbit) | 3.00" in text


def test_tables_of_time_name_the_pilot_rounds_that_they_include(write_run: Write) -> None:
    path = a_run(write_run, {"name": "similarity"})
    shown = dict(report_costs(path).tables)
    (of_participations,) = (title for title in shown if title.startswith("Time of a participation"))
    assert "in a pilot or training round" in of_participations
    (of_run,) = (table for title, table in shown.items() if title.startswith("Simulated time"))
    assert "pilot and training rounds" in of_run.index
    change(path, "rounds", phase=lambda table: table["phase"].replace("pilot", "train"), accuracy=0.5)
    without = " ".join(title for title, _ in report_costs(path).tables)
    assert "in a training round" in without
    change(path, "rounds", phase="train", accuracy=None)
    shown = dict(report_costs(path).tables)
    assert any(title.startswith("Time of a participation in a round") for title in shown), (
        "nothing is trained"
    )
    (of_run,) = (table for title, table in shown.items() if title.startswith("Simulated time"))
    assert "rounds" in of_run.index


def test_means_over_cells_beside_sums_are_said(write_run: Write) -> None:
    """In each of two cells, a round lasts from 1 s to 2 s of 10 s, so that 9 s are between rounds."""
    rounds = [{"session": 1, "round": 1, "cell": cell, "start_s": 1.0, "end_s": 2.0} for cell in (1, 2)]
    sessions = [{"session": 1, "cell": cell} for cell in (1, 2)]
    path = write_run("two", rounds, sessions, simulated_s=10.0)
    report, found = report_costs(path), breakdown(load_runs(path)).iloc[0]
    assert (found.rounds_s, found.between_s) == (1, 9)
    said = " ".join(report.sentences)
    assert "means over cells" in said
    assert "before its first round and after its last" in said
    alone = report_costs(write_run("one", rounds[:1], sessions[:1], seed=2))
    assert "means over cells" not in " ".join(alone.sentences)


def test_energy_includes_tails(write_run: Write) -> None:
    tails = {"energy_j": 7.0, "energy_tail_j": 2.0}
    rounds = [{"session": 1, "round": number} | tails for number in (1, 2)]
    found = breakdown(load_runs(write_run("a", rounds, [{"session": 1}]))).iloc[0]
    assert (found.tail_j, found.energy_j) == (4, 14)


def test_a_run_that_was_left_has_costs_beside_one_that_ended(write_run: Write) -> None:
    """An interrupted run has no ledger yet, so energies are sums over rounds of 5 J: over five rounds or one."""
    ended = a_run(write_run, {"name": "similarity"})
    end = {"time_s": 10.0, "event": "session_end", "session": 1}
    about = {"status": "interrupted", "seed": 2, "events": [end]}
    left = write_run("left", [{"session": 1, "round": 1}], [{"session": 1}], **about)
    for table in ("ledger.csv", "devices.csv"):
        (left / table).write_text((ended / table).read_text().splitlines()[0] + "\n")
    (left / "scenario.yaml").write_text((ended / "scenario.yaml").read_text())
    report = report_costs(ended.parent, partial=True)
    assert report.numbers["costs.csv"]["energy_j"].tolist() == [25, 5]
    assert (
        "| transmit: amplifier and circuits |" in report.texts["costs.md"]
    )  # only a ledger tells them apart
    assert "| transmit: amplifier |" not in report.texts["costs.md"]


@pytest.mark.parametrize("command", ["costs", "network", "compare", "sweep"])
def test_a_run_that_failed_in_its_first_session_has_no_costs_and_is_told(
    write_run: Write, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = write_run(
        "failed", [{"session": 1, "round": 1}], [{"session": 1}], status="failed", error="disk full"
    )
    assert main([command, str(failed), "--partial"]) == 2
    assert capsys.readouterr().err.count("no session has ended; it failed (disk full)") == 1
    assert not list(failed.glob("*.md"))


def test_a_run_without_rows_of_devices_has_costs(write_run: Write) -> None:
    path = a_run(write_run, {"name": "similarity"})
    header = (path / "devices.csv").read_text().splitlines()[0]
    (path / "devices.csv").write_text(header + "\n")
    found = breakdown(load_runs(path)).iloc[0]
    assert (found.energy_j, found.simulated_s) == (25, 60)
    assert cost_analysis(load_runs(path))["uploads"].tolist() == [2, 2, 5]


def test_a_run_without_a_round_has_idle_joules_and_time(write_run: Write) -> None:
    path = a_run(write_run, {"name": "similarity"})
    for name in ("rounds.csv", "devices.csv", "sessions.csv"):
        head = (path / name).read_text().splitlines()[0]
        (path / name).write_text(f"{head}\n")
    runs = load_runs(path)
    found = breakdown(runs, energy_by_class(runs)).iloc[0]
    assert (found.energy_j, found.idle_j, found.total_j) == (25, 5, 30)  # as in the ledger
    assert (found.rounds_s, found.between_s) == (0, found.simulated_s)
    assert breakdown(runs)["energy_j"].tolist() == [0.0]  # without the ledger


def test_stages_are_counted_as_the_paper_does(write_run: Write) -> None:
    costs = cost_analysis(load_runs(a_run(write_run, {"name": "similarity", "history": None}))).set_index(
        "stage"
    )
    assert costs["rounds"].to_dict() == {"pilot": 1, "gradient": 1, "training": 3}
    assert costs["uploads"].to_dict() == {"pilot": 2, "gradient": 2, "training": 5}
    assert costs["uncovered"].to_dict() == {"pilot": 0, "gradient": 0, "training": 3}
    assert costs.loc["training", "iterations"] == 20
    # a run stores one model after P = 1 session, and two models for each of two later sessions (J: 2Z (S - P) + Z)
    assert set(costs["stored_models"]) == {1 + 2 * 2}
    assert set(costs["stored_temporarily"]) == {1}


@pytest.mark.parametrize(
    ("warm_start", "models"),
    [
        ({"name": "similarity", "history": 1}, 3),
        ({"name": "average", "history": None}, 2),
        ({"name": "previous"}, 1),
    ],
)
def test_storage_by_warm_start(write_run: Write, warm_start: dict, models: int) -> None:
    costs = cost_analysis(load_runs(a_run(write_run, warm_start)))
    assert set(costs["stored_models"]) == {models}


def test_storage_is_that_of_the_cell_with_the_most_sessions(write_run: Write) -> None:
    """Cell 0 has three sessions after the pilot, more than cell 1, so storage is 1 + 2 x 3 models."""
    rounds = [
        {"session": session, "round": 1, "cell": cell}
        for cell, sessions in ((0, 4), (1, 2))
        for session in range(1, sessions + 1)
    ]
    sessions = [{"session": one["session"], "cell": one["cell"]} for one in rounds]
    learning = {"pilot_sessions": 1, "warm_start": "similarity"}
    about = {"model": {"payload_bits": 8e6}, "scenario": {"learning": learning}}
    path = write_run("a", rounds, sessions, **about)
    assert set(cost_analysis(load_runs(path))["stored_models"]) == {7}


def test_the_report_is_written_in_three_forms(write_run: Write) -> None:
    report = report_costs(a_run(write_run, {"name": "similarity"}))
    assert "models kept at the end | 5 (5.00 MB)" in (report.out / "costs.md").read_text()
    assert r"\toprule" in (report.out / "costs.tex").read_text()
    assert pd.read_csv(report.out / "costs.csv").loc[0, "total_j"] == 30


def test_a_row_too_small_for_its_table_has_its_own_unit(write_run: Write) -> None:
    """An idle energy of 20 uJ in a table of 25 J is shown in mJ; a single seed has no mean over seeds."""
    ledger = a_run(write_run, {"name": "previous"}) / "ledger.csv"
    ledger.write_text(ledger.read_text().replace(",2,13,", ",1e-5,11,").replace(",3,17,", ",1e-5,14,"))
    report = report_costs(ledger.parent)
    assert dict(report.tables)["Energy of a run (J)"].loc["idle, not included (mJ)", "a"] == "0.0200"
    assert "over seeds" not in str(report)


def test_a_row_has_one_unit_and_equal_seeds_have_no_spread() -> None:
    """0.4 mJ and 0.02 mJ of computing share a unit; if all seeds have equal values, no deviation is shown."""
    frames = {
        name: pd.DataFrame(
            {"compute_j": [joules, 1.5 * joules], "energy_j": 1.0, "wasted_j": 0.0, "devices": 12}
        )
        for name, joules in (("a", 4e-4), ("b", 2e-5))
    }
    words = {"compute_j": "compute", "energy_j": "energy", "wasted_j": "wasted"}
    table, unit = _spreads(frames, words, ENERGY_UNITS)
    assert unit == "J"
    assert table.loc["compute"].tolist() == ["0.000500 ± 0.000141", "0.0000250 ± 0.0000071"]
    assert table.loc["energy"].tolist() == ["1.00", "1.00"]
    assert table.loc["wasted"].tolist() == ["0", "0"]
    assert _spreads(frames, {"devices": "devices"}, ())[0].loc["devices"].tolist() == ["12", "12"]


def test_only_rows_that_are_there_are_explained(write_run: Write) -> None:
    """Without record.energy_excess there is no row of energy above the minimum, and no explanation of it."""
    path = a_run(write_run, {"name": "previous"})
    assert "Above the minimum" not in " ".join(report_costs(path).sentences)
    change(path, "rounds", energy_excess_j=1.0)
    assert "Above the minimum" in " ".join(report_costs(path).sentences)
