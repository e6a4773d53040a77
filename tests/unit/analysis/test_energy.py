"""Compare energy by class of device and by use, and its share of a battery, with hand-computed values."""

import csv
import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis import load_runs, report_costs
from edgefl.analysis.figures.energy import after, battery_words, energy_figure
from edgefl.analysis.html.energy import energy
from edgefl.analysis.measures.energy import SHARES, energy_by_class, energy_of_all

Write = Callable[..., Path]


def ledger_of(write_run: Write, rows: list[dict], name: str = "a", **run: object) -> Path:
    """Write a run with this ledger, whose sums are computed from each row's parts as in the engine."""
    parts = ("receive_j", "transmit_j", "compute_j", "tail_j")
    whole = [row | {"energy_j": sum(row.get(part, 0.0) for part in parts)} for row in rows]
    ledger = [row | {"total_j": row["energy_j"] + row.get("idle_j", 0.0)} for row in whole]
    return write_run(name, [{"session": 1, "round": 1}], [{"session": 1}], ledger=ledger, **run)


def test_classes_come_in_the_order_of_the_scenario(write_run: Write) -> None:
    """The ledger is in order of devices, whose classes are drawn."""
    rows = [{"class": name, "receive_j": 1.0} for name in ("tag", "car", "other", "van", "tag")]
    classes = "devices: {classes: {car: {share: 1}, van: {share: 1}, tag: {share: 1}}}"
    path = ledger_of(write_run, rows, scenario=classes)
    assert energy_by_class(load_runs(path))["class"].tolist() == ["car", "van", "tag", "other"]


def test_shares_and_battery_of_two_classes_by_hand(write_run: Write) -> None:
    phone = {"class": "phone", "receive_j": 10.0, "transmit_j": 50.0, "circuit_j": 20.0, "tail_j": 4.0}
    rows = [
        phone | {"compute_j": 5.0, "idle_j": 3.0, "wasted_j": 7.0},
        phone | {"compute_j": 6.0, "idle_j": 1.0},
        {"class": "meter", "receive_j": 1.0, "transmit_j": 2.0, "circuit_j": 0.5, "compute_j": 0.25}
        | {"recharged_j": 2.0, "left_j": 98.75},
    ]
    table = energy_by_class(load_runs(ledger_of(write_run, rows))).set_index("class")
    phones = table.loc["phone"]
    assert phones[["receive_j", "amplifier_j", "circuit_j"]].tolist() == [20, 60, 40]
    assert phones[["compute_j", "tail_j", "idle_j", "wasted_j"]].tolist() == [11, 8, 4, 7]
    assert (phones.devices, phones.energy_j, phones.total_j) == (2, 139, 143)
    # each phone uses 69.5 J; 1 mAh at 3.88 V is 13.968 J, and a phone's battery of 5,000 mAh lasts a day
    assert phones.device_j == 69.5
    assert phones.device_mah == pytest.approx(69.5 / 13.968)
    assert phones.phone_day_percent == pytest.approx(69.5 / 698.4)
    assert math.isnan(phones.battery_percent)  # without battery
    # the meter's battery holds 3.25 + 98.75 - 2 = 100 J
    assert (table.loc["meter", "battery_j"], table.loc["meter", "battery_percent"]) == (100, 3.25)
    everything = energy_of_all(table.reset_index()).iloc[0]
    assert (everything.devices, everything.energy_j, everything.total_j) == (3, 142.25, 146.25)
    assert everything.device_j == 142.25 / 3
    assert math.isnan(everything.battery_percent)


def test_a_share_above_a_battery_is_marked_as_recharged(write_run: Write) -> None:
    """Of two devices with a battery of 100 J, one uses 150 J after recharging 125 J, and the other uses 50 J."""
    rows = [
        {"class": "solar", "compute_j": 150.0, "recharged_j": 125.0, "left_j": 75.0},
        {"class": "plain", "compute_j": 50.0, "recharged_j": 0.0, "left_j": 50.0},
    ]
    runs = load_runs(ledger_of(write_run, rows))
    of = energy_by_class(runs).set_index("class")
    assert battery_words(of.loc["solar"]).endswith("; 150 % of its battery, idle included (recharged)")
    assert battery_words(of.loc["plain"]).endswith("; 50.0 % of its battery, idle included")
    assert "<td>150 (recharged)</td><td>50.0</td>" in energy(runs)
    shown = next(one for title, one in report_costs(runs).tables if title.startswith("Energy per device"))
    row = shown.loc["share of its battery, idle included (%)"]
    assert row[["solar", "plain"]].tolist() == ["150 (recharged)", "50.0"]


def test_idle_energy_drains_a_battery_and_empty_batteries_are_counted(write_run: Write) -> None:
    """Two meters with batteries of 1.5 J learn with 1.2 J and 0.9 J; the first idles until its battery is empty.

    A phone on mains idles, too. Together the meters lose 1.5 J and 1.0 J of 3 J, which is 83.3 %.
    """
    meter = {"class": "meter", "recharged_j": 0.0}
    rows = [
        meter | {"receive_j": 0.2, "compute_j": 1.0, "idle_j": 0.3, "left_j": 0.0},
        meter | {"receive_j": 0.9, "idle_j": 0.1, "left_j": 0.5},
        {"class": "phone", "compute_j": 2.0, "idle_j": 1.0},
    ]
    twice = [{"time_s": time_s, "event": "battery_empty", "device": 0} for time_s in (3.0, 9.0)]
    runs = load_runs(ledger_of(write_run, rows, events=twice))
    table = energy_by_class(runs).set_index("class")
    assert table.loc["meter", "battery_percent"] == pytest.approx(100 * 2.5 / 3.0)
    assert table.loc["meter", ["batteries", "emptied"]].tolist() == [2, 1]
    assert table.loc["phone", "batteries"] == 0
    assert table.loc["phone", ["battery_percent", "emptied"]].isna().all()
    whole = energy_of_all(table.reset_index()).iloc[0]
    assert whole[["batteries", "emptied"]].tolist() == [2, 1]
    assert battery_words(table.loc["meter"]).endswith("; 83.3 % of its battery, idle included; 1 of 2 empty")
    assert battery_words(whole).endswith(" of a phone's day; 1 of 2 batteries ran empty")
    assert "batter" not in battery_words(table.loc["phone"])
    assert "<td>1 of 2</td><td>1 of 2</td><td>—</td>" in energy(runs)
    shown = next(one for title, one in report_costs(runs).tables if title.startswith("Energy per device"))
    assert shown.loc["batteries that ran empty"].tolist() == ["1 of 2", "1 of 2", "—"]
    assert shown.loc["share of its battery, idle included (%)"].tolist() == ["—", "83.3", "—"]


def test_a_battery_emptied_to_the_last_digit_is_not_called_recharged() -> None:
    of = pd.Series({"battery_percent": 100 + 2e-14, "batteries": 1, "emptied": 1.0})
    assert after("battery_percent", of) == ""


def test_without_classes_and_circuits_there_is_one_row(write_run: Write) -> None:
    table = energy_by_class(load_runs(ledger_of(write_run, [{"transmit_j": 3.0}, {"idle_j": 1.0}])))
    assert table[["class", "devices"]].to_numpy().tolist() == [["all devices", 2]]
    assert table[[*SHARES]].to_numpy().tolist() == [[0, 3, 0, 0, 0, 1]]


@pytest.mark.parametrize("seed", range(5))
def test_shares_sum_to_the_ledgers_total_to_the_last_digit(write_run: Write, seed: int) -> None:
    """The total is the exact sum of the ledger's numbers, rounded once, so it does not depend on their order."""
    rng = np.random.default_rng(seed)
    values = 10 ** rng.uniform(-9, 5, (60, 6))
    rows = [
        {"class": f"c{n % 4}", "receive_j": a, "transmit_j": b, "circuit_j": b * share, "compute_j": c}
        | {"tail_j": d, "idle_j": e}
        for n, (a, b, c, d, e, share) in enumerate((values % (1e5, 1e5, 1e5, 1e5, 1e5, 1)).tolist())
    ]
    path = ledger_of(write_run, rows)
    with (path / "ledger.csv").open() as file:
        total_j = math.fsum(float(row["total_j"]) for row in csv.DictReader(file))
    table = energy_by_class(load_runs(path))
    cells = table[[*SHARES]].to_numpy().ravel()
    for order in (cells, cells[::-1], np.sort(cells), rng.permutation(cells)):
        assert list(itertools.accumulate(order.tolist()))[-1] == total_j
    assert sum(table.total_j) == total_j
    frame = pd.DataFrame(rows)
    frame["amplifier_j"] = frame["transmit_j"] - frame["circuit_j"]
    by_hand = frame.groupby("class")[[*SHARES]].sum().to_numpy().ravel()
    assert cells == pytest.approx(by_hand, rel=0, abs=len(cells) * math.ulp(total_j))


def test_runs_with_and_without_classes_are_summed_alike(write_run: Write) -> None:
    one = ledger_of(write_run, [{"class": "phone", "compute_j": 1.0}], "a")
    other = ledger_of(write_run, [{"compute_j": 2.0}], "b")
    table = energy_by_class(load_runs([one, other]))
    assert table[["variant", "class", "compute_j"]].to_numpy().tolist() == [
        ["a", "phone", 1],
        ["b", "all devices", 2],
    ]


@pytest.mark.usefixtures("rendered")
def test_no_label_of_a_bar_is_cut_off(write_run: Write) -> None:
    """A class with a long name has a battery that was empty and recharged, which makes its label long."""
    row = {"class": "a meter with a long name", "compute_j": 50.0, "recharged_j": 40.0, "left_j": 0.0}
    empty = [{"time_s": 3.0, "event": "battery_empty", "device": 0}]
    path = ledger_of(write_run, [row, {"class": "phone", "compute_j": 1000.0}], events=empty)
    figure = energy_figure(energy_by_class(load_runs(path)), ["a"])
    figure.canvas.draw()
    (ax,) = figure.axes
    assert any(text.get_text().endswith("(recharged); 1 of 1 empty") for text in ax.texts)
    assert max(text.get_window_extent().x1 for text in ax.texts) <= figure.bbox.x1


def test_a_bar_has_its_shares_end_to_end_in_the_order_of_the_table(write_run: Write) -> None:
    """A bar shows means over seeds: 2 J to receive, 4 J to send (1 J in circuits), 3 J to compute, then 5 J idle."""
    row = {"receive_j": 1.0, "transmit_j": 2.0, "circuit_j": 0.5, "compute_j": 1.5, "idle_j": 2.5}
    for seed, factor in ((1, 1.0), (2, 3.0)):
        rows = [{name: factor * joules for name, joules in row.items()}]
        path = ledger_of(write_run, rows, f"s{seed}", seed=seed, variant="v", study="s")
    (ax,) = energy_figure(energy_by_class(load_runs(path.parent)), ["v"]).axes
    bars = {bars.get_label(): bars.patches[0] for bars in ax.containers}
    spans = {name: (bar.get_x(), bar.get_x() + bar.get_width()) for name, bar in bars.items()}
    assert spans == {
        "receive": (0, 2),
        "transmit: amplifier": (2, 5),
        "transmit: circuits": (5, 6),
        "compute": (6, 9),
        "idle, not included": (9, 14),
    }
    assert [text.get_text() for text in ax.texts] == [
        "9.00 J",
        "0.644 mAh per device, 0.0129 % of a phone's day",  # 9 J at 13.968 J per mAh
    ]
