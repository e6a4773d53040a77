"""Record the world of a scenario once, for other frameworks and for edgefl itself.

Nothing is trained and no rounds are run: only the network is simulated. The folder contains

    positions      t, id, x, y: where each device is, s and m, device after device; a gap means absent
    presence       device, cell, from_s, to_s: spans of time in which a device could take part in a round of this cell
    links          time_s, device, cell, payload_bits, and the seconds and joules of receiving and of sending these
                   bits in a round that all devices then present in the cell begin together; if the band is shared
                   dynamically (`shared` 0), for a device that has the whole band; empty if the link carries nothing
    devices        what differs between devices, including seconds and joules per 1e9 FLOPs: training costs
                   these values times iterations x samples per batch x FLOPs per sample
    events         arrivals, departures, handovers, switches
    availability.json   when each device is present in some cell, in the format documented by FedScale
    switched.json       when each device is switched on, in the same format
    scenario.yaml  the scenario with its devices switched by switched.json and, if they move, moved by positions
    record.json    what was recorded, at what resolution, by which version

Presence is observed once per sample. The default, one sample per tick of the network, is exact: a run of
scenario.yaml has the same devices in each cell as the original run at every time. Left out: batteries are drained by
idling only, since no device works; and if devices move, scenario.yaml has one trip and mean speed per device, from
which follow its Doppler shift and, with `indoors_by: trip`, the walls around it. Transfer times then differ, and so
may the devices that have a link when a round begins.
"""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import simpy

from edgefl.config.yaml_source import write
from edgefl.engine.clock import Clock
from edgefl.engine.records import Event, Nowhere
from edgefl.errors import EdgeflError
from edgefl.learning.user_cache import without_tilde
from edgefl.rng import Streams
from edgefl.run import world_costs
from edgefl.run.composition import compose
from edgefl.run.preflight import check_world
from edgefl.run.world_costs import Columns
from edgefl.run_directory import parquet
from edgefl.run_directory.files import writing
from edgefl.scenario.scenario import Scenario, given, written
from edgefl.scenario.world import World
from edgefl.version import __version__

NOWHERE = -1
BEHIND_S = 1e-9  # tolerance, since rounding may make a tick of the network late
DEFAULT_BITS = 1_000_000
SHORTEST_S = 1e-3
MOST_SAMPLES = 200_000_000  # maximum number of positions in memory, 16 bytes each


def record(
    scenario: Scenario | str | Path | Mapping[str, Any],
    out: str | Path,
    *,
    duration_s: float | None = None,
    every_s: float | None = None,
    links_s: float = 10.0,
    payload_bits: Sequence[int] = (),
    tables: Literal["csv", "parquet"] = "csv",
) -> Path:
    """Record the world of a scenario in a new or empty folder, without training.

    Args:
        scenario: as for `simulate`; its learning is ignored.
        out: the folder, for positions, attachments, links and costs as tables in m, s, J, bits and dB, availability
            in FedScale's format, and a scenario.yaml that trains on the recorded world.
        duration_s: length of the recording, or None for the scenario's duration_s.
        every_s: seconds between samples of all devices; None for every tick of the network, which is exact.
        links_s: seconds between measurements of all links.
        payload_bits: sizes of the recorded transfers; if empty, the workload's sizes, or DEFAULT_BITS.
        tables: format of the tables, csv or parquet.

    Returns:
        Path of the folder.

    Raises:
        EdgeflError: the world cannot be built, has no end, or the folder is not empty.
    """
    scenario = given(scenario)
    for name, seconds in (("--duration-s", duration_s), ("--every-s", every_s), ("--links-s", links_s)):
        if seconds is not None and not SHORTEST_S <= seconds < math.inf:
            raise EdgeflError(f"{name} {seconds}: give seconds, at least {SHORTEST_S}")
    out = without_tilde(Path(out))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise EdgeflError(f"{out}: {'is not empty' if out.is_dir() else 'is a file'}; give a new folder")
    if tables == "parquet":
        parquet.require()
    with scenario.naming_places():
        seen = _Seen(scenario, duration_s, every_s, links_s, payload_bits)
        seen.live()
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    for name, columns in seen.tables().items():
        _write_table(out / f"{name}.{tables}", columns)
    _write_json(out / "availability.json", seen.availability())
    _write_json(out / "switched.json", seen.switched())
    _write_json(out / "record.json", seen.about())
    with writing(out / "scenario.yaml"):
        (out / "scenario.yaml").write_text(
            _scenario_again(seen.world, out.resolve(), tables, seen.every_s, seen.duration_s),
            encoding="utf-8",
        )
    return out


class _Seen(Nowhere):
    """Observe a world while its network runs."""

    def __init__(
        self,
        scenario: Scenario,
        duration_s: float | None,
        every_s: float | None,
        links_s: float,
        payload_bits: Sequence[int],
    ) -> None:
        self.world = World(scenario, Streams(scenario.seed))
        check_world(self.world, reports=True)
        duration_s = duration_s or scenario.duration_s
        if duration_s is None:
            raise EdgeflError(
                "the scenario has no duration: sessions would end its run, but a recording has "
                "no sessions; say how long to record, e.g. --duration-s 3600, or give the scenario a duration_s",
                ("duration_s",),
            )
        self.every_s = every_s or self.world.tick_s
        self.duration_s, self.links_s = duration_s, links_s
        # one more sample, since a device is absent after its last sample
        self._count = int(np.ceil(duration_s / self.every_s - 1e-9)) + 2
        if self._count * self.world.count > MOST_SAMPLES:
            raise EdgeflError(
                f"{self._count} samples of {self.world.count} devices do not fit in memory: record less often"
                " (--every-s), or for a shorter time",
                ("duration_s",),
            )
        bits = scenario.workload.payload_bits if scenario.workload else DEFAULT_BITS
        self.bits = tuple(payload_bits) or (bits,)
        self.times_s = self.every_s * np.arange(self._count)
        self.positions_m = np.full((self._count, self.world.count, 2), np.nan)
        self.cells = np.full((self._count, self.world.count), NOWHERE, np.int32)
        self._links: list[Columns] = []
        self._events: list[Columns] = []

    def live(self) -> None:
        """Run the network to the end and observe it."""
        env = Clock()
        radio = self.world.radio(env)
        simulation, _ = compose(self.world, radio, self, {})
        looks = int(self.duration_s / self.links_s + 1e-9) + 1
        moments = sorted(
            {(time_s, 0, number) for number, time_s in enumerate(self.times_s.tolist())}
            | {(number * self.links_s, 1, number) for number in range(looks)}
        )
        for time_s, kind, number in moments:
            _run_through(env, time_s + BEHIND_S)
            if kind == 0:
                self.positions_m[number] = self.world.movement.positions_m(time_s)
                for cell in range(self.world.scenario.layout.cells):
                    self.cells[number, simulation.network.present(cell)] = cell
            else:
                cells = self.world.served
                self._links += world_costs.links(simulation, radio, cells, self.bits, time_s, number)
        self._devices = world_costs.devices(simulation)

    # ---- methods of a recorder
    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        """Store rows of events."""
        for row in rows:
            columns: dict[str, Any] = {name: [value] for name, value in vars(row).items()}
            self.write_columns(type(row), **columns)

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        """Store events given by column; other rows do not occur without servers and recorded positions."""
        if row_type is not Event:
            return
        columns = vars(Event(**columns))
        many = max(len(one) for one in columns.values() if isinstance(one, list | np.ndarray))
        self._events.append(
            {
                name: list(one) if isinstance(one, list | np.ndarray) else [one] * many
                for name, one in columns.items()
            }
        )

    def tables(self) -> dict[str, Columns]:
        """Return the recorded tables by name."""
        return {
            "positions": self._positions(),
            "presence": self._presence(),
            "links": _joined(self._links, world_costs.LINK_COLUMNS),
            "devices": self._devices,
            "events": _joined(self._events, [field.name for field in fields(Event)]),
        }

    def _positions(self) -> Columns:
        there = np.isfinite(self.positions_m[..., 0]).T  # [devices, times]
        device, sample = np.nonzero(there)
        places = self.positions_m[sample, device]
        never = np.flatnonzero(~there.any(axis=1))
        # a device that never appears gets a row before the start, since ids are numbered in order of appearance
        device, times_s = np.append(device, never), np.append(self.times_s[sample], np.full(len(never), -1.0))
        places = np.concatenate([places, np.zeros((len(never), 2))])
        order = np.argsort(device, kind="stable")
        return {"t": times_s[order], "id": device[order], "x": places[order, 0], "y": places[order, 1]}

    def _spells(self, cells: np.ndarray) -> list[tuple[int, float, float]]:
        """Return cell, start and end of each stay of a device in a cell, up to the end of the recording."""
        ends = np.flatnonzero(np.diff(cells)) + 1
        edges = [0, *ends.tolist(), len(cells)]
        spells = []
        for begin, end in pairwise(edges):
            from_s = float(self.times_s[begin])
            to_s = min(float(self.times_s[end]) if end < len(cells) else np.inf, self.duration_s)
            if cells[begin] != NOWHERE and from_s < to_s:
                spells.append((int(cells[begin]), from_s, to_s))
        return spells

    def _presence(self) -> Columns:
        rows = [
            (device, *spell)
            for device in range(self.world.count)
            for spell in self._spells(self.cells[:, device])
        ]
        columns = zip(*rows, strict=True) if rows else ((), (), (), ())
        return dict(zip(("device", "cell", "from_s", "to_s"), map(list, columns), strict=True))

    def availability(self) -> dict[str, Any]:
        """Return the times at which each device is in any cell, in FedScale's format."""
        anywhere = np.where(self.cells == NOWHERE, NOWHERE, 0)
        return {
            str(device): self._client([spell[1:] for spell in self._spells(anywhere[:, device])])
            for device in range(self.world.count)
        }

    def switched(self) -> dict[str, Any]:
        """Return the exact times at which each device is switched on, in FedScale's format."""
        switches = self.world.fleet.switches(self.world.streams)
        spells: list[list[tuple[float, float]]] = [[(0.0, self.duration_s)]] * self.world.count
        for device, times in enumerate(switches):
            within = list(takewhile(lambda time_s: time_s < self.duration_s, times))
            ends = [*within, self.duration_s] if len(within) % 2 else within
            spells[device] = list(zip(ends[::2], ends[1::2], strict=True))
        return {str(device): self._client(own) for device, own in enumerate(spells)}

    def _client(self, spells: Sequence[Sequence[float]]) -> dict[str, Any]:
        return {
            "active": [float(begin) for begin, _ in spells],
            "inactive": [float(end) for _, end in spells],
            "finish_time": float(self.duration_s),
        }

    def about(self) -> dict[str, Any]:
        """Return the settings of the recording."""
        return {
            "edgefl_version": __version__,
            "scenario": self.world.scenario.name,
            "seed": self.world.scenario.seed,
            "devices": self.world.count,
            "cells": self.world.scenario.layout.cells,
            "duration_s": self.duration_s,
            "every_s": self.every_s,
            "links_s": self.links_s,
            "payload_bits": list(self.bits),
        }


def _run_through(env: simpy.Environment, time_s: float) -> None:
    """Run the network up to a time, including all events at that time."""
    if time_s > env.now:
        env.run(until=time_s)
    while env.peek() <= time_s:
        env.step()


def _scenario_again(world: World, out: Path, tables: str, every_s: float, duration_s: float) -> str:
    """Write the scenario with its devices moved and switched as recorded, up to the recording's end."""
    document = written(world.scenario) | {"duration_s": duration_s}
    devices = document["devices"]
    devices.pop("density_per_km2", None)
    # keep churn that lists devices by session, not by time
    listed = world.fleet.members(1) is not None
    replaced = ["mobility"] * world.movement.moves + ["churn"] * (not listed)
    for one in [devices, *devices.get("classes", {}).values()]:
        for key in replaced:
            one.pop(key, None)
    devices["count"] = world.count
    if world.movement.moves:
        devices["mobility"] = {
            "name": "trace",
            "path": str(out / f"positions.{tables}"),
            "begin_s": 0.0,
            "area_factor": world.extent.field_radius_m / world.extent.radius_m,
            "max_gap_s": 1.5 * every_s,
        }
    if not listed and world.fleet.switches(world.streams):
        devices["churn"] = {"name": "availability_trace", "path": str(out / "switched.json")}
    return write(document)


def _joined(blocks: Sequence[Columns], names: Sequence[str]) -> Columns:
    return {name: [value for block in blocks for value in block[name]] for name in names}


def _write_table(path: Path, columns: Columns) -> None:
    plain = {
        name: values.tolist() if isinstance(values, np.ndarray) else list(values)
        for name, values in columns.items()
    }
    with writing(path):
        if path.suffix == ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.table(plain), path)
            return
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(plain)
            rows.writerows(zip(*plain.values(), strict=True))


def _write_json(path: Path, document: Any) -> None:
    with writing(path):
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
