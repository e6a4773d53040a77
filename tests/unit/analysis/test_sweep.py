"""Test sweeps: how the swept key is found, the cost of a target at each value, and figures."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

from edgefl.analysis import compare, load_runs, load_settings
from edgefl.analysis.commands.line import main
from edgefl.analysis.figures.curves import curves_of
from edgefl.analysis.figures.pareto import efficient, pareto_figure
from edgefl.analysis.figures.style import COLUMN_DPI, WIDTH_INCH
from edgefl.analysis.figures.sweep import heat_figure, sweep_figure
from edgefl.analysis.measures.metrics import spent_in_run
from edgefl.analysis.measures.service import services_of
from edgefl.analysis.measures.sweep import _series, verdicts
from edgefl.analysis.page.units import axis_of
from edgefl.analysis.reports.sweep import _caption, _explanations, grid_key, headline, sweep
from edgefl.analysis.runs.choices import Metric
from edgefl.analysis.runs.scenario_keys import differing, flat
from tests.unit.analysis.conftest import change, rounds_of

Write = Callable[..., Path]


def study(write_run: Write, *, powers: tuple[float, ...] = (23.0,), accuracy: float | str = 0.9) -> Path:
    """Write a study of three bandwidths (20, 100, 200 MHz: rounds of 50, 10, 5 s), two variants and two seeds."""
    for hz, latency_s in ((20e6, 50.0), (100e6, 10.0), (200e6, 5.0)):
        for power_dbm in powers:
            for variant, lr in (("ours", 0.1), ("slow", 0.01)):
                for seed in (1, 2):
                    setting = {"bandwidth": f"{hz / 1e6:g} MHz", "power": f"{power_dbm:g}"}
                    radio = {"bandwidth_hz": hz, "power_dbm": power_dbm}
                    scenario = {"seed": seed, "radio": radio, "learning": {"local": {"lr": lr}}}
                    first = accuracy if lr == 0.1 else 0.1 if accuracy else ""
                    path = write_run(
                        f"{hz:g}-{power_dbm:g}/{variant}/{seed}",
                        rounds_of(1, [first, accuracy]),
                        [{"session": 1}],
                        variant=variant,
                        seed=seed,
                        reference="ours",
                        setting=setting,
                        scenario=scenario,
                    )
                    change(path, "rounds", latency_s=latency_s + seed)
    return path.parents[2]


def test_settings_are_dotted_keys() -> None:
    found = flat({"a": {"b": 1}, "learning": {"algorithm": {"name": "fedprox", "mu": 1.0}}})
    assert found == {"a.b": 1, "learning.algorithm": "fedprox", "learning.algorithm.mu": 1.0}
    assert differing([{"seed": 1, "a": 1, "b": 2}, {"seed": 2, "a": 1, "b": 3, "c": 0}]) == ["b", "c"]


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("radio.bandwidth_hz", [20e6, 200e6], ("bandwidth (MHz)", 1e6)),
        ("rounds.interval_s", [7200.0], ("interval (h)", 3600.0)),
        ("radio.power_dbm", [23], ("power (dBm)", 1.0)),
        ("learning.local.lr", [0.1], ("lr", 1.0)),
        ("learning.warm_start.scale", [10], ("scale", 1.0)),
    ],
)
def test_an_axis_has_its_unit(key: str, values: list[float], expected: tuple[str, float]) -> None:
    assert axis_of(key, values) == expected


@pytest.mark.usefixtures("rendered")
def test_cost_against_the_swept_key_by_series(write_run: Write) -> None:
    """The runs differ in two numbers, the swept key and the variants' lr, so the swept key must be named."""
    root = study(write_run)
    with pytest.raises(ValueError, match="no key 'band' in which the runs differ"):
        sweep(root, keys=["band"])
    found = sweep(root, keys=["bandwidth_hz"], target=0.5)
    assert found.keys == ("radio.bandwidth_hz",)
    table = found.table.set_index(["series", "radio.bandwidth_hz"])
    assert list(table.loc["ours"].index) == [20e6, 100e6, 200e6]
    # rounds take 10 s; `ours` needs one round, and `slow` needs two rounds
    assert set(table.loc["ours", "seconds_to_target_mean"]) == {10}
    assert set(table.loc["slow", "joules_to_target_mean"]) == {10}
    names = [f"{series}, {value}" for series in ("ours", "slow") for value in (20, 100, 200)]
    assert list(headline(found).index) == names
    assert (root / "target-0.5" / "sweep.tex").read_text().count(r"\\") == 1 + 6
    for figure in found.figures:
        assert figure.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
        assert Image.open(figure).width == round(WIDTH_INCH * COLUMN_DPI)


def test_a_series_without_a_value_is_called_none() -> None:
    points = {
        ((("count", count), ("uplink_codec", codec)), "all"): {
            "devices.count": count,
            "learning.uplink_codec": codec,
        }
        for codec, count in [(None, 5), (None, 10), ("qsgd", 5), ("qsgd", 10)]
    }
    names = _series(points, ["devices.count"])
    assert set(names.values()) == {"uplink_codec none", "uplink_codec qsgd"}


def test_a_series_of_a_grid_with_variants_has_the_variant_s_name_and_the_other_axis() -> None:
    """The variants set the codec, and a site's power follows from the bandwidth, so neither is in a name."""
    points = {
        ((("bandwidth", hz), ("count", count)), variant): {
            "devices.count": count,
            "radio.bandwidth_hz": hz,
            "radio.budget.server_power_dbm": hz / 1e6,
            "learning.uplink_codec": codec,
        }
        for hz in (5e6, 20e6)
        for count in (5, 10)
        for variant, codec in (("plain", None), ("coded", "qsgd"))
    }
    names = _series(points, ["devices.count"])
    assert list(dict.fromkeys(names.values())) == [
        "plain, bandwidth 5 MHz",
        "coded, bandwidth 5 MHz",
        "plain, bandwidth 20 MHz",
        "coded, bandwidth 20 MHz",
    ]
    alone = {place: point for place, point in points.items() if place[1] == "plain"}
    assert set(_series(alone, ["devices.count"]).values()) == {"bandwidth 5 MHz", "bandwidth 20 MHz"}


def test_a_key_that_follows_another_is_no_axis_and_makes_no_series(write_run: Write) -> None:
    """A site's power that follows the bandwidth differs between runs, but it is not the swept key."""
    root = study(write_run)
    for file in root.rglob("scenario.yaml"):
        keys = yaml.safe_load(file.read_text())
        keys["radio"]["budget"] = {"server_power_dbm": keys["radio"]["bandwidth_hz"] / 1e7}
        file.write_text(yaml.safe_dump(keys))
    both = sweep(root, target=0.5)
    assert both.keys == ("learning.local.lr", "radio.bandwidth_hz")
    noted = [note for note in both.notes if note.startswith("sites send with")]
    assert noted == [
        "sites send with 2 dBm at 20 MHz, 10 dBm at 100 MHz and 20 dBm at 200 MHz: radio.budget.server_power_dbm"
        " follows radio.bandwidth_hz unless it is set"
    ]
    found = sweep(root, keys=["bandwidth_hz"], target=0.5)
    assert found.table["series"].tolist() == ["ours"] * 3 + ["slow"] * 3
    assert found.table["seconds_to_target_pairs"].tolist() == [2] * 6


def test_without_training_a_round_costs_latency_and_energy(write_run: Write) -> None:
    found = sweep(study(write_run, accuracy=""), keys=["radio.bandwidth_hz"])
    assert found.costs == ("latency_s", "round_energy_j")
    rows = found.table[found.table["series"] == "ours"]
    # seeds add 1 and 2 s, so means are 51.5, 11.5, 6.5, with half widths of 12.7062 (t, 1 degree of freedom) x 0.5
    assert rows["latency_s_mean"].tolist() == [51.5, 11.5, 6.5]
    half = 12.7062 * 0.5
    assert rows["latency_s_ci"].tolist() == pytest.approx([half] * 3, rel=1e-4)
    # two seeds have only a range
    assert rows["latency_s_low"].tolist() == pytest.approx([51.0, 11.0, 6.0])
    assert rows["latency_s_high"].tolist() == pytest.approx([52.0, 12.0, 7.0])
    # relative to the first value's latency, the seeds have 6/51 and 7/52; energy is equal at all values
    logarithms = np.log([6 / 51, 7 / 52])
    wide = 12.7062 * logarithms.std(ddof=1) / np.sqrt(2)
    last = rows.iloc[-1]
    ratios = [last[f"latency_s_ratio{end}"] for end in ("", "_low", "_high")]
    assert ratios == pytest.approx(np.exp(logarithms.mean() + np.array([0, -wide, wide])), rel=1e-4)
    assert last["latency_s_pairs"] == 2
    told = verdicts(found)
    assert told[0].startswith(
        "ours: bandwidth 200 MHz needs 0.13 times the time of 20 MHz for a round (2 seeds"
    )


def test_without_training_a_requested_target_is_said_not_to_apply(write_run: Write) -> None:
    root = study(write_run, accuracy="")
    (note,) = set(sweep(root, target=0.8).notes) - set(sweep(root).notes)
    assert note.endswith("costs are those of a round; the target 0.8 cannot be applied")
    one = root / "2e+07-23"
    notes = compare(one, target=[0.8, "95%", 0.9]).notes
    assert any(note.endswith("compared; the targets 0.8, 0.9 cannot be applied") for note in notes)


def test_the_accuracies_of_two_seeds_have_a_range(write_run: Write) -> None:
    """Two seeds at 80 and 90 % have a mean of 85 % and this range, in the text, the table and the figure."""
    for hz in (20.0, 100.0):
        for seed, accuracy in ((1, 0.8), (2, 0.9)):
            rounds, setting = [{"session": 1, "round": 1, "accuracy": accuracy}], {"bandwidth": f"{hz:g} Hz"}
            about = {"seed": seed, "setting": setting, "scenario": {"radio": {"bandwidth_hz": hz}}}
            path = write_run(f"{hz}/a/{seed}", rounds, [{"session": 1}], variant="a", **about)
    found = sweep(path.parents[2], metric="accuracy")
    assert headline(found).iloc[0, 0] == "85.0 (80.0–90.0)"
    assert _caption(found).endswith("(2 seeds, mean and range)")
    row = found.table.iloc[0]
    assert (row["accuracy_first_low"], row["accuracy_first_high"]) == pytest.approx((0.8, 0.9))
    (bars,) = sweep_figure(found).axes[0].containers
    assert bars.lines[2][0].get_segments()[0][:, 1] == pytest.approx([80.0, 90.0])


def test_no_mean_and_no_whisker_is_cut_off(write_run: Write) -> None:
    """The axis includes the means of 51.5, 11.5 and 6.5 s and the first mean's interval."""
    found = sweep(study(write_run, accuracy=""), keys=["radio.bandwidth_hz"])
    figure = sweep_figure(found)
    assert found.table["latency_s_high"].max() > found.table["latency_s_mean"].max() == 51.5
    for ax in figure.axes[: len(found.costs)]:
        drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in ax.lines])
        low, high = ax.get_ylim()
        assert low <= np.nanmin(drawn) <= np.nanmax(drawn) <= high


def test_no_tick_stands_between_two_whole_values(write_run: Write) -> None:
    many = sweep(study(write_run, powers=tuple(range(20, 29))), keys=["power_dbm"], target=0.5)
    ax = sweep_figure(many).axes[-1]
    ax.set_xlim(20, 22)
    assert not np.mod(ax.get_xticks(), 1).any()


def test_a_missed_target_is_a_lower_bound(write_run: Write) -> None:
    found = sweep(study(write_run), keys=["bandwidth_hz"], target=0.95)
    assert set(found.table["not_reached"]) == {2}
    assert set(found.table["seconds_to_target_mean"]) == {math.inf}
    assert set(found.table["seconds_to_target_at_least"]) == {20}
    assert headline(found).to_numpy().ravel()[0].startswith("> ")


@pytest.mark.parametrize("target", [0.5, 0.95])
def test_a_sweep_has_the_costs_of_a_comparison(write_run: Write, target: float) -> None:
    """Both count a missed target as infinite, beside a lower bound."""
    swept = sweep(root := study(write_run), keys=["bandwidth_hz"], target=target).table
    swept = swept[swept["radio.bandwidth_hz"] == 20e6].set_index("variant")
    compared = compare(root / "2e+07-23", target=target).table.set_index("variant")
    columns = [name for name in compared if "_to_target" in name and name in swept]
    assert len(columns) == 3 * 4 + 2 * 4, "mean, std, ci and bound of three costs, ratio and ends of two"
    columns = [name for name in columns if "ratio" not in name and "pairs" not in name]
    columns += ["not_reached", "targets"]
    pd.testing.assert_frame_equal(swept[columns], compared[columns], check_names=False)


@pytest.mark.parametrize("metric", ["seconds", "rounds"])
def test_a_missed_target_is_drawn_at_its_lower_bound(write_run: Write, metric: Metric) -> None:
    root = study(write_run, powers=(20.0, 23.0))
    mapped = sweep(root, keys=["bandwidth_hz", "power_dbm"], target=0.95, metric=metric)
    line = sweep(root / "2e+07-23", keys=["lr"], target=0.95, metric=metric)
    least = {"seconds": 20.0, "rounds": 2.0}[metric]
    figure = sweep_figure(line)
    joined, *others = figure.axes[0].lines
    assert np.isnan(joined.get_ydata()).all(), "a line would be read as a course of costs"
    assert [least, least] in [np.asarray(each.get_ydata()).tolist() for each in others]
    assert any("target missed" in text.get_text() for text in figure.legends[0].get_texts())
    assert {text.get_text() for text in heat_figure(mapped).axes[0].texts} == {f">{least:#.3g}"}


def test_a_verdict_says_where_the_target_is_missed(write_run: Write) -> None:
    root, remedy = study(write_run), "give a lower target to compare their costs."
    told = verdicts(sweep(root, keys=["bandwidth_hz"], target=0.95))
    assert told == [
        f"{name}: 95 % accuracy is never reached at any bandwidth: {remedy}" for name in ("ours", "slow")
    ]
    for table in root.glob("1e+08-*/*/*/rounds.csv"):
        table.write_text(table.read_text().replace(",0.9,", ",0.96,"))
    told = verdicts(sweep(root, keys=["bandwidth_hz"], target=0.95))
    assert told[0] == f"ours: 95 % accuracy is never reached at bandwidth 20 MHz, 200 MHz: {remedy}"
    for table in root.glob("2*-*/*/1/rounds.csv"):
        table.write_text(table.read_text().replace(",0.9,", ",0.96,"))
    told = verdicts(sweep(root, keys=["bandwidth_hz"], target=0.95))
    # a ratio over the seeds that reach the target would favour a value that often misses it
    assert told[0] == f"ours: 95 % accuracy is missed in some sessions at bandwidth 20 MHz, 200 MHz: {remedy}"


def test_a_relative_target_is_the_same_at_all_values(write_run: Write) -> None:
    """Without learning, a run ends at 10 % accuracy, and would reach 95 % of its own best in its first round."""
    for lr, best in ((1e-5, 0.1), (0.02, 0.6)):
        path = write_run(
            f"lr-{lr}",
            rounds_of(1, [0.1, best]),
            [{"session": 1}],
            variant="v",
            setting={"lr": f"{lr:g}"},
            scenario={"learning": {"local": {"lr": lr}}},
        )
    for target, peak in {"95%": "peak", "95% of v": "v's peak", "95% of best": "the best peak"}.items():
        found = sweep(path.parent, target=target)
        assert found.table["not_reached"].tolist() == [1, 0]
        assert found.table["seconds_to_target_mean"].tolist() == [math.inf, 20]
        assert verdicts(found) == [
            f"95 % of {peak} is never reached at lr 1e-05: give a lower target to compare their costs."
        ]
    assert "highest over all settings" in list(_explanations(found))[-1]


def test_first_rounds_are_those_that_all_values_have(write_run: Write) -> None:
    # at 100 Hz session 1 ends after its poorest round, which alone is compared
    for hz, accuracies in ((20.0, (0.2, 0.6, 0.7)), (100.0, (0.4,))):
        about = {"setting": {"bandwidth": f"{hz:g} Hz"}, "scenario": {"radio": {"bandwidth_hz": hz}}}
        path = write_run(f"{hz}/a/1", rounds_of(1, accuracies), [{"session": 1}], variant="a", **about)
    table = sweep(path.parents[2]).table
    assert table["accuracy_first_mean"].tolist() == pytest.approx([0.2, 0.4])


def test_values_without_a_common_seed_have_no_ratio(write_run: Write) -> None:
    root = study(write_run)
    for hz, seed in (("2e+07", 1), ("2e+08", 2)):
        for run in root.glob(f"{hz}-*/*/{seed}"):
            shutil.rmtree(run)
    told = verdicts(sweep(root, keys=["bandwidth_hz"], target=0.5))
    assert told[0] == "ours: bandwidth 20 MHz and 200 MHz have no seed in common, so there is no ratio."


def test_the_caption_says_how_many_seeds_the_values_have(write_run: Write) -> None:
    root = study(write_run)
    shutil.rmtree(root / "2e+08-23/ours/2")
    caption = _caption(sweep(root, keys=["bandwidth_hz"]))
    assert caption == "Costs against radio.bandwidth_hz (1 to 2 seeds, mean and range)"
    caption = _caption(sweep(root, keys=["bandwidth_hz"], deviation=True))
    assert caption == "Costs against radio.bandwidth_hz (1 to 2 seeds, mean ± standard deviation)"


def test_a_default_that_follows_from_names_is_no_axis(write_run: Write) -> None:
    """A site's power follows from its path loss; only `count` was swept, and the width changed with it."""
    for loss, count, power in (("uma", 8, 40), ("umi", 8, 31), ("uma", 16, 43), ("umi", 16, 34)):
        path = write_run(
            f"grid/{loss}/{count}",
            [{"session": 1, "round": 1}],
            [{"session": 1}],
            variant="a",
            setting={"place": loss, "size": str(count)},
            scenario={"radio": {"path_loss": loss, "power_dbm": power}, "count": count, "width_m": 2 * count},
        )
    found = sweep(path.parents[1])
    assert found.keys == ("count",)
    assert set(found.table["series"]) == {"path_loss uma", "path_loss umi"}
    assert "width_m changed together with count" in found.notes
    with pytest.raises(ValueError, match="in no numeric key"):
        sweep([path, path.parents[1] / "uma" / "16"])


def test_a_band_that_was_swept_with_another_key_is_named(write_run: Write) -> None:
    """The band and the number of devices were zipped; a site's power follows from the band, as it does by default."""
    for count, band_hz, power in ((8, 5e6, 31.0), (16, 20e6, 37.0)):
        path = write_run(
            f"grid/{count}",
            [{"session": 1, "round": 1}],
            [{"session": 1}],
            setting={"size": str(count)},
            scenario={
                "count": count,
                "radio": {"bandwidth_hz": band_hz, "budget": {"server_power_dbm": power}},
            },
        )
    notes = sweep(path.parent, keys=["count"]).notes
    assert "radio.bandwidth_hz changed together with count" in notes
    assert any(note.startswith("sites send with 31 dBm at 5 MHz") for note in notes)
    (other,) = [note for note in sweep(path.parent, keys=["bandwidth_hz"]).notes if "together" in note]
    assert other == "count changed together with radio.bandwidth_hz"


def test_a_grid_s_only_key_is_the_axis_although_variants_differ_in_a_number(write_run: Write) -> None:
    for variant, lr in (("slow", 0.01), ("fast", 0.05)):
        for x_hz in (1.0, 2.0):
            path = write_run(
                f"grid/{variant}/{x_hz}",
                [{"session": 1, "round": 1}],
                [{"session": 1}],
                variant=variant,
                setting={"x_hz": f"{x_hz:g}"},
                scenario={"radio": {"x_hz": x_hz}, "learning": {"lr": lr}},
            )
    found = sweep(path.parents[1])
    assert found.keys == ("radio.x_hz",)
    assert set(found.table["series"]) == {"slow", "fast"}


def test_two_keys_make_a_map(write_run: Write) -> None:
    root = study(write_run, powers=(20.0, 23.0))
    with pytest.raises(ValueError, match=r"choose one or two with --key$"):
        sweep(root)
    with pytest.raises(ValueError, match=r"in no numeric key, .*: compare settings with edgefl settings"):
        sweep(next(root.rglob("run.json")).parent)
    found = sweep(root, keys=["bandwidth_hz", "power_dbm"], target=0.5)
    assert [figure.name for figure in found.figures] == ["sweep_map.png", "sweep_pareto.png"]
    assert list(dict.fromkeys(found.table["series"])) == ["ours", "slow"]


@pytest.mark.parametrize(
    ("metric", "column", "shown"),
    [
        ("seconds", "seconds_to_target", "time from session start to 50 % accuracy (s)"),
        ("joules", "joules_to_target", "energy from session start to 50 % accuracy (J)"),
        ("rounds", "rounds_to_target", "rounds to 50 % accuracy"),
        ("accuracy", "accuracy_first", "accuracy of the first rounds, at most 10 (%)"),
    ],
)
def test_the_metric_is_chosen(write_run: Write, metric: Metric, column: str, shown: str) -> None:
    """The chosen metric is in the only figure's only panel, and in the table, beside time and energy."""
    line = sweep(study(write_run) / "2e+07-23", keys=["lr"], target=0.5, metric=metric)
    assert line.costs == (column,)
    assert line.out.name == f"target-0.5-metric-{metric}", "another metric keeps these files"
    (ax,) = sweep_figure(line).axes
    assert ax.get_ylabel().replace("\n", " ") == shown
    values = [text.partition(" ")[0] for text in headline(line)[shown]]
    # with lr 0.01 a run needs two rounds of 10 s and 5 J, and with lr 0.1 one round
    expected = {
        "seconds": ["20.0", "10.0"],
        "joules": ["10.0", "5.00"],
        "rounds": ["2.00", "1.00"],
        "accuracy": ["50.0", "90.0"],
    }
    assert values == expected[metric]
    assert [figure.name for figure in line.figures] == ["sweep.png"]
    assert headline(line).filter(regex="^(time|energy) from").shape[1] == 2


def test_a_map_shows_the_metric_at_its_colour_bar(write_run: Write) -> None:
    root = study(write_run, powers=(20.0, 23.0))
    mapped = sweep(root, keys=["bandwidth_hz", "power_dbm"], target=0.5, metric="rounds")
    assert mapped.costs == ("rounds_to_target",)
    assert [ax.get_ylabel() for ax in heat_figure(mapped).axes][-1] == "rounds to 50 % accuracy"


def test_a_metric_that_the_runs_do_not_have_is_refused(write_run: Write) -> None:
    root = study(write_run, accuracy="")
    for metric in ("rounds", "accuracy"):
        with pytest.raises(ValueError, match=f"metric '{metric}' needs runs with training"):
            sweep(root, keys=["bandwidth_hz"], metric=metric)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no metric 'watts': choose seconds, joules"):
        sweep(root, keys=["bandwidth_hz"], metric="watts")  # type: ignore[arg-type]
    assert sweep(root, keys=["bandwidth_hz"], metric="joules").costs == ("round_energy_j",)


def test_accuracy_is_no_lower_bound_where_the_target_is_missed(write_run: Write) -> None:
    root = study(write_run)
    found = sweep(root, keys=["bandwidth_hz"], target=0.95, metric="accuracy")
    assert set(found.table["not_reached"]) == {2}
    assert not headline(found).to_numpy().ravel()[0].startswith(">")


def test_a_point_that_missed_its_target_beats_nothing() -> None:
    """A point that missed its target is not marked as best, as its time and energy are only lower bounds."""
    points = pd.DataFrame({"series": ["a", "b"], "time_s": [1.0, 2.0], "energy_j": [1.0, 2.0]})
    points["label"], points["missed"] = points["series"], [True, False]
    (ax,) = pareto_figure(points, ("time", "energy")).axes
    filled = {
        tuple(line.get_xydata()[0])
        for line in ax.get_lines()
        if len(line.get_xdata()) and line.get_linestyle() == "None" and line.get_markerfacecolor() != "white"
    }
    assert filled == {(2.0, 2.0)}
    assert ax.get_legend_handles_labels()[1] == ["> a", "b"]


def test_efficient_points_are_those_that_nothing_beats() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 2.0, 1.0]), np.array([3.0, 2.0, 2.5, 2.0, np.nan])
    assert efficient(x, y).tolist() == [True, True, False, True, False]


def test_curves_hold_the_last_accuracy_and_average_over_seeds(write_run: Write) -> None:
    """Curves are step functions, so in the middle of round 2 (10 s, 5 J) they have the first round's accuracy."""
    for seed, low in ((1, 0.2), (2, 0.4)):
        root = write_run(
            f"a/{seed}", rounds_of(1, [low, 0.8]), [{"session": 1}], variant="a", seed=seed
        ).parent
    runs = load_runs(root)
    (times_s, over_s, std), (joules, over_j, _) = curves_of(runs.rounds, services_of(runs))
    at = np.searchsorted(times_s, 15.0)
    assert over_s[at] == pytest.approx(0.3)
    assert std[at] == pytest.approx(0.2 / np.sqrt(2))
    assert np.isnan(over_s[np.searchsorted(times_s, 9.0)])
    assert over_s[-1] == 0.8
    assert over_j[np.searchsorted(joules, 7.5)] == pytest.approx(0.3)
    assert np.isnan(over_j[0])


def test_joules_of_curves_are_those_of_a_run_that_ends_there(write_run: Write) -> None:
    """Rounds of 5 J end after 5, 10 and 15 J; the tails that would follow add 4, 1 and 0 J, in each cell."""
    path = write_run("a", rounds_of(1, [0.2, 0.4, 0.8]), [{"session": 1}])
    change(path, "rounds", energy_cut_j=[4.0, 1.0, 0.0])
    runs = load_runs(path)
    assert list(spent_in_run(runs.rounds)) == [9.0, 11.0, 15.0]
    _, (joules, over_j, _) = curves_of(runs.rounds, services_of(runs))
    assert np.isnan(over_j[np.searchsorted(joules, 8.5)])
    assert over_j[np.searchsorted(joules, 10.5)] == pytest.approx(0.2)
    assert over_j[np.searchsorted(joules, 11.5)] == pytest.approx(0.4)
    two = runs.rounds.assign(cell=[0, 1, 0])
    assert list(spent_in_run(two)) == [9.0, 15.0, 16.0]
    dear = two.assign(cell=0, energy_cut_j=[9.0, 1.0, 0.0])
    assert list(spent_in_run(dear)) == [11.0, 11.0, 15.0], "a run of two rounds has spent 11 J, and is longer"


def test_a_grid_of_one_number_is_known(write_run: Write) -> None:
    """A swept key is known if the grid has a single axis, and its values are numbers."""

    def root(folder: str, grids: list[dict[str, float | str]]) -> Path:
        for number, grid in enumerate(grids):
            path = write_run(
                f"{folder}/{number}",
                [{"session": 1, "round": 1}],
                [{"session": 1}],
                variant="a",
                setting={axis: str(value) for axis, value in grid.items()},
                scenario={"radio": grid},
            )
        return path.parent

    assert grid_key(load_settings(one := root("one", [{"x_hz": 1.0}, {"x_hz": 2.0}]))) == "radio.x_hz"
    assert verdicts(sweep(one))[0].startswith("X 2 Hz needs 1.0 times the time of 1 Hz")
    follows = root("follows", [{"x_hz": 1.0}, {"x_hz": 2.0}])
    for file in follows.rglob("scenario.yaml"):  # add a key whose default depends on the axis
        x_hz = yaml.safe_load(file.read_text())["radio"]["x_hz"]
        file.write_text(yaml.safe_dump({"radio": {"x_hz": x_hz, "power_w": 2 * x_hz}}))
    assert grid_key(load_settings(follows)) == "radio.x_hz"
    assert grid_key(load_settings(root("words", [{"preset": "nr"}, {"preset": "journal"}]))) is None
    assert grid_key(load_settings(root("two", [{"x_hz": 1.0, "y": 1}, {"x_hz": 2.0, "y": 2}]))) is None


def test_another_target_leaves_the_files_of_the_study_alone(write_run: Write) -> None:
    root = study(write_run)
    assert sweep(root, keys=["bandwidth_hz"]).out == root
    before = {file: file.read_bytes() for file in root.glob("sweep*")}
    assert sweep(root, keys=["bandwidth_hz"], target=0.5).out == root / "target-0.5"
    assert {file: file.read_bytes() for file in root.glob("sweep*")} == before


def test_a_result_prints_what_its_command_prints(
    write_run: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    root = study(write_run)
    found = sweep(root, keys=["bandwidth_hz"], target=0.5)
    main(["sweep", str(root), "--key", "bandwidth_hz", "--target", "0.5"])
    printed = capsys.readouterr().out
    found.print()
    assert capsys.readouterr().out == printed
    assert "Costs against radio.bandwidth_hz" in printed
