"""Derive runs of servers whose rounds overlap: order of arrivals, versions, staleness, weights, model values.

All devices work except devices with a waiting update. A transfer takes the next slot, whatever the number of devices.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.tools.joints.references import softmax
from tests.tools.joints.references.band import SLOT_S, STRONG, TIME_DIGIT_S
from tests.tools.joints.references.reading import Compared, rows_of, run

ROUNDING = 1e-12  # error of a mean of a few integers


@dataclass
class Made:
    """A model; stale: device -> staleness of its update in the model; working: number of devices still at work."""

    time_s: Fraction
    value: np.ndarray
    stale: dict[int, int]
    working: int


@dataclass
class Server:
    """The server's state; under_way, waiting: device -> version and value that it received (and arrival)."""

    case: Mapping[str, Any]
    learning: softmax.Learning
    value: np.ndarray
    since_s: Fraction = Fraction(0)
    version: int = 0
    under_way: dict[int, tuple[int, np.ndarray, Fraction]] = field(default_factory=dict)
    waiting: dict[int, tuple[int, np.ndarray]] = field(default_factory=dict)
    made: list[Made] = field(default_factory=list)

    def run(self) -> "Server":
        """Run until all models are aggregated, or until two updates arrive at once, in no defined order."""
        self._begin(Fraction(0))
        while len(self.made) < self.case["models"]:
            arrivals = sorted((arrival, id_) for id_, (*_, arrival) in self.under_way.items())
            look_s = (
                self.since_s + self.case["period_s"] if self.case["server"] == "semi_synchronous" else None
            )
            if look_s is not None and self.waiting and (not arrivals or look_s < arrivals[0][0]):
                self._make([*self.waiting], max(look_s, self.since_s))
                continue
            if len(arrivals) > 1 and arrivals[0][0] == arrivals[1][0]:
                break
            now_s, id_ = arrivals[0]
            self.waiting[id_] = self.under_way.pop(id_)[:2]
            self._drop_stale(now_s)
            if ready := self._ready(now_s):
                self._make(ready, now_s)
        return self

    def _ready(self, now_s: Fraction) -> list[int]:
        if self.case["server"] == "semi_synchronous":
            due = now_s >= self.since_s + self.case["period_s"] or not self.under_way
            return [*self.waiting] if due else []
        many = self.case["buffer"]
        return [*self.waiting][:many] if len(self.waiting) >= many else []

    def _drop_stale(self, now_s: Fraction) -> None:
        most, case = self.case["max_staleness"], self.case
        if most is None or case["beyond"] == "cap":
            return
        dropped = [id_ for id_, (version, _) in self.waiting.items() if self.version - version > most]
        for id_ in dropped:
            del self.waiting[id_]
        nothing_left = not (self.under_way or self.waiting)
        if dropped and (case["server"] != "semi_synchronous" or nothing_left):
            self._begin(now_s)

    def _make(self, ready: list[int], now_s: Fraction) -> None:
        case, received = self.case, {id_: self.waiting.pop(id_) for id_ in ready}
        stale = {id_: self.version - version for id_, (version, _) in received.items()}
        samples = {id_: self.learning.sizes[id_] for id_ in ready}
        share = {id_: many / sum(samples.values()) for id_, many in samples.items()}
        counts = {id_: self._law(tau) for id_, tau in stale.items()}
        divisor = sum(share[id_] * counts[id_] for id_ in ready) if case["divisor"] == "weights" else 1.0
        factor = len(ready) if case["divisor"] == "none" else 1.0
        step = np.zeros_like(self.value)
        for id_, (_, start) in received.items():
            change = self.learning.trained(id_, start) - (self.value if case["base"] == "current" else start)
            step += factor * share[id_] * counts[id_] / divisor * change
        self.value = self.value + case["server_lr"] * step
        self.version, self.since_s = self.version + 1, now_s
        self.made.append(Made(now_s, self.value, stale, len(self.under_way)))
        self._drop_stale(now_s)
        self._begin(now_s)

    def _law(self, tau: int) -> float:
        case = self.case
        if case["beyond"] == "cap" and case["max_staleness"] is not None:
            tau = min(tau, case["max_staleness"])
        if case["law"] == "hinge":
            return 1.0 if tau <= 4 else 1 / (10 * (tau - 4) + 1)  # FedAsync's hinge with a = 10 and b = 4
        return 1.0 if case["law"] == "constant" else (1 + tau) ** -0.5

    def _begin(self, now_s: Fraction) -> None:
        for id_ in range(len(self.learning.devices)):
            if id_ not in self.under_way and id_ not in self.waiting:
                received = (ceil(now_s / SLOT_S) + 1) * SLOT_S
                sent = (ceil((received + self.case["compute_s"][id_]) / SLOT_S) + 1) * SLOT_S
                self.under_way[id_] = self.version, self.value, sent


def compare(rng: Random, folder: Path) -> Compared:
    """Draw a case, run it, and compare its models and their updates."""
    learning = softmax.drawn(rng, rng.randint(2, 6))
    case, data = drawn(rng, learning)
    out, compared = run(data | {"learning": learning.section(folder)}, folder), Compared()
    server = Server(case, learning, learning.first).run()
    rounds, parts = rows_of(out, "rounds"), rows_of(out, "devices")
    for number, (row, made) in enumerate(zip(rounds, server.made, strict=False), start=1):
        where, tolerance = f"model {number}", learning.tolerance(number)
        stale = made.stale.values()
        last = number == case["models"]  # after the last model, devices at work are cut off
        compared.near(where, row, {"version": number}, 0)
        compared.near(where, row, {"end_s": made.time_s} if not last else {}, TIME_DIGIT_S)
        compared.near(where, row, {"staleness_mean": sum(stale) / len(stale)}, ROUNDING)
        compared.near(where, row, {"staleness_max": max(stale)} | ({} if last else {"working": made.working}))
        compared.near(where, row, {"loss": learning.test.loss(made.value)}, 2 * softmax.LARGEST * tolerance)
        mine = {
            int(part["device"]): int(float(part["staleness"]))
            for part in parts
            if part["round"] == row["round"] and part["staleness"]
        }
        compared.same(f"{where}: staleness by device", mine == made.stale, mine, made.stale)
    if len(server.made) == case["models"]:
        off = float(abs(softmax.model_in(out, 0) - server.made[-1].value).max())
        compared.same("the last model", off <= learning.tolerance(case["models"]), off, 0.0)
    return compared


def drawn(rng: Random, learning: softmax.Learning) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a server and its scenario."""
    devices = len(learning.devices)
    name = rng.choice(("fedbuff", "fedbuff", "fedasync", "semi_synchronous"))
    clocks_hz = [rng.randint(1_000_000, 20_000_000) for _ in range(devices)]
    case: dict[str, Any] = {
        "server": name,
        "models": rng.randint(4, 12),
        "buffer": 1 if name == "fedasync" else rng.randint(1, devices),
        "law": rng.choice(("constant", "polynomial", "hinge")),
        "max_staleness": rng.choice((None, None, 1, 2)),
        "beyond": rng.choice(("drop", "cap")),
        "divisor": rng.choice(("buffer", "weights", "none")) if name == "fedbuff" else "buffer",
        "base": {"fedbuff": rng.choice(("received", "current")), "fedasync": "current"}.get(name, "received"),
        "server_lr": rng.choice((0.25, 0.6, 1)) if name != "semi_synchronous" else 1.0,
        "period_s": Fraction(rng.randint(1, 100_000) * 10 + 3, 1_000_000),
        "compute_s": [
            Fraction(learning.steps * many * learning.flops, 8 * clock_hz)
            for many, clock_hz in zip(learning.sizes, clocks_hz, strict=True)
        ],
    }
    server: dict[str, Any] = {
        "name": name,
        "staleness": case["law"],
        "max_staleness": case["max_staleness"],
        "beyond": case["beyond"],
    }
    if name == "fedbuff":
        server |= {key: case[key] for key in ("buffer", "divisor", "base", "server_lr")}
    elif name == "fedasync":
        server["alpha"] = case["server_lr"]
    else:
        server["every_s"] = float(case["period_s"])
    data: dict[str, Any] = {
        "name": "asynchronous",
        "seed": rng.randint(0, 10**6),
        "cell": {"radius_m": 30, "min_distance_m": 1},
        "devices": {
            "count": devices,
            "transmit_power_dbm": 40,
            "classes": {f"c{k}": {"count": 1, "clock_hz": hz} for k, hz in enumerate(clocks_hz)},
            "classes_by": "ids",
        },
        # a slot has room for more than eight models
        "radio": {**STRONG, "bandwidth_hz": 2e7, "link": {"max_efficiency": 1}, "sharing": "dynamic"},
        "rounds": {"server": server},
        "sessions": {"name": "schedule", "count": 1, "rounds": case["models"]},
    }
    return case, data
