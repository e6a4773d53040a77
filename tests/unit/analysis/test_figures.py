"""Test figures: positions on axes, lines and marks that coincide, integer ticks, pilot sessions."""

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from edgefl.analysis.figures.comparison import DPI, SIZE_INCH, TOP, draw_bars
from edgefl.analysis.figures.lines import (
    KIND_WORDS,
    curve_of,
    curve_over_time,
    draw_lines,
    label_lines,
    pilots_matter,
    session_bands,
    with_elapsed,
)
from edgefl.analysis.figures.pareto import pareto_figure
from edgefl.analysis.figures.style import Styles, heading, plain, variant_styles, whole
from edgefl.analysis.measures.results import DIFFER
from edgefl.analysis.page.formatting import count_of
from edgefl.analysis.reports.day import duration, short


def seen_in(figure: Figure, styles: Styles) -> dict[str, int]:
    """Count the pixels of each variant's colour."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    shades = np.asarray(canvas.buffer_rgba())[..., :3]
    return {
        name: int((np.abs(shades - 255 * np.array(to_rgb(style["color"]))) < 2).all(axis=-1).sum())
        for name, style in styles.items()
    }


@pytest.mark.parametrize("emphasised", ["a", None])
def test_lines_that_coincide_are_all_seen(emphasised: str | None) -> None:
    """If lines coincide, dashes leave gaps in which the lines below can be seen."""
    styles = variant_styles(["b", "c", "a", "d"], emphasised)
    figure = Figure(figsize=(4, 2), dpi=150)
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, 50))
    curve = pd.DataFrame(
        {"session": 1, "x": np.arange(50.0), "mean": np.linspace(0.1, 0.9, 50), "std": np.nan}
    )
    draw_lines(ax, dict.fromkeys(styles, curve), styles)
    assert min(seen_in(figure, styles).values()) > 40


def test_no_two_variants_look_alike() -> None:
    names = [f"variant {number}" for number in range(25)]
    for emphasised in (None, names[0], names[3]):
        styles = variant_styles(names, emphasised)
        assert len({(style["color"], str(style["linestyle"])) for style in styles.values()}) == len(names)


LONG = [
    "FedAvg with five local steps in a band of 100 MHz",
    "FedProx with a proximal weight of 0.1 in half the band, started from the most similar earlier models",
    "URBAN MACRO 28G",
    "short",
]


def boxes(figure: Figure) -> list[Bbox]:
    """Return the boxes of titles, legends and labels of lines, and check that each lies within the figure."""
    FigureCanvasAgg(figure).draw()
    named: list[Text] = [*figure.texts, *(text for ax in figure.axes for text in ax.texts)]
    named += [text for legend in figure.legends for text in legend.get_texts()]
    found = [text.get_window_extent() for text in named if text.get_text()]
    width, height = figure.bbox.size
    for box in found:
        assert 0 <= box.x0 <= box.x1 <= width
        assert 0 <= box.y0 <= box.y1 <= height
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_long_names_beside_their_lines_fit_without_overlap(count: int) -> None:
    figure, styles = Figure(figsize=SIZE_INCH, dpi=DPI), variant_styles(LONG[:count], None)
    ax = figure.add_axes(TOP, xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
    label_lines(ax, {name: pd.DataFrame({"mean": [0.5, 0.9]}) for name in styles}, styles)
    found = sorted(boxes(figure), key=lambda box: box.y0)
    assert len(found) == count
    assert all(lower.y1 <= upper.y0 for lower, upper in pairwise(found))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_long_names_in_titles_and_legends_fit(count: int) -> None:
    figure = Figure(figsize=SIZE_INCH, dpi=DPI)
    heading(figure, 0.5, f"Cost of reaching 95 % of {LONG[count - 1]}'s best accuracy in the session", "")
    assert len(boxes(figure)) == 1
    points = pd.DataFrame({"series": LONG[:count], "label": LONG[:count], "time_s": 1.0, "energy_j": 2.0})
    assert len(boxes(pareto_figure(points.assign(missed=False), ("time", "energy")))) == count * (count > 1)


@pytest.mark.parametrize("missed", [[True, False], [True, True]])
def test_the_words_above_time_and_energy_fit(missed: list[bool]) -> None:
    """If every target is missed, no point is efficient, and no filled mark is explained."""
    points = pd.DataFrame({"series": ["a", "b"], "label": "5", "time_s": [1.0, 2.0], "energy_j": [3.0, 4.0]})
    figure = pareto_figure(points.assign(missed=missed), ("time", "energy"), "numbers: bandwidth (MHz)")
    FigureCanvasAgg(figure).draw()
    (words,) = (text for text in figure.axes[0].findobj(Text) if "bandwidth" in text.get_text())
    assert words.get_window_extent().x0 > figure.axes[0].yaxis.label.get_window_extent().x1
    assert ("filled" in words.get_text()) != all(missed)


def test_labels_of_close_points_keep_clear_of_marks_and_each_other() -> None:
    """The mark of each point lies where its neighbour's label would be."""
    at = [(0.2, 7.04), (0.31, 7.92), (0.37, 7.57), (0.58, 8.85), (1.25, 13.0)]
    points = pd.DataFrame(at, columns=["time_s", "energy_j"]).assign(label="20, 0.01", missed=False)
    points["series"] = ["b", "a", "b", "a", "a"]
    figure = pareto_figure(points, ("time", "energy"), "numbers")
    FigureCanvasAgg(figure).draw()
    ax = figure.axes[0]
    labels = [text.get_window_extent() for text in ax.texts]
    marks = ax.transData.transform(np.array(at))
    assert len(labels) == len(at)
    assert not any(one.overlaps(other) for one, other in combinations(labels, 2))
    assert not any(box.contains(*mark) for box in labels for mark in marks)


def test_marks_that_coincide_are_all_seen() -> None:
    names = ["fedavg", "fedprox", "other"]
    spent = {"time_s": [5.0, 5.0, 9.0], "energy_j": [40.0, 40.0, 70.0], "missed": False}
    figure = pareto_figure(pd.DataFrame({"series": names, "label": names, **spent}), ("time", "energy"))
    colours: Sequence[str] = ("#0072B2", "#E69F00")
    seen = seen_in(figure, {colour: {"color": colour} for colour in colours})
    assert min(seen.values()) > 60
    assert not figure.axes[0].texts, "names of close points would overlap"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == names
    assert figure.axes[0].get_xlabel() == "time (s)"
    assert figure.axes[0].get_ylabel() == "energy (J)"


def test_a_curve_over_time_counts_from_the_start_of_each_session() -> None:
    """In two seeds, round 1 ends 2 s and 4 s after its session's start; probes count, but gaps do not."""
    rounds = pd.DataFrame(
        [
            (1, 1, 0, "probe", 0.0, 1.0, np.nan),
            (1, 1, 1, "train", 1.0, 2.0, 0.4),
            (1, 2, 1, "train", 10.0, 13.0, 0.8),
            (2, 1, 1, "train", 0.0, 4.0, 0.6),
            (2, 2, 1, "train", 10.0, 15.0, 0.6),
        ],
        columns=["seed", "session", "round", "phase", "start_s", "end_s", "accuracy"],
    ).assign(variant="a", cell=0)
    sessions = pd.DataFrame(
        {
            "variant": "a",
            "cell": 0,
            "seed": [1, 1, 2, 2],
            "session": [1, 2, 1, 2],
            "start_s": [0.0, 10.0, 0.0, 10.0],
        }
    )
    known = with_elapsed(rounds, sessions)
    curve = curve_over_time(known.assign(elapsed=known["elapsed_s"]), pd.Series({1: 100.0, 2: 200.0}))
    assert curve["x"].tolist() == [100 + 4.0, 200 + 5.0], "both seeds have an accuracy"
    assert curve["mean"].tolist() == pytest.approx([0.5, 0.7])
    curve = curve_of(known, "a", "accuracy", pd.Series({1: 0.0, 2: 20.0}))
    assert curve["x"].tolist() == [1, 21]


def test_a_curve_over_time_averages_at_equal_times() -> None:
    """Seed 1 tests each second for 6 s, seed 2 each 2 s for 4 s: the mean goes on over time, to 5 s."""
    tests = pd.DataFrame(
        [(1, time, 0.1 * time) for time in range(7)] + [(2, time, 0.5) for time in (0, 2, 4)],
        columns=["seed", "elapsed", "accuracy"],
    ).assign(cell=0, session=1)
    curve = curve_over_time(tests, pd.Series({1: 0.0}))
    assert curve["x"].tolist() == [0, 1, 2, 3, 4, 5]
    assert curve["mean"].tolist() == pytest.approx([0.25, 0.3, 0.35, 0.4, 0.45, 0.5])
    assert curve["std"].tolist() == pytest.approx([abs(0.1 * t - 0.5) / 2**0.5 for t in range(6)])
    one = curve_over_time(tests[tests["seed"] == 1], pd.Series({1: 10.0}))
    assert one["x"].tolist() == [10, 11, 12, 13, 14, 15, 16]
    assert one["mean"].tolist() == pytest.approx([0.1 * t for t in range(7)])


@pytest.mark.parametrize(
    ("weights", "matter"),
    [(["", "1:1", "2:1"], False), (["", np.nan, "1:1"], True), (["", "1:1", "1:0.5 2:0.5"], True)],
)
def test_pilots_are_marked_where_their_models_are_chosen_from(weights: list[str], matter: bool) -> None:
    assert pilots_matter(pd.DataFrame({"session": [1, 2, 3], "weights": weights})) is matter


@pytest.mark.parametrize("most", [1, 3, 7, 29])
def test_counts_have_whole_ticks(most: int) -> None:
    ax = Figure().add_subplot()
    ax.plot([0, most])
    plain(ax)
    whole(ax)
    ticks = [tick for tick in ax.get_yticks() if 0 <= tick <= most]
    assert len(ticks) >= 2
    assert all(tick == round(tick) for tick in ticks)


def test_numbers_as_a_person_says_them() -> None:
    assert [count_of(number, "device") for number in (0, 1, 1200)] == [
        "0 devices",
        "1 device",
        "1,200 devices",
    ]
    assert [duration(seconds) for seconds in (0.05, 1.65, 59.0, 1201.0, 19_800.0)] == [
        *("0.0500 s", "1.65 s", "59.0 s", "20.0 min", "5.50 h")
    ]
    assert [short(words) for words in ("1.00 min", "20.0 s", "1.50 h", "100 J")] == [
        "1 min",
        "20 s",
        "1.50 h",
        "100 J",
    ]


def test_values_above_the_bars_of_a_single_session_do_not_overlap() -> None:
    """The labels of values are as long as possible: three bars have similar heights, and one is a lower bound."""
    figure = Figure(figsize=(8.0, 5.6), dpi=200)
    ax = figure.add_axes((0.06, 0.1, 0.4, 0.2))
    bars = pd.DataFrame({"variant": ["a", "b", "c"], "group": 0, "mean": [0.948, 0.964, 0.921], "std": 0.1})
    draw_bars(ax, bars.assign(missed=[0, 1, 0]), ["session 4"], variant_styles(["a", "b", "c"], "a"))
    FigureCanvasAgg(figure).draw()
    left, middle, right = (text.get_window_extent() for text in ax.texts)
    assert left.x1 < middle.x0
    assert middle.x1 < right.x0


@pytest.mark.parametrize("kind", KIND_WORDS)
def test_words_above_six_sessions_do_not_overlap(kind: str) -> None:
    figure = Figure(figsize=SIZE_INCH, dpi=DPI)
    ax = figure.add_axes(TOP)
    sessions = pd.DataFrame({"session": range(1, 7), "kind": kind, "labels": DIFFER})
    session_bands(ax, sessions, pd.Series(1.0, index=range(1, 7)), pilots=True)
    FigureCanvasAgg(figure).draw()
    words = [text.get_window_extent() for text in ax.texts if text.get_text() == KIND_WORDS[kind]]
    assert len(words) == 6
    assert all(left.x1 < right.x0 for left, right in pairwise(words))
