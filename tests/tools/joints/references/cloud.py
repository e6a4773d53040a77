"""Derive runs of a cloud over cells: when cells exchange models, which models the cloud averages, and the means.

Devices do not move, and all devices of a cell take part in its rounds. Each transfer takes one slot, the next.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.tools.joints.references import softmax
from tests.tools.joints.references.band import SITES, SLOT_S, STRONG, TIME_DIGIT_S
from tests.tools.joints.references.reading import Compared, rows_of, run

SIX_DIGITS = 1e-5  # relative error of shares in an event's detail, which have six digits


class Tie(Exception):
    """A tie, in which two cells' models reach an asynchronous cloud at the same time, in no defined order."""


@dataclass
class Done:
    """A cell's round; version: the cloud's model at its end; waited_s: wait for it; value: the cell's model."""

    begin_s: Fraction
    end_s: Fraction
    version: int | None
    waited_s: Fraction
    value: np.ndarray


@dataclass
class Hierarchy:
    """Cells and a cloud; members: cell -> devices; made: time and cells' shares of each model of the cloud."""

    case: Mapping[str, Any]
    learning: softmax.Learning
    members: Mapping[int, list[int]]
    rounds: dict[int, list[Done]] = field(default_factory=dict)
    made: list[tuple[Fraction, dict[int, float]]] = field(default_factory=list)
    waiting: dict[int, tuple[Fraction, Fraction]] = field(
        default_factory=dict
    )  # cell -> start of its round, arrival of its model
    sent: dict[int, np.ndarray] = field(default_factory=dict)  # last model that each cell sent
    queue: list[tuple[Fraction, str, int, Fraction]] = field(default_factory=list)

    def run(self) -> "Hierarchy":
        """Run all rounds of all cells."""
        self.values = dict.fromkeys(self.members, self.learning.first)
        self.working, self.rounds = set(self.members), {cell: [] for cell in self.members}
        for cell in self.members:
            self._begin(cell, Fraction(0))
        while self.queue:
            now_s, what, cell, begin_s = heapq.heappop(self.queue)
            if what == "arrives":
                at_once = any(one[:2] == (now_s, "arrives") for one in self.queue)
                if at_once and self.case["waits_for"] == "nobody":
                    raise Tie
                self.waiting[cell], self.sent[cell] = (begin_s, now_s), self.values[cell]
                self._look(now_s)
            else:
                self._begin(cell, now_s)
        return self

    def _begin(self, cell: int, now_s: Fraction) -> None:
        """Begin a cell's next round and train its model; a cell without more rounds stops working."""
        done = len(self.rounds[cell]) + 1
        if done > self.case["rounds"] or now_s >= self.case["duration_s"]:
            self.working.discard(cell)
            self._look(now_s)
            return
        ids = self.members[cell]
        received_s = (ceil(now_s / SLOT_S) + 1) * SLOT_S
        sent_s = [(ceil((received_s + self.case["compute_s"][id_]) / SLOT_S) + 1) * SLOT_S for id_ in ids]
        trained = [self.learning.trained(id_, self.values[cell]) for id_ in ids]
        samples = [self.learning.sizes[id_] for id_ in ids]
        self.values[cell] = np.average(trained, axis=0, weights=samples)
        end_s = max(sent_s) + self.case["server_s"]
        if done % self.case["every"]:
            self._end(cell, now_s, end_s)
        else:
            heapq.heappush(self.queue, (end_s + self.case["one_way_s"], "arrives", cell, now_s))

    def _look(self, now_s: Fraction) -> None:
        """Make the cloud's model, unless the cloud still waits for a cell."""
        waits = self.case["waits_for"] == "cells"
        if not self.waiting or (waits and not self.working <= self.waiting.keys()):
            return
        of = self.waiting.keys() if waits else self.sent.keys()
        samples = {cell: sum(self.learning.sizes[id_] for id_ in self.members[cell]) for cell in sorted(of)}
        shares = {cell: many / sum(samples.values()) for cell, many in samples.items()}
        mean = np.average([self.sent[cell] for cell in shares], axis=0, weights=[*shares.values()])
        self.made.append((now_s, shares))
        waiting, self.waiting = self.waiting, {}
        for cell, (begin_s, arrival_s) in waiting.items():
            self.values[cell] = mean
            self._end(cell, begin_s, now_s + self.case["one_way_s"], now_s - arrival_s, len(self.made))

    def _end(
        self,
        cell: int,
        begin_s: Fraction,
        end_s: Fraction,
        waited_s: Fraction = Fraction(0),
        version: int | None = None,
    ) -> None:
        self.rounds[cell].append(Done(begin_s, end_s, version, waited_s, self.values[cell]))
        heapq.heappush(self.queue, (end_s, "begins", cell, end_s))


def compare(rng: Random, folder: Path) -> Compared:
    """Draw a case, run it, and compare rounds, the cloud's models and the cells' values."""
    learning = softmax.drawn(rng, rng.randint(3, 9))
    case, data = drawn(rng, learning)
    out, compared = run(data | {"learning": learning.section(folder)}, folder), Compared()
    rows, members = rows_of(out, "rounds"), dict[int, list[int]]()
    for cell, id_ in sorted({(int(part["cell"]), int(part["device"])) for part in rows_of(out, "devices")}):
        members.setdefault(cell, []).append(id_)
    try:
        own = Hierarchy(case, learning, members).run()
    except Tie:
        return compared
    for cell, rounds in own.rounds.items():
        mine = [row for row in rows if row["cell"] == str(cell)]
        compared.same(f"rounds of cell {cell}", len(mine) == len(rounds), len(mine), len(rounds))
        for number, (row, done) in enumerate(zip(mine, rounds, strict=False), start=1):
            where, tolerance = f"cell {cell}, round {number}", 2 * learning.tolerance(2 * number)
            compared.near(where, row, {"start_s": done.begin_s, "end_s": done.end_s}, TIME_DIGIT_S)
            compared.near(where, row, {"cloud_wait_s": done.waited_s}, TIME_DIGIT_S)
            version = int(float(row["cloud_version"])) if row["cloud_version"] else None
            compared.same(f"{where}: version", version == done.version, version, done.version)
            loss = learning.test.loss(done.value)
            compared.near(where, row, {"loss": loss}, softmax.LARGEST * tolerance)
        off = float(abs(softmax.model_in(out, cell) - rounds[-1].value).max())
        compared.same(
            f"cell {cell}: the last model", off <= 2 * learning.tolerance(2 * len(rounds)), off, 0.0
        )
    events = [row for row in rows_of(out, "events") if row["event"] == "cloud_model"]
    compared.same("number of the cloud's models", len(events) == len(own.made), len(events), len(own.made))
    for event, (made_s, shares) in zip(events, own.made, strict=False):
        compared.near("the cloud's model", event, {"time_s": made_s}, TIME_DIGIT_S)
        told = dict(each.split(":") for each in event["detail"].split(" of ")[1].split())
        alike = told.keys() == {str(cell) for cell in shares} and all(
            abs(float(told[str(cell)]) - share) < SIX_DIGITS for cell, share in shares.items()
        )
        compared.same("shares in the cloud's model", alike, told, shares)
    return compared


def drawn(rng: Random, learning: softmax.Learning) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a cloud and its scenario."""
    devices, sessions, rounds = len(learning.devices), rng.randint(1, 2), rng.randint(1, 5)
    clocks_hz = [rng.randint(1_000_000, 20_000_000) for _ in range(devices)]
    latency_us, rate = rng.choice((0, 20_011, 300_007)), rng.randint(1_000, 100_000)
    server_ms, duration_ms = rng.choice((0, 31)), rng.choice((None, None, rng.randint(300, 3000)))
    case: dict[str, Any] = {
        "rounds": sessions * rounds,
        "every": rng.randint(1, 4),
        "waits_for": rng.choice(("cells", "nobody")),
        "one_way_s": Fraction(latency_us, 1_000_000) + Fraction(softmax.BITS, rate),
        "server_s": Fraction(server_ms, 1000),
        "duration_s": Fraction(duration_ms or 10**9, 1000),
        "compute_s": [
            Fraction(learning.steps * many * learning.flops, 8 * clock_hz)
            for many, clock_hz in zip(learning.sizes, clocks_hz, strict=True)
        ],
    }
    data: dict[str, Any] = {
        "name": "cloud",
        "seed": rng.randint(0, 10**6),
        "duration_s": duration_ms and duration_ms / 1000,
        "cell": {"radius_m": 30, "min_distance_m": 1},
        "layout": {"sites": SITES[: rng.choice((1, 2, 3, 3, 3))]},
        "devices": {
            "count": devices,
            "transmit_power_dbm": 40,
            "classes": {f"c{k}": {"count": 1, "clock_hz": hz} for k, hz in enumerate(clocks_hz)},
            "classes_by": "ids",
        },
        "radio": {**STRONG, "bandwidth_hz": 2e7, "link": {"max_efficiency": 1}},
        "rounds": {"server_s": server_ms / 1000, "max_wait_s": 1.0},
        "sessions": {"name": "schedule", "count": sessions, "rounds": rounds},
        "cloud": {
            "every": case["every"],
            "waits_for": case["waits_for"],
            "backhaul_bps": rate,
            "backhaul_latency_s": latency_us / 1_000_000,
        },
    }
    return case, data
