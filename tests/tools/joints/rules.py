"""Check rules that hold for the tables of any run, in addition to `tests.tools.invariants`."""

import contextlib
import csv
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.air.radio import Radio
from edgefl.scenario.scenario import Scenario, load

Row = dict[str, str]
TIME_DIGIT_S = 2e-9  # times have nine decimals
SHARE_ROUNDING = 1e-9  # rounding of a sum of shares
ROUNDING = 1e-9  # relative
SLOT_ROUNDING = 1e-3  # rounding of times with nine decimals, in slots
HIGHEST_CQI = 948 / 1024 * 8  # 38.214, Table 5.2.2.1-3: bits/s/Hz


def broken_rules(out: Path) -> Iterator[str]:
    """Yield the faults in a completed run."""
    tables: dict[str, list[dict[str, str]]] = defaultdict(list)
    for file in sorted(out.glob("**/*.csv")):
        whose = {} if file.parent == out else {"federation": file.parent.name}
        tables[file.stem] += [{**row, **whose} for row in csv.DictReader(file.open(encoding="utf-8"))]
    scenario = load(out / "scenario.yaml")
    for check in (_finite, _whole_bits, _on_slots, _band_carries, _staleness, _batteries, _scores):
        yield from check(tables, scenario)


def _finite(tables: Mapping[str, list[Row]], scenario: Scenario) -> Iterator[str]:
    for name, rows in tables.items():
        for line, row in enumerate(rows, start=2):
            for column, cell in row.items():
                if cell.lower() in ("nan", "inf", "-inf") and column != "epsilon":  # inf without noise
                    yield f"{name}.csv, line {line}: {column} is {cell}"


def _whole_bits(tables: Mapping[str, list[Row]], scenario: Scenario) -> Iterator[str]:
    """Check, in runs without training, that completed devices moved the payload each way, and others no more."""
    if scenario.workload is None or scenario.federations:
        return
    payload = {"downlink": scenario.workload.payload_bits}
    payload["uplink"] = payload["downlink"] + scenario.sections.reports.bits
    for line, row in enumerate(tables["devices"], start=2):
        for way, most in payload.items():
            bits = int(row[f"{way}_bits"])
            whole = row["outcome"] == "completed" or (way == "downlink" and row["compute_start_s"])
            if bits != most if whole else not 0 <= bits <= most:
                yield f"devices.csv, line {line}: {way}_bits is {bits} of {most}, {row['outcome']}"


def _on_slots(tables: Mapping[str, list[Row]], scenario: Scenario) -> Iterator[str]:
    """Check that a completed transfer ends at the end of a slot that serves its direction."""
    radio = scenario.radio
    pattern = radio.tdd.pattern_of() if radio.tdd else None
    for line, row in enumerate(tables["devices"], start=2):
        for way, after in (("downlink", row["compute_start_s"]), ("uplink", row["outcome"] == "completed")):
            if not after or not int(row[f"{way}_bits"]):
                continue
            slots = float(row[f"{way}_end_s"]) / radio.slot_s
            last = round(slots) - 1
            if abs(slots - round(slots)) * radio.slot_s > TIME_DIGIT_S:
                yield f"devices.csv, line {line}: {way} ends within a slot, at {slots} slots"
            elif pattern and not pattern.weights(way)[last % len(pattern.pattern)]:
                yield f"devices.csv, line {line}: {way} ends in slot {last} of {pattern.pattern}"


def _band_carries(tables: Mapping[str, list[Row]], scenario: Scenario) -> Iterator[str]:
    """Check that a cell moves no more bits than its band carries at the highest rate while devices transfer."""
    radio = scenario.radio
    if radio.downlink == "broadcast" or (radio.link.rates == "shannon" and radio.link.max_efficiency is None):
        return
    highest = radio.link.max_efficiency or HIGHEST_CQI
    pattern = radio.tdd.pattern_of() if radio.tdd else None
    for way in DIRECTIONS:
        layers = radio.link.downlink_layers if way == "downlink" else 1
        weights = pattern.weights(way) if pattern else (1.0,)
        bits, slots = Counter[str](), defaultdict[str, set[int]](set)
        for row in tables["devices"]:
            # skip transfers that moved to another cell after a link failure, since their bits belong to two cells
            if row[f"{way}_end_s"] and not int(row.get("link_failures") or 0):
                begin, end = (float(row[f"{way}_{each}_s"]) / radio.slot_s for each in ("start", "end"))
                slots[row["cell"]].update(range(round(begin), math.ceil(end - SLOT_ROUNDING)))
                bits[row["cell"]] += int(row[f"{way}_bits"])
        for cell, many in bits.items():
            airtime_s = radio.slot_s * sum(weights[slot % len(weights)] for slot in slots[cell])
            most = radio.bandwidth_hz * radio.link.goodput * highest * layers * airtime_s
            if many > most * (1 + ROUNDING):
                yield f"devices.csv: cell {cell} has moved {many} bits {way}, its band carries {most:.6g}"


def _staleness(tables: Mapping[str, list[Row]], scenario: Scenario) -> Iterator[str]:
    """Check that staleness counts the models since a device began, and does not exceed the server's limit."""
    made = {_round(row): int(row["version"]) for row in tables["rounds"]}
    for line, row in enumerate(tables["devices"], start=2):
        if not row.get("staleness"):
            continue
        where, tau = f"devices.csv, line {line}", int(float(row["staleness"]))
        if tau != (since := made[_round(row)] - 1 - int(float(row["version"]))):
            yield f"{where}: staleness is {tau}, and {since} models were made since it began"
        server = scenario.by_federation[row.get("federation") or ""].rounds.server
        if not server.takes(tau):
            yield f"{where}: staleness is {tau}, which {server} does not accept"


def _batteries(tables: Mapping[str, list[Row]], scenario: Scenario) -> Iterator[str]:
    capacities = [one.battery_j for one in scenario.devices.kinds()]
    most_j = max((each for each in capacities if each is not None), default=math.inf)
    for line, row in enumerate(tables["ledger"], start=2):
        if row["left_j"] and not 0 <= float(row["left_j"]) <= most_j * (1 + ROUNDING):
            yield f"ledger.csv, line {line}: left_j is {row['left_j']}, of {most_j}"


def _scores(tables: Mapping[str, list[Row]], scenario: Scenario) -> Iterator[str]:
    """Check that accuracies are in [0, 1], if all tasks are classifications."""
    if not scenario.trains or any("coefficient" in row.get("phase", "") for row in tables["rounds"]):
        return
    classes = all(
        one.learning is None or type(one.learning.learned).__name__ == "Classification"
        for one in scenario.by_federation.values()
    )
    for line, row in enumerate(tables["rounds"], start=2):
        if classes and row["accuracy"] and not 0 <= float(row["accuracy"]) <= 1:
            yield f"rounds.csv, line {line}: accuracy is {row['accuracy']}"


def _round(row: Row) -> tuple[str, ...]:
    return row["cell"], row["session"], row["phase"], row["round"], row.get("federation") or ""


@contextlib.contextmanager
def watched_shares(broken: list[str]) -> Iterator[None]:
    """Record shares of a cell's band that sum to more than 1 during runs in this process."""
    original: Callable[..., Any] = Radio.open_round

    def open_round(self: Radio, *arguments: Any, **choices: Any) -> Any:
        opened = original(self, *arguments, **choices)
        for direction in DIRECTIONS if not self.air.dynamic else ():
            # a broadcast uses the whole band, and transfers after it have shares of their own
            if opened.broadcast is not None and direction == "downlink":
                continue
            shares = np.asarray(opened.links.share[direction])
            if not (shares >= 0).all() or shares.sum() > 1 + SHARE_ROUNDING:
                broken.append(f"shares of the {direction} are {shares.tolist()}")
        return opened

    Radio.open_round = open_round  # type: ignore[method-assign]
    try:
        yield
    finally:
        Radio.open_round = original  # type: ignore[method-assign]


def round_trip(out: Path) -> Iterator[str]:
    """Yield the differences between a run directory's scenario and the same scenario loaded and dumped."""
    from edgefl.scenario.scenario import dump

    text = (out / "scenario.yaml").read_text(encoding="utf-8")
    if yaml.safe_load(dump(load(out / "scenario.yaml"))) != yaml.safe_load(text):
        yield "scenario.yaml changes if it is loaded and dumped"
