"""Test a cloud over cells: the times of its models, their cells, and the backhaul's time and energy."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import simpy

from edgefl.engine.federation.cloud import Cloud, CloudLink, CloudSettings, CloudStage, Exchange
from edgefl.engine.federation.federations import Federations
from edgefl.engine.records import Event
from edgefl.testing import Rows

BITS, ONE_WAY_S = 100, 1.5
LINE: dict[str, Any] = {"backhaul_bps": 100.0, "backhaul_latency_s": 0.5, "backhaul_j_per_bit": 0.25}
BOTH_WAYS = {"took_s": 2 * ONE_WAY_S, "bits": 2 * BITS, "energy_j": 2 * BITS * 0.25}


@dataclass
class Sends:
    """A stand-in for a learner's stage, whose model has a given number of samples; it records adopted models."""

    samples: int = 1
    adopted: list[tuple[tuple[int, ...], bool]] = field(default_factory=list)

    def submit(self) -> int:
        return self.samples

    def adopt(self, cells: Sequence[int], aggregated: bool) -> None:
        self.adopted.append((tuple(cells), aggregated))


class Cells:
    """Cells that each send a model at a given time, and then end."""

    def __init__(self, stages: Sequence[Sends], at_s: Sequence[float], **settings: Any) -> None:
        self.env, self.rows = simpy.Environment(), Rows()
        self.federations = Federations(self.env, 1000.0)
        self.cloud = Cloud(
            self.env, CloudSettings(every=1, **{**LINE, **settings}), self.federations, self.rows
        )
        self.stages, self.got = stages, dict[int, tuple[float, Exchange]]()
        for cell, time_s in enumerate(at_s):
            self.federations.works(cell)
            self.env.process(self._cell(cell, time_s))

    def run(self) -> dict[int, tuple[float, Exchange]]:
        self.env.run()
        return self.got

    def _cell(self, cell: int, at_s: float) -> Generator[simpy.Event, None, None]:
        yield self.env.timeout(at_s)
        stage = cast(CloudStage, self.stages[cell])
        got = yield from self.cloud.exchange(cell, stage, BITS, aggregated=cell == 0)
        self.got[cell] = self.env.now, got
        self.federations.finishes(cell)


def test_cells_wait_for_the_last_one() -> None:
    """Models sent at 1 and 3 s arrive at 2.5 and 4.5 s; both cells receive the cloud's model 1.5 s later."""
    cells = Cells([Sends(30), Sends(10)], [1.0, 3.0])
    got = cells.run()
    assert got == {0: (6.0, Exchange(1, 2.0, **BOTH_WAYS)), 1: (6.0, Exchange(1, 0.0, **BOTH_WAYS))}
    assert [stage.adopted for stage in cells.stages] == [[((0, 1), True)], [((0, 1), False)]]
    told = [(event.time_s, event.detail) for event in cells.rows.of[Event]]
    assert told == [(4.5, "version 1 of 0:0.75 1:0.25")]


def test_who_waits_for_nobody_has_the_last_models_of_the_others() -> None:
    cells = Cells([Sends(30), Sends(10)], [1.0, 3.0], waits_for="nobody")
    got = cells.run()
    assert got == {0: (4.0, Exchange(1, 0.0, **BOTH_WAYS)), 1: (6.0, Exchange(2, 0.0, **BOTH_WAYS))}
    assert [stage.adopted for stage in cells.stages] == [[((0,), True)], [((0, 1), False)]]


@pytest.mark.parametrize("leaves", ["waits", "finishes"])
def test_nobody_waits_for_a_cell_that_has_ended_or_is_without_a_device(leaves: str) -> None:
    cells = Cells([Sends()], [1.0])
    cells.federations.works(1)

    def other() -> Generator[simpy.Event, None, None]:
        yield cells.env.timeout(20.0)
        getattr(cells.federations, leaves)(1)

    cells.env.process(other())
    assert cells.run() == {0: (21.5, Exchange(1, 17.5, **BOTH_WAYS))}


def test_a_cell_without_updates_counts_nothing_and_has_the_others_model() -> None:
    cells = Cells([Sends(0), Sends(10)], [1.0, 1.0])
    got = cells.run()
    assert [stage.adopted for stage in cells.stages] == [[((1,), True)], [((1,), False)]]
    assert got[0][1].version == got[1][1].version == 1


def test_without_any_update_no_model_is_made_and_none_comes_back() -> None:
    cells = Cells([Sends(0), Sends(0)], [1.0, 1.0])
    nothing = Exchange(None, 0.0, ONE_WAY_S, BITS, BITS * 0.25)
    assert cells.run() == {0: (2.5, nothing), 1: (2.5, nothing)}
    assert not any(stage.adopted for stage in cells.stages)
    assert not cells.rows.of[Event]


def test_a_cell_exchanges_after_every_nth_round() -> None:
    env, rows = simpy.Environment(), Rows()
    federations, stage = Federations(env, 1.0), Sends()
    federations.works(4)
    link = CloudLink(Cloud(env, CloudSettings(every=3, **LINE), federations, rows), 4, BITS)
    versions: list[int | None] = []

    def rounds() -> Generator[simpy.Event, None, None]:
        for _ in range(7):
            yield env.timeout(1.0)
            got = yield from link.after_round(cast(Any, stage), True)
            versions.append(got and got.version)

    env.process(rounds())
    env.run()
    assert versions == [None, None, 1, None, None, 2, None]
    assert env.now == 7 * 1.0 + 2 * 2 * ONE_WAY_S
