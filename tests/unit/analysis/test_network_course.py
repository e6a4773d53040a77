"""Test the network's figures over simulated time, and their plot."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from edgefl.analysis import load_runs, report_network
from edgefl.analysis.figures.style import COLUMN_DPI, WIDTH_INCH
from edgefl.analysis.measures.metrics import RUN
from edgefl.analysis.reports.network import PERIODS, _by_run, handover_figures, network_figure, over_time
from tests.unit.analysis.conftest import change

Write = Callable[..., Path]
END_S = 10.0 * PERIODS  # periods of ten seconds
# older versions of pandas copy selected columns
COPIES_ON_WRITE = int(pd.__version__.partition(".")[0]) >= 3


def moving(write_run: Write, variant: str = "a", seed: int = 1) -> Path:
    """Write a run: device 1 hands over at 1 s and back at 2 s, device 0 is off 5 to 25 s, rounds take 10 and 20 s."""
    rounds = [
        {"session": 1, "round": 1, "start_s": 0.0, "latency_s": 10.0},
        {"session": 1, "round": 2, "start_s": 30.0, "latency_s": 20.0},
    ]
    events = [
        {"time_s": 1.0, "event": "handover", "device": 1},
        {"time_s": 2.0, "event": "handover", "device": 1, "detail": "ping_pong"},
        {"time_s": 5.0, "event": "switched_off", "device": 0},
        {"time_s": 25.0, "event": "switched_on", "device": 0},
    ]
    about = {"variant": variant, "seed": seed, "simulated_s": END_S, "events": events}
    return write_run(f"{variant}/{seed}", rounds, [{"session": 1, "devices": "0 1"}], **about).parents[1]


def test_each_period_has_its_handovers_devices_and_rounds(write_run: Write) -> None:
    course = over_time(load_runs(moving(write_run)))
    assert list(course["time_s"][:3]) == [5.0, 15.0, 25.0]
    assert list(course["handovers_per_hour"][:2]) == [2 * 360, 0]
    assert list(course["ping_pongs_per_hour"][:2]) == [360, 0]
    # one of two devices is off for half of the first period, all of the second period and half of the third period
    assert list(course["in_service"][:4]) == pytest.approx([1.5, 1.0, 1.5, 2.0])
    assert course["round_s"].dropna().to_dict() == {0: 10.0, 3: 20.0}


def test_devices_in_cells_without_a_server_are_in_service_too(write_run: Write) -> None:
    """Of four more devices, 2 stands in cell 3 and 3 is always away, like 4, which is also switched; 5 is always off.

    None of them is in a session or a round, so only the positions say that device 2 is served.
    """
    path = moving(write_run) / "a/1"
    away = {
        "time_s": [5.0, 25.0],
        "event": ["switched_off", "switched_on"],
        "device": 4,
        "cell": [None, None],
    }
    events = pd.read_csv(path / "events.csv").assign(cell=0)
    pd.concat([events, pd.DataFrame(away)]).to_csv(path / "events.csv", index=False)
    joules = ("receive_j", "transmit_j", "compute_j", "tail_j", "energy_j", "idle_j", "total_j", "wasted_j")
    used = pd.Series([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    ledger = pd.DataFrame({"device": range(6)} | dict.fromkeys(joules, used))
    ledger.to_csv(path / "ledger.csv", index=False)
    assert over_time(load_runs(path))["in_service"].max() == 2, "nothing tells that device 2 is there"
    places = {"time_s": 0.0, "device": [0, 1, 2, 5], "x_m": 1.0, "y_m": 1.0, "cell": [0, 0, 3, None]}
    pd.DataFrame(places).assign(gain_db="").to_csv(path / "positions.csv", index=False)
    assert list(over_time(load_runs(path))["in_service"][:4]) == pytest.approx([2.5, 2.0, 2.5, 3.0])
    figures = handover_figures(load_runs(path)).iloc[0]
    assert figures["handovers_per_device_hour"] == pytest.approx(2 * 3600 / (3 * END_S - 20))


def test_a_run_that_ends_sooner_has_fewer_periods(write_run: Write) -> None:
    moving(write_run)
    short = {"variant": "b", "seed": 1, "simulated_s": 15.0}
    root = write_run("b/1", [{"session": 1, "round": 1}], [{"session": 1}], **short).parents[1]
    course = over_time(load_runs(root))
    assert course.groupby("variant").size().to_dict() == {"a": PERIODS, "b": 2}


def test_the_rows_of_a_run_are_found_wherever_they_stand_and_copied_only_where_they_must() -> None:
    """A run's rows are a view where possible, as copying them took most of the time for a thousand runs."""
    whole = pd.DataFrame(
        {"variant": list("aabbb"), "seed": 1, "time_s": [1.0, 2.0, 3.0, 4.0, 5.0], "more": ""}
    )
    for table, is_view in ((whole, True), (whole.sort_values("time_s", key=lambda of: of % 2), False)):
        cut = _by_run(table, ["time_s", "absent"])
        for run in table[RUN].drop_duplicates().itertuples():
            expected = table.loc[table["variant"] == run.variant, ["time_s"]]
            pd.testing.assert_frame_equal(cut(run), expected)
            own, all_of_them = cut(run)["time_s"].to_numpy(), table["time_s"].to_numpy()
            assert np.shares_memory(own, all_of_them) == (is_view and COPIES_ON_WRITE)
    assert len(_by_run(whole, ["time_s"])(whole.assign(variant="c").iloc[0])) == 0


@pytest.mark.usefixtures("rendered")
def test_the_report_has_tables_and_a_figure_at_column_width(write_run: Write) -> None:
    root = moving(write_run)
    moving(write_run, seed=2)
    report = report_network(root)
    assert report.figure == root / "network.png"
    assert Image.open(report.figure).width == round(WIDTH_INCH * COLUMN_DPI)
    assert (root / "network.pdf").read_bytes().startswith(b"%PDF")
    assert len(pd.read_csv(root / "network_course.csv")) == 2 * PERIODS
    assert list(pd.read_csv(root / "network.csv")["handovers"]) == [2, 2]
    drawn = network_figure(report.numbers["network_course.csv"])
    assert drawn is not None
    labels = [ax.get_ylabel() for ax in drawn.axes]
    assert labels == ["handovers per hour", "devices in service", "round time (s)"]


def test_what_broke_participations_and_who_had_no_link_are_told(write_run: Write) -> None:
    rounds, ledger = [{"session": 1, "round": 1, "out_of_coverage": 1}], [{"device": 0}, {"device": 7}]
    root = write_run("a", rounds, [{"session": 1}], ledger=ledger, devices_recorded="all")
    change(root, "devices", device=0, outcome="left_uplink")
    assert report_network(root).sentences == [
        "Broken participations: 1 because the device left the cell.",
        "Wasted: 5.00 J because the device left the cell.",
        "When 1 of 1 round began, some devices had no link, at most 1 device; in no round, for this or another"
        " reason: 7.",
    ]


def test_what_does_not_change_or_is_not_there_has_no_panel(write_run: Write) -> None:
    root = write_run("still", [{"session": 1, "round": 1}], [{"session": 1}])
    drawn = network_figure(over_time(load_runs(root)))
    assert drawn is not None
    assert [ax.get_ylabel() for ax in drawn.axes] == ["round time (s)"]


def test_many_runs_are_printed_as_means_of_their_variants(write_run: Write) -> None:
    for seed in range(1, 14):
        root = moving(write_run, seed=seed)
    ((_, text),) = report_network(root).tables
    assert list(text.columns) == ["a, mean of 13"]
    assert text.loc["Handovers", "a, mean of 13"] == "2"


def test_a_line_for_each_variant_up_to_as_many_as_can_be_told_apart(write_run: Write) -> None:
    for variant in "abcdefg":
        root = moving(write_run, variant)
    report = report_network(root)
    assert "Note: the figure shows the first 5 of 7 variants." in report.sentences


def test_the_band_is_a_deviation_over_seeds_and_never_below_nothing() -> None:
    """If two seeds have 0 and 2 handovers per hour, then 4 and 4, the band is 1 +- 1.41, cut off at 0, and then 4."""
    course = pd.DataFrame(
        {
            "variant": "a",
            "seed": [1, 1, 2, 2],
            "time_s": [5.0, 15.0, 5.0, 15.0],
            "handovers_per_hour": [0.0, 4.0, 2.0, 4.0],
            "ping_pongs_per_hour": 0.0,
            "in_service": 3.0,
            "round_s": np.nan,
        }
    )
    figure = network_figure(course)
    assert figure is not None
    (band,) = figure.axes[0].collections
    heights = sorted({float(height) for height in band.get_paths()[0].vertices[:, 1]})
    assert heights == pytest.approx([0.0, 1.0 + np.sqrt(2.0), 4.0])


def test_wasted_joules_name_their_causes_the_largest_first(write_run: Write) -> None:
    root = moving(write_run)
    (table,) = root.rglob("devices.csv")
    rows = pd.read_csv(table).iloc[[0] * 5]
    outcomes = ["completed", "late_uplink", "late_compute", "surplus_uplink", "surplus_uplink"]
    joules, dispatches = [9.0, 2.0, 1.0, 0.5, 0.25], [None, None, None, None, 3]
    rows.assign(outcome=outcomes, energy_j=joules, dispatch=dispatches).to_csv(table, index=False)
    said = report_network(root).sentences
    (told,) = (sentence for sentence in said if sentence.startswith("Wasted: "))
    assert told == (
        "Wasted: 3.00 J because the deadline had passed, 500 mJ because enough other updates had arrived, "
        "250 mJ because the session had ended."
    )
