"""Test that an empty cell stops only itself: which cells wait for a device, how long, and how the run ends."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import simpy

import edgefl
from edgefl.engine.federation.federations import Federations
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.records import Event, Round, Session
from edgefl.rng import Streams
from edgefl.run.composition import compose
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.testing import Placed, Rows, Scripted, SmallWorld, SwitchedAt, small_world
from tests.refusals import refused_at

ISD_M = 100.0
PATIENCE_S = 50.0
EXACT = 1e-9
EMPTY = 6  # the cell that starts without devices, the last one of the ring


# -- how long cells wait ------------------------------------------------------------------------------


def given_up_s(env: simpy.Environment, given_up: simpy.Event) -> list[float]:
    """Return a list that receives the time at which an event succeeds."""
    times_s: list[float] = []
    given_up.callbacks.append(lambda _: times_s.append(env.now))
    return times_s


def test_who_waits_alone_is_given_up_after_the_patience() -> None:
    env = simpy.Environment()
    federations = Federations(env, PATIENCE_S)
    federations.works(0)
    env.run(until=3.0)
    times_s = given_up_s(env, federations.waits(0))
    env.run()
    assert times_s == [3.0 + PATIENCE_S]


def test_nobody_is_given_up_while_another_works() -> None:
    """Cell 1 waits from time 0 on, and is not given up while cell 0 works, until 400 s and from 430 s to 500 s."""
    env = simpy.Environment()
    federations = Federations(env, PATIENCE_S)
    federations.works(0)
    federations.works(1)
    times_s = given_up_s(env, federations.waits(1))
    env.run(until=400.0)
    others_s = given_up_s(env, federations.waits(0))
    env.run(until=430.0)
    federations.works(0)
    env.run(until=500.0)
    federations.finishes(0)
    env.run()
    assert times_s == others_s == [500.0 + PATIENCE_S], "all waiting cells are given up together"
    assert federations.done == {0}


# -- seven cells, a device in the middle of each but the last ------------------------------------------


class Cells:
    """Seven cells with a device near every site except the last, where devices are switched at given times."""

    def __init__(self, visits_s: Sequence[Sequence[float]] = (), on: bool = True, **rules: Any) -> None:
        sites_m = World(self.scenario(None, []), Streams(1)).sites_m
        places_m = [(x + 20.0, y) for x, y in sites_m[:EMPTY]]
        places_m += [(sites_m[EMPTY][0] + 20.0, sites_m[EMPTY][1])] * len(visits_s)
        switches_s = [[0.0] if on else [] for _ in range(EMPTY)] + [list(times_s) for times_s in visits_s]
        scenario = self.scenario(
            {
                "count": len(places_m),
                "mobility": Placed(places_m=places_m),
                "churn": SwitchedAt(times_s=switches_s),
            },
            rules,
        )
        world, self.rows = World(scenario, Streams(1)), Rows()
        self.simulation: Simulation
        self.simulation, self.servers = compose(
            world, world.radio(simpy.Environment()), self.rows, {cell: Scripted() for cell in range(7)}
        )

    @staticmethod
    def scenario(devices: Any, rules: Any) -> Scenario:
        return Scenario.model_validate(
            {
                "name": "cells",
                "layout": {"rings": 1, "isd_m": ISD_M},
                "devices": devices or {"count": 1},
                "radio": {
                    "preset": "journal",
                    "bandwidth_hz": 10e6,
                    "propagation": {"shadowing": "spatial", "shadowing_std_db": 0.0},
                },
                "rounds": {"max_wait_s": PATIENCE_S, **dict(rules)},
                "sessions": {"name": "schedule", "count": 2, "rounds": 2},
                "workload": {"payload_bits": 1, "flops_per_sample": 1},
            }
        )

    def run(self) -> "Cells":
        env = self.simulation.env
        self.simulation.run(*(env.process(server.run()) for server in self.servers.values()))
        return self

    def ends_s(self, cell: int) -> list[float]:
        return [row.end_s for row in self.rows.of[Round] if row.cell == cell]

    def events(self, cell: int) -> list[str]:
        return [row.event for row in self.rows.of[Event] if row.cell == cell and row.session is not None]


@pytest.mark.parametrize("patience_s", [PATIENCE_S, 0.001])
def test_the_others_finish_and_the_empty_cell_is_given_up_after_them(patience_s: float) -> None:
    cells = Cells(max_wait_s=patience_s).run()
    last_s = max(row.end_s for row in cells.rows.of[Round])
    assert last_s > 0.1, "other cells must work longer than the patience"
    assert all(len(cells.ends_s(cell)) == 4 for cell in range(EMPTY))
    assert cells.simulation.env.now == pytest.approx(last_s + patience_s, abs=EXACT)
    assert cells.simulation.federations.stopped == [(EMPTY, 1, 0.0)]
    assert cells.events(EMPTY) == ["waiting_for_devices"]


def test_a_device_that_comes_in_time_sets_the_empty_cell_to_work() -> None:
    comes_s = PATIENCE_S - 1.0
    cells = Cells(visits_s=[[comes_s]]).run()
    assert cells.simulation.federations.stopped == []
    rounds = [row for row in cells.rows.of[Round] if row.cell == EMPTY]
    assert rounds[0].start_s == pytest.approx(comes_s, abs=EXACT)
    assert len(rounds) == 4
    assert cells.simulation.env.now == pytest.approx(rounds[-1].end_s, abs=EXACT)


def test_a_session_under_way_ends_where_nobody_comes_back() -> None:
    """If a device is on from 1 s and off in its first round, its session ends when the patience runs out."""
    leaves_s = 1.01
    cells = Cells(visits_s=[[1.0, leaves_s]]).run()
    assert cells.events(EMPTY) == [
        "waiting_for_devices",
        "session_start",
        "no_updates",
        "waiting_for_devices",
        "session_end",
    ]
    assert [row.detail for row in cells.rows.of[Event] if row.event == "session_end"][-1] == "no_device"
    assert len([row for row in cells.rows.of[Session] if row.cell == EMPTY]) == 1
    (stop,) = cells.simulation.federations.stopped
    assert stop == (EMPTY, 1, pytest.approx(leaves_s, abs=EXACT))
    (note,) = cells.simulation.federations.notes(still=False)
    assert note.startswith(f"cell {EMPTY} stopped: no device came within rounds.max_wait_s {PATIENCE_S:g} s")
    assert cells.simulation.env.now == pytest.approx(leaves_s + PATIENCE_S, abs=EXACT)


def test_a_run_without_any_result_fails() -> None:
    with refused_at("", "no device for 50 s", "no federation") as error:
        Cells(on=False).run()
    assert error.value.place == ("rounds", "max_wait_s")


def night(**sections: Any) -> SmallWorld:
    """Return a world of one device that is on until 100 s, and from 300 s on, after four times the patience."""
    return small_world(
        [50.0],
        switches_s=[[0.0, 100.0, 300.0, 400.0]],
        policy={"name": "schedule", "count": 1, "rounds": 1000},
        rules={"every_s": 30.0, "max_wait_s": PATIENCE_S},
        **sections,
    )


def test_a_run_with_a_duration_waits_through_an_empty_hour() -> None:
    """Rounds begin at 0 to 90 s and, when the device is back, at 300 to 390 s; the run ends at its duration."""
    small = night(duration_s=500.0).run()
    assert [row.start_s for row in small.rows.of[Round]] == pytest.approx(
        [0.0, 30.0, 60.0, 90.0, 300.0, 330.0, 360.0, 390.0], abs=EXACT
    )
    assert small.env.now == 500.0
    assert small.simulation.federations.stopped == []
    with refused_at("", "duration_s"):
        night().run()


def test_a_run_with_an_empty_cell_completes_and_says_so(tmp_path: Path) -> None:
    """As three static devices cannot fill seven cells, a run completes with a note on the empty cells."""
    scenario = Cells.scenario({"count": 3}, {})
    run = edgefl.simulate(scenario, out=tmp_path / "run")
    about = json.loads((run / "run.json").read_text())
    assert about["status"] == "completed"
    (note,) = (note for note in about["notes"] if "no device" in note)
    assert 4 <= note.partition(", and none")[0].count(",") + 1 <= 6
    assert len((run / "ledger.csv").read_text().splitlines()) == 1 + 3
