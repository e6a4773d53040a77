"""Test that a round waits for devices that are connecting until their interruption ends, and no longer."""

from itertools import pairwise
from typing import Any

import pytest

from edgefl.engine.records import CONNECTING, OUT_OF_COVERAGE, DeviceRound, Event, Round
from edgefl.testing import Scripted, SmallWorld, small_world
from edgefl.testing.cell import within
from tests.unit.engine.moving import Going

NEAR_M, FAR_M = 30.0, 1900.0
T310_S, LATENCY_S, EXACT = 1.0, 0.05, 1e-9
ROUNDS = {"name": "schedule", "count": 1, "rounds": 3}
RADIO: dict[str, Any] = {
    "propagation": {"shadowing": "spatial", "line_of_sight": "never"},
    "link": {"rates": "cqi"},
    "monitoring": {"t310_s": T310_S, "t311_s": 0.0, "gain_reading": "interval"},
    "budget": {"noise_figure_db": 9.0},
}
WORK = (1, 0, 20_000, 20_000)


def weak(**options: Any) -> SmallWorld:
    """Run device 0 near the site, and device 1 out of range, whose link fails T310 after its first slot."""
    radio = within(RADIO, options.pop("radio", {}))
    given = {"policy": ROUNDS, "learner": Scripted(work=WORK), **options}
    return small_world([NEAR_M, FAR_M], radio=radio, cell={"radius_m": 2000.0}, **given).run()


@pytest.mark.parametrize(
    ("pause_s", "after_s", "connecting"), [(0.0, 0.05, 1), (0.02, 0.05, 1), (0.1, 0.1, 0)]
)
@pytest.mark.parametrize("deadline_s", [None, 6.0])
def test_who_has_lost_the_link_is_in_every_round(
    pause_s: float, after_s: float, connecting: int, deadline_s: float | None
) -> None:
    """A round lasts until T310 expires or its deadline passes; the next round begins LATENCY_S or a pause later."""
    # with T311 the device searches for a cell until the deadline
    patience = {"monitoring": {"t311_s": 0.0 if deadline_s is None else 1.0}}
    small = weak(rules={"pause_s": pause_s, "deadline_s": deadline_s}, radio=patience)
    lasts_s = T310_S if deadline_s is None else deadline_s
    rounds = small.rows.of[Round]
    assert [row.participants for row in rounds] == [2, 2, 2]
    assert [row.completed for row in rounds] == [1, 1, 1]
    assert small.rows.further[CONNECTING] == [0, connecting, connecting]
    starts_s = [number * (lasts_s + after_s) for number in range(3)]
    assert [row.start_s for row in rounds] == pytest.approx(starts_s, abs=EXACT)
    assert [row.latency_s for row in rounds] == pytest.approx([lasts_s] * 3, abs=EXACT)


def test_no_round_waits_for_who_has_no_coverage_or_cannot_fail() -> None:
    covered = weak(radio={"monitoring": {"coverage_margin_db": 3.0}})
    assert covered.rows.further[CONNECTING] == [0, 0, 0]
    assert covered.rows.further[OUT_OF_COVERAGE] == [1, 1, 1]
    starts_s, ends_s = ([getattr(row, key) for row in covered.rows.of[Round]] for key in ("start_s", "end_s"))
    assert starts_s[1:] == ends_s[:-1]
    never = weak(radio={"link": {"rates": "shannon"}, "monitoring": {"t310_s": None}})
    assert CONNECTING not in never.rows.further


def test_a_run_that_ends_meanwhile_ends_on_time() -> None:
    small = weak(duration_s=T310_S + 0.6 * LATENCY_S, policy={"name": "schedule", "count": 1, "rounds": 9})
    assert len(small.rows.of[Round]) == 1
    ended = [row for row in small.rows.of[Event] if row.event == "session_end"]
    assert [row.time_s for row in ended] == pytest.approx([T310_S + 0.6 * LATENCY_S], abs=EXACT)


def test_where_rounds_overlap_it_begins_later_and_nobody_waits() -> None:
    """Device 0 begins again as soon as its update is aggregated, and device 1 LATENCY_S after each failure."""
    small = weak(
        radio={"sharing": "dynamic"},
        learner=Scripted(work=(1, 0, 400_000, 400_000)),
        rules={"server": {"name": "fedasync"}},
        policy={"name": "schedule", "count": 1, "rounds": 200},
    )
    rows = small.rows.of[DeviceRound]
    near, far = ([row for row in rows if row.device == id_] for id_ in (0, 1))
    for before, after in pairwise(near):
        assert after.downlink_start_s == pytest.approx(before.uplink_end_s, abs=EXACT)
    failed_s = [row.time_s for row in small.rows.of[Event] if row.event == "radio_link_failure"]
    assert len(failed_s) >= 2
    assert far[1].downlink_start_s == pytest.approx(failed_s[0] + LATENCY_S, abs=EXACT)
    assert set(small.rows.further[CONNECTING]) == {0, 1}


@pytest.mark.parametrize("may_fail", [True, False])
def test_after_a_handover_it_is_the_same_where_links_can_fail(may_fail: bool) -> None:
    """A round of cell 0 that is due while device 1 connects waits for this device; other rounds begin at once.

    Device 1 is 240 m from device 0's site until 0.3 s, and then near it.
    """
    latency_s = 0.5
    small = small_world(
        [20.0, 240.0],
        devices={"mobility": Going(steps=[[(0.0, 20.0)], [(0.0, 240.0), (0.3, 20.0)]])},
        radio={
            "propagation": {"shadowing": "spatial"},
            "monitoring": {"gain_reading": "interval", "t310_s": 1.0 if may_fail else None},
        },
        layout={"sites": [[0.0, 0.0], [251.0, 0.0]], "radius_m": 400.0},
        handover={"time_to_trigger_s": 0.1, "handover_latency_s": latency_s},
        policy={"name": "schedule", "count": 1, "rounds": 60},
        learner=Scripted(work=(1, 0, 2_000_000, 2_000_000)),
    ).run()
    rounds = small.rows.of[Round]
    (left,) = (row for row in small.rows.of[Event] if row.event == "handover")
    first = next(place for place, row in enumerate(rounds) if row.start_s > left.time_s)
    back_s = left.time_s + latency_s
    gaps_s = [after.start_s - before.end_s for before, after in pairwise(rounds)]
    if not may_fail:
        assert rounds[first].start_s < back_s
        assert gaps_s == [0.0] * len(gaps_s)
        return
    assert rounds[first].start_s == pytest.approx(back_s, abs=EXACT)
    assert [row.participants for row in rounds] == [1] * first + [2] * (len(rounds) - first)
    assert small.rows.further[CONNECTING] == [int(place == first) for place in range(len(rounds))]
    assert [gap_s for place, gap_s in enumerate(gaps_s, 1) if place != first] == [0.0] * (len(gaps_s) - 1)
