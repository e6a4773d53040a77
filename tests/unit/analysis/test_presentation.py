"""Test numbers as text, output in the terminal and in LaTeX, and pixels of figures."""

import csv
import io
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from rich.console import Console

from edgefl.analysis import compare
from edgefl.analysis.figures.comparison import draw_bars
from edgefl.analysis.figures.lines import draw_lines, in_lines
from edgefl.analysis.figures.style import styles_of, variant_styles
from edgefl.analysis.measures.results import Comparison
from edgefl.analysis.page import formatting, markup
from edgefl.analysis.page.formatting import natural, placed
from edgefl.analysis.page.report import Report
from edgefl.analysis.reports.comparison import report
from edgefl.analysis.reports.comparison_tables import brief
from tests.tools.figures import leave_figures_empty
from tests.unit.analysis.conftest import write_study

Write = Callable[..., Path]
SIX = ("similarity", "previous", "average", "continuous", "a_variant_with_a_long_name", "ema")
# a line or bar has thousands of pixels, and other parts of a figure have fewer pixels of its exact colour than this
PIXELS_OF_A_LINE = 300


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *(
            (0, "0"),
            (0.01234, "0.0123"),
            (1.5, "1.50"),
            (17.926, "17.9"),
            (142.4, "142"),
            (17037.7, "17,038"),
        ),
        # rounding adds a digit before the point
        *((0.00009999, "0.000100"), (9.996, "10.0"), (-99.96, "-100")),
        *((float("inf"), "∞"), (float("nan"), "—")),
    ],
)
def test_amounts_have_three_significant_digits(value: float, text: str) -> None:
    assert formatting.amount(value) == formatting.with_spread(value, float("nan")) == text


def test_a_mean_near_zero_has_the_digits_of_its_spread() -> None:
    noise = 1.11e-14
    assert formatting.with_spread(noise, 1.0678568) == formatting.with_spread(-noise, 1.0678568) == "0 ± 1.07"
    assert formatting.with_spread(0.0, 1.0678568) == "0 ± 1.07"
    assert formatting.with_spread(0.02, 1.0678568) == "0.02 ± 1.07"
    assert formatting.with_spread(1.5, 1.0678568) == "1.50 ± 1.07"
    assert formatting.with_spread(-0.01, 1.0, 1) == "0.0 ± 1.0", "no minus before a zero"
    assert formatting.with_interval(noise, -1.0678568, 1.0678568) == "0 (-1.07–1.07)"
    assert formatting.with_interval(1.5, 9.36e-14, 30.0) == "1.50 (0–30.0)"


def test_lists_of_labels_are_shortened() -> None:
    assert formatting.compact_labels("0 1 2 3 7 8") == "0–3, 7, 8"
    assert formatting.compact_labels("sports world") == "sports, world"
    assert formatting.compact_labels("") == ""


def test_units_follow_the_largest_finite_value() -> None:
    assert formatting.unit_for([0.5, 1430.0, float("inf")], formatting.ENERGY_UNITS) == ("kJ", 1e3)
    assert formatting.unit_for([0.02], formatting.TIME_UNITS) == ("ms", 1e-3)
    assert formatting.unit_for([], formatting.TIME_UNITS) == ("ms", 1e-3)


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Write a study of six variants with two seeds each."""
    root = write_study(tmp_path_factory.mktemp("six"), variants=SIX, sessions=4, rounds=3, seeds=(1, 2))
    with pytest.MonkeyPatch.context() as monkeypatch:
        leave_figures_empty(monkeypatch)
        return compare(root)


def test_latex_is_a_booktabs_table_with_escaped_text(six: Comparison) -> None:
    lines = (six.out / "comparison.tex").read_text().splitlines()
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    assert len(body) == len(SIX)
    columns = lines[1].removeprefix(r"\begin{tabular}{").removesuffix("}")
    assert {line.count(" & ") for line in [lines[3], *body]} == {len(columns) - 1}
    assert all(line.endswith(r" \\") for line in body)
    assert r"a\_variant\_with\_a\_long\_name" in "".join(body)
    assert r"95 \%" in lines[3]


def test_the_terminal_never_cuts_a_name_or_a_number(six: Comparison) -> None:
    table = brief(six)
    for width in (60, 80, 200):
        output = io.StringIO()
        report(six).print(Console(file=output, width=width))
        printed = output.getvalue()
        assert "…" not in printed, width
        headings = [word for name in table.columns for word in name.split()]
        for text in (*table.index, *headings, *table.to_numpy().ravel()):
            assert text in printed, width
        table_lines = [line for line in printed.splitlines() if not line.startswith(("Figure", "More"))]
        assert max(map(len, table_lines)) <= width


def test_six_variants_fit_in_80_columns(write_study: Write) -> None:
    """The table has one row per variant, whose name begins exactly one line."""
    names = ("similarity", "previous", "average", "continuous", "20 MHz, fedprox", "ema")
    output = io.StringIO()
    report(compare(write_study(variants=names, sessions=4, rounds=3, seeds=(1, 2)))).print(
        Console(file=output, width=80)
    )
    table = output.getvalue().partition("───")[2]
    rows = [line for line in table.splitlines() if line.startswith(tuple(f" {name} " for name in names))]
    assert sorted(line.split("  ")[0].strip() for line in rows) == sorted(names)
    assert "speed" not in output.getvalue()
    assert "gain" not in output.getvalue()


def test_a_name_of_the_rows_is_a_heading_of_the_table() -> None:
    table, output = pd.DataFrame({"joules": ["1"]}, pd.Index(["fedavg"], name="variant")), io.StringIO()
    Report(Path(), tables=[("", table)]).print(Console(file=output, width=80))
    assert ["variant", "joules"] in [line.split() for line in output.getvalue().splitlines()]


def pixels_of(image: np.ndarray, colour: str) -> int:
    """Count the pixels whose channels, from 0 to 255, differ from a colour's by at most 1."""
    return int((np.abs(image[..., :3] - to_rgb(colour)) < 1.5 / 255).all(axis=-1).sum())


@pytest.fixture
def only_the_comparison_is_rendered(rendered: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Render only comparison.png, whose pixels are counted, as every other figure would take equally long."""
    render = Figure.savefig

    def savefig(figure: Figure, path: Path, **choices: Any) -> None:
        if path.name == "comparison.png":
            render(figure, path, **choices)

    monkeypatch.setattr(Figure, "savefig", savefig)


@pytest.mark.usefixtures("only_the_comparison_is_rendered")
@pytest.mark.parametrize(
    "choices",
    [
        {"sessions": 7, "rounds": 3},
        {"sessions": 4, "rounds": 4, "seeds": (1, 2, 3)},
        {"variants": ("previous",), "reference": None, "sessions": 4, "rounds": 6},
        {"variants": SIX, "sessions": 14, "rounds": 3},
        {"trained": False, "sessions": 2, "rounds": 4, "seeds": (1, 2)},
    ],
    ids=["seven sessions", "three seeds", "one variant", "many", "without training"],
)
def test_the_figure_shows_every_variant_in_its_colour(write_study: Write, choices: dict) -> None:
    comparison = compare(write_study(**choices))
    image = imread(comparison.figure)
    assert image.shape == (1120, 1600, 4)
    for style in styles_of(comparison.table, comparison.reference).values():
        assert pixels_of(image, style["color"]) > PIXELS_OF_A_LINE


def test_a_line_lies_in_a_band_of_one_deviation_on_either_side() -> None:
    axes = Figure().add_subplot()
    curve = pd.DataFrame({"session": 1, "x": [1.0, 2.0], "mean": [0.5, 0.6], "std": [0.1, 0.2]})
    draw_lines(axes, {"a": curve}, {"a": {"color": "#112233"}})
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.4, 0.8))


@pytest.mark.parametrize("groups", [["all"], ["1", "2", "3"]])
def test_all_bars_stand_beside_one_another_within_their_axis(groups: list[str]) -> None:
    axes = Figure().add_subplot()
    bars = pd.DataFrame(
        [
            {"group": group, "variant": name, "mean": 1.0 + group, "std": 0.1, "missed": 0}
            for group in range(len(groups))
            for name in ("a", "b")
        ]
    )
    draw_bars(axes, bars, groups, variant_styles(["a", "b"], "a"))
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    assert len(spans) == len(bars)
    assert all(end < begin for (_, end), (begin, _) in pairwise(spans))
    low, high = axes.get_xlim()
    assert low <= spans[0][0]
    assert spans[-1][1] <= high
    for group, (left, right) in enumerate(zip(spans[::2], spans[1::2], strict=True)):
        assert (left[0] + right[1]) / 2 == pytest.approx(group), "the group's name must be in the middle"


def test_colours_differ_and_the_reference_is_emphasised(six: Comparison) -> None:
    styles = styles_of(six.table, six.reference)
    assert len({(style["color"], str(style["linestyle"])) for style in styles.values()}) == len(SIX)
    heaviest = max(styles, key=lambda name: (styles[name]["linewidth"], styles[name]["zorder"]))
    assert heaviest == "similarity"


def test_names_are_ordered_as_people_count() -> None:
    names = ["200 MHz", "50 MHz", "100 MHz", "alpha-0.7", "alpha-0.3", "alpha-10", "alpha", "", "7"]
    assert sorted(names, key=natural) == [
        *("", "7", "50 MHz", "100 MHz", "200 MHz"),
        *("alpha", "alpha-0.3", "alpha-0.7", "alpha-10"),
    ]


def test_an_error_names_the_folder_of_its_runs_once() -> None:
    assert placed(ValueError("no run"), Path("runs/a")) == "runs/a: no run"
    assert placed(ValueError("no run"), ["runs/a", "runs/b"]) == "runs/a, runs/b: no run"
    assert placed(ValueError("runs/b/run.json: no seed"), ["runs/a", "runs/b"]) == "runs/b/run.json: no seed"
    assert placed(ValueError("no folder is given"), []) == "no folder is given"


def test_names_are_no_html_in_markdown() -> None:
    """Names in runs of other people cannot execute code when the runs' page is opened."""
    evil = "<img src=x onerror=alert(1)> & | \n| x"
    table = pd.DataFrame({evil: [evil]}, index=[evil])
    text = markup.page(evil.partition("\n")[0], markup.section("a <b>", table, evil), markup.bullets(["<i>"]))
    assert "<" not in text
    assert text.count("&amp;") == 5
    assert [line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("|")] == [
        3
    ] * 3


def test_long_names_beside_lines_are_broken_where_words_end() -> None:
    assert in_lines("similarity") == ["similarity"]
    assert in_lines("handover_hexagonal") == ["handover_", "hexagonal"]
    assert in_lines("count 5, similarity") == ["count 5,", "similarity"]
    assert in_lines("withoutanyplacetobreak") == ["withoutanyplacetobreak"]


@pytest.mark.parametrize("name", ["=cmd|calc", "+1+1", "-1+2", "@SUM(A1)", "\t=1"])
def test_no_name_is_a_formula_in_csv(name: str) -> None:
    """A name that begins with = + - @ gets an apostrophe, as a spreadsheet would evaluate it as a formula."""
    text = markup.csv_text(
        pd.DataFrame({"variant": [name, "plain"], name: ["-20", "-2.5e3"], "joules": [-1.5, 2.0]})
    )
    cells = list(csv.reader(text.splitlines()))
    assert cells == [
        ["variant", f"'{name}", "joules"],
        [f"'{name}", "-20", "-1.5"],
        ["plain", "-2.5e3", "2.0"],
    ]
