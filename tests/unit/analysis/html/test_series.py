"""Test the report's lines of devices served, with few cells, many cells, and cells with a federation."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from edgefl.analysis import load_runs
from edgefl.analysis.html.series import OVER_CELLS, WEIGHTED, charts, population, timeline
from edgefl.analysis.runs.load import Runs


def frames(cells: np.ndarray) -> dict[str, np.ndarray]:
    """Return the frames of a replay in which devices are in these cells [devices, times]."""
    return {"time_s": np.arange(float(cells.shape[1])), "x_m": np.zeros(cells.shape), "cell": cells}


def test_few_cells_have_a_line_each() -> None:
    drawn = population(frames(np.array([[0.0, 1.0], [1.0, 1.0]])), [0])
    assert drawn["title"] == "Devices in each cell"
    assert {line["label"]: line["y"] for line in drawn["series"]} == {
        "all present": [2, 2],
        "cell 0": [1, 0],
        "cell 1": [1, 2],
    }


def test_a_single_cell_does_not_count_devices_beyond_its_edge() -> None:
    drawn = population(frames(np.array([[0.0, np.nan], [0.0, 0.0]])), [0])
    assert {line["label"]: line["y"] for line in drawn["series"]} == {"all present": [2, 1]}


def test_devices_without_a_cell_are_not_present_among_several_cells() -> None:
    """The replay counts them as devices without a cell, beside the devices that are present."""
    drawn = population(frames(np.array([[0.0, np.nan], [1.0, 1.0], [np.nan, 0.0]])), [0, 1])
    assert {line["label"]: line["y"] for line in drawn["series"]} == {
        "all present": [2, 2],
        "cell 0": [1, 1],
        "cell 1": [1, 1],
    }


def test_of_many_cells_those_with_a_federation_have_one() -> None:
    cells = np.stack([np.arange(12.0), np.full(12, 3.0)], axis=1)
    drawn = population(frames(cells), [3, 5])
    assert drawn["title"] == "Devices in each cell with a federation"
    assert [(line["label"], line["look"], line["y"]) for line in drawn["series"][1:]] == [
        ("cell 3", 3, [1, 12]),
        ("cell 5", 5, [1, 0]),
    ]


def test_of_many_federations_it_is_the_fewest_the_mean_and_the_most() -> None:
    cells = np.stack([np.arange(12.0), np.full(12, 3.0)], axis=1)
    drawn = population(frames(cells), list(range(12)))
    assert {line["label"]: line["y"] for line in drawn["series"][1:]} == {
        "minimum": [1, 0],
        "mean": [1, 1],
        "maximum": [1, 12],
    }


IN_TWO_CELLS = [{"session": 1, "cell": cell} for cell in (0, 1)]


def test_accuracy_of_one_run_has_a_line_for_each_cell_and_of_several_runs_one_each(
    write_run: Callable[..., Path],
) -> None:
    rounds = [
        {"session": 1, "round": number, "cell": cell, "accuracy": 0.5 + 0.1 * cell}
        for number in (1, 2)
        for cell in (0, 1)
    ]
    one = load_runs(write_run("a", rounds, IN_TWO_CELLS))
    assert accuracy_lines(one) == ["cell 0", "cell 1"]
    two = load_runs(write_run("b", rounds, IN_TWO_CELLS).parent)
    assert len(accuracy_lines(two)) == 2
    assert "cell 0" not in accuracy_lines(two)


def test_a_caption_says_what_its_view_averages(write_run: Callable[..., Path]) -> None:
    """A line for each cell is no mean; a value at a round's number is the mean over the cells that have it."""
    rounds = [{"session": 1, "round": 1, "cell": cell, "accuracy": 0.5} for cell in (0, 1)]
    more = {"session": 1, "round": 2, "cell": 1, "accuracy": 0.5}
    root = write_run("a", [*rounds, more], IN_TWO_CELLS).parent
    by_time, by_round = charts(load_runs(root))[0]["views"]
    assert (by_time["about"], by_round["about"]) == ("", OVER_CELLS)
    assert [line["look"] for line in by_time["series"]] == [0, 1]
    write_run("b", rounds, IN_TWO_CELLS)
    drawn = charts(load_runs(root))
    assert drawn[0]["views"][0]["about"] == WEIGHTED
    assert [chart["views"][-1]["about"] for chart in drawn] == [OVER_CELLS] * 4
    one = load_runs(write_run("c", rounds[:1], [{"session": 1}]))
    assert {view["about"] for chart in charts(one) for view in chart["views"]} == {""}


def test_a_mean_over_cells_changes_when_a_device_does(write_run: Callable[..., Path]) -> None:
    """Each cell serves one device, until cell 0's goes to cell 1 at 3 s, with an interruption of half a second."""
    rounds = [
        {"session": 1, "round": 1, "cell": cell, "end_s": 1.0, "accuracy": 0.5 + 0.2 * cell}
        for cell in (0, 1)
    ]
    went = {"time_s": 3.0, "event": "handover", "device": 4, "cell": 1, "from_cell": 0, "interruption_s": 0.5}
    sessions = [{"session": 1, "cell": cell, "start_s": 0.0, "devices": str(4 + cell)} for cell in (0, 1)]
    runs = load_runs(write_run("a", rounds, sessions, events=[went]))
    mean = timeline(runs, next(runs.info.itertuples()))["accuracy"]
    assert dict(zip(mean["x"], mean["y"], strict=True)) == {1.0: 0.6, 3.0: 0.7, 3.5: 0.7}


def accuracy_lines(runs: Runs) -> list[str]:
    (chart,) = (one for one in charts(runs) if one["title"].startswith("Test accuracy"))
    return [line["label"] for line in chart["views"][0]["series"]]
