"""Compare the times of rounds with a derivation: on a grid, with pauses, server time, or a given run duration.

A device at 50 m has a link that never changes: each round takes the same LATENCY_S, derived in `test_server`.
"""

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

from edgefl.contract import Now
from edgefl.engine.records import Event, Round, Session
from edgefl.engine.sessions.daily import Daily
from edgefl.engine.sessions.interval import FixedInterval
from edgefl.engine.sessions.membership import Membership
from edgefl.engine.sessions.schedule import Schedule
from edgefl.run.api import simulate
from edgefl.scenario.scenario import Scenario, dump, load
from edgefl.testing import Rows, Scripted, SmallWorld, small_world
from tests.refusals import refused_at
from tests.tables import sections

EXACT = 1e-9


def ran(**options: Any) -> SmallWorld:
    return small_world([50.0], **options).run()


def starts_s(rows: Rows) -> list[float]:
    return [row.start_s for row in rows.of[Round]]


def session_events(rows: Rows) -> list[tuple[float, str, int | None, str]]:
    events = [event for event in rows.of[Event] if event.event.startswith("session")]
    return [(event.time_s, event.event, event.session, event.detail) for event in events]


@pytest.fixture(scope="module")
def latency_s() -> float:
    """Return the latency of a round that begins at a slot boundary."""
    return ran().rows.of[Round][0].latency_s


def test_rounds_begin_at_multiples(latency_s: float) -> None:
    world = ran(rules={"every_s": 0.5}, policy=Schedule(count=2, rounds=2))
    assert starts_s(world.rows) == [0.0, 0.5, 1.0, 1.5], "across sessions, to the last bit"
    assert [row.latency_s for row in world.rows.of[Round]] == pytest.approx([latency_s] * 4, abs=EXACT)
    # a session starts with its first round
    assert [row.start_s for row in world.rows.of[Session]] == [0.0, 1.0]
    assert session_events(world.rows)[1][0] == pytest.approx(0.5 + latency_s, abs=EXACT)
    assert world.env.now == pytest.approx(1.5 + latency_s, abs=EXACT), "no pause follows the last round"


def test_what_follows_a_probe_begins_at_once(latency_s: float) -> None:
    """Two probes open each session on the grid, and its first training round follows them at once."""
    world = ran(
        rules={"every_s": 0.5}, policy=Schedule(count=2, rounds=2), learner=Scripted(probes=2, share=1.0)
    )
    rounds = world.rows.of[Round]
    assert [row.phase for row in rounds] == ["probe", "probe", "train", "train"] * 2
    assert 3 * latency_s < 0.5, "all rounds fit into one interval of the grid"
    assert [row.start_s for row in rounds] == [
        0.0, rounds[0].end_s, rounds[1].end_s, 0.5, 1.0, rounds[4].end_s, rounds[5].end_s, 1.5,
    ]  # fmt: skip
    assert rounds[2].start_s == pytest.approx(2 * latency_s, abs=EXACT)
    assert rounds[6].start_s == pytest.approx(1.0 + 2 * latency_s, abs=EXACT)


def test_a_pause_follows_a_probe_too(latency_s: float) -> None:
    world = ran(
        rules={"every_s": 1.0, "pause_s": 0.2},
        policy=Schedule(count=1, rounds=2),
        learner=Scripted(probes=1, share=1.0),
    )
    probe, first, second = world.rows.of[Round]
    assert first.start_s == pytest.approx(probe.end_s + 0.2, abs=EXACT)
    assert second.start_s == 1.0


def test_the_servers_time_is_part_of_the_latency_and_costs_its_power(latency_s: float) -> None:
    world = ran(rules={"server_s": 0.25, "server_power_w": 40.0})
    (row,) = world.rows.of[Round]
    (plain,) = ran().rows.of[Round]
    assert row.latency_s == pytest.approx(latency_s + 0.25, abs=EXACT)
    assert row.latency_mean_s == plain.latency_mean_s, "mean latency excludes the server's time"
    assert row.energy_server_j == pytest.approx(plain.energy_server_j + 10.0)
    assert row.energy_j == plain.energy_j


def test_without_updates_there_is_nothing_to_aggregate() -> None:
    rules = {"server_s": 0.25, "server_power_w": 40.0}
    world = ran(rules=rules, crossings_s={0: [0.02, 0.5]}, policy=Schedule(count=1, rounds=2))
    first, second = world.rows.of[Round]
    assert (first.completed, first.end_s) == (0, pytest.approx(0.02, abs=EXACT))
    assert (second.completed, second.version) == (1, 1)
    assert second.energy_server_j > 10.0 > first.energy_server_j


def test_a_run_ends_at_its_duration_between_rounds() -> None:
    world = ran(rules={"every_s": 0.5}, policy=Schedule(rounds=2), duration_s=1.75)
    assert starts_s(world.rows) == [0.0, 0.5, 1.0, 1.5]
    events = session_events(world.rows)
    assert [event[1:] for event in events] == [
        ("session_start", 1, "start"),
        ("session_end", 1, "schedule"),
        ("session_start", 2, "schedule"),
        ("session_end", 2, "schedule"),
    ]
    assert world.env.now == 1.75, "movement and idle power continue until then"
    ended = ran(rules={"every_s": 0.5}, policy=Schedule(rounds=9), duration_s=1.0)
    assert starts_s(ended.rows) == [0.0, 0.5], "no round begins at the run's end"
    assert session_events(ended.rows)[-1] == (1.0, "session_end", 1, "duration")


def test_the_round_under_way_at_the_end_is_finished(latency_s: float) -> None:
    world = ran(rules={"every_s": 0.5}, policy=Schedule(rounds=9), duration_s=0.5 + latency_s / 2)
    assert starts_s(world.rows) == [0.0, 0.5]
    assert world.env.now == pytest.approx(0.5 + latency_s, abs=EXACT)
    assert session_events(world.rows)[-1] == (world.env.now, "session_end", 1, "duration")
    assert world.rows.of[Round][-1].completed == 1


def test_idle_energy_and_simulated_time_reach_to_the_duration(tmp_path: Path) -> None:
    scenario = Scenario.model_validate(
        sections("""
            name=idle; duration_s=50.0; devices={count: 3, idle_power_w: 2.0}; radio={preset: journal}
            sessions={name: interval, length_s: 20.0}; rounds={every_s: 10.0}
            workload={payload_bits: 1000000, flops_per_sample: 1e6}
        """)
    )
    out = simulate(scenario, tmp_path / "run")
    about = json.loads((out / "run.json").read_text())
    assert about["simulated_s"] == 50.0
    with (out / "rounds.csv").open() as file:
        assert [float(row["start_s"]) for row in csv.DictReader(file)] == [0.0, 10.0, 20.0, 30.0, 40.0]
    busy_s = dict.fromkeys("012", 0.0)
    with (out / "devices.csv").open() as file:
        for row in csv.DictReader(file):
            for stage in ("downlink", "compute", "uplink"):
                busy_s[row["device"]] += float(row[f"{stage}_end_s"]) - float(row[f"{stage}_start_s"])
    with (out / "ledger.csv").open() as file:
        for row in csv.DictReader(file):
            # times in tables have nine decimals
            assert float(row["idle_j"]) == pytest.approx(2.0 * (50.0 - busy_s[row["device"]]), abs=1e-6)
    assert dump(load(out / "scenario.yaml")) == dump(scenario), "omitted keys stay omitted"


def test_whichever_ends_first(latency_s: float) -> None:
    world = ran(policy=Schedule(count=1, rounds=2), duration_s=100.0)
    assert world.env.now == pytest.approx(world.rows.of[Round][-1].end_s), "sessions end before the duration"
    assert session_events(world.rows)[-1][3] == "schedule"


def test_a_run_may_end_while_a_cell_is_empty() -> None:
    """If the device leaves for good in round 2, the session ends with the run's duration, without an error."""
    for max_wait_s in (100.0, 1.0):  # max_wait_s limits only a run without a duration
        rules = {"every_s": 0.5, "max_wait_s": max_wait_s}
        world = ran(rules=rules, crossings_s={0: [0.52]}, policy=Schedule(rounds=9), duration_s=2.0)
        assert starts_s(world.rows) == [0.0, 0.5]
        assert session_events(world.rows)[-1] == (2.0, "session_end", 1, "duration")
    with refused_at("rounds.max_wait_s", "1 s"):
        ran(rules=rules, crossings_s={0: [0.52]}, policy=Schedule(count=1, rounds=9))


def test_who_comes_into_an_empty_cell_waits_for_the_grid() -> None:
    world = ran(rules={"every_s": 0.5}, crossings_s={0: [0.0, 0.73]}, policy=Schedule(count=1, rounds=2))
    assert starts_s(world.rows) == [1.0, 1.5]


def test_probes_of_a_session_that_the_duration_ends_leave_no_training() -> None:
    world = ran(
        learner=Scripted(probes=3), rules={"pause_s": 0.4}, policy=Schedule(rounds=2), duration_s=0.75
    )
    first, second = world.rows.of[Round]
    assert (first.phase, second.phase) == ("probe", "probe")
    assert second.start_s == pytest.approx(first.end_s + 0.4, abs=EXACT)
    assert session_events(world.rows)[-1] == (0.75, "session_end", 1, "duration")
    assert len(world.rows.of[Session]) == 1
    assert world.learner.calls[-1] == ("close",), "the learner has also ended the session"


def test_sessions_of_an_interval() -> None:
    world = ran(rules={"every_s": 0.5}, policy=FixedInterval(length_s=1.2), duration_s=4.0)
    assert session_events(world.rows) == [
        (0.0, "session_start", 1, "start"),
        (1.2, "session_end", 1, "interval"),
        (1.5, "session_start", 2, "interval"),  # at its first round
        (pytest.approx(2.7), "session_end", 2, "interval"),
        (3.0, "session_start", 3, "interval"),
        (4.0, "session_end", 3, "duration"),
    ]
    assert [row.session for row in world.rows.of[Round]] == [1, 1, 1, 2, 2, 2, 3, 3]
    # the learner's progress is the elapsed share of the session's 1.2 s
    told = [0.0, 0.5 / 1.2, 1.0 / 1.2]
    assert [now.progress for now in world.learner.moments] == pytest.approx([*told, *told, *told[:2]])
    assert world.learner.moments[3] == Now(1.5, 0.0)


def test_sessions_begin_at_hours_and_the_hours_round_is_theirs() -> None:
    """In a day of 24 s that begins at 7:00, 8:00 is at 1 s and 9:00 at 2 s; a round begins every half hour."""
    policy = Daily(at_hours=(8, 9), begin_hour=7, day_s=24.0)
    world = ran(rules={"every_s": 0.5}, policy=policy, duration_s=2.5)
    assert session_events(world.rows) == [
        (0.0, "session_start", 1, "start"),
        (1.0, "session_end", 1, "daily"),
        (1.0, "session_start", 2, "daily"),
        (2.0, "session_end", 2, "daily"),
        (2.0, "session_start", 3, "daily"),
        (2.5, "session_end", 3, "duration"),
    ]
    assert [(row.session, row.start_s) for row in world.rows.of[Round]] == [
        (1, 0.0),
        (1, 0.5),
        (2, 1.0),
        (2, 1.5),
        (3, 2.0),
    ]


def test_a_session_by_time_has_one_round_of_training_whatever_its_probes_take(latency_s: float) -> None:
    world = ran(learner=Scripted(probes=2), policy=FixedInterval(count=2, length_s=latency_s / 2))
    assert [(row.session, row.phase) for row in world.rows.of[Round]] == [
        *((1, phase) for phase in ("probe", "probe", "train")),
        *((2, phase) for phase in ("probe", "probe", "train")),
    ]
    shares = [now.progress for now in world.learner.moments]
    assert shares == [None, None, math.nextafter(1.0, 0.0)] * 2


def test_a_session_by_time_ends_in_an_empty_cell() -> None:
    world = ran(
        rules={"every_s": 0.5}, crossings_s={0: [0.52, 2.2]}, policy=FixedInterval(count=2, length_s=1.2)
    )
    assert session_events(world.rows) == [
        (0.0, "session_start", 1, "start"),
        (1.2, "session_end", 1, "interval"),
        (2.5, "session_start", 2, "interval"),
        (pytest.approx(3.7), "session_end", 2, "interval"),
    ]


def test_policies_by_rounds_tell_their_share_of_the_longest_session() -> None:
    world = ran(policy=Membership(count=1, min_rounds=1, max_rounds=3))
    assert [now.progress for now in world.learner.moments] == [0.0, 1 / 3, 2 / 3]


def test_a_policy_knows_the_populations_of_earlier_sessions() -> None:
    asked = []

    class Asking(Schedule):
        """A policy that records its calls."""

        def reason_to_end(self, state: Any) -> str | None:
            asked.append((state.time_s, state.start_s, state.seen))
            return super().reason_to_end(state)

    world = small_world(
        [50.0, 60.0], crossings_s={1: [0.6]}, rules={"every_s": 0.5}, policy=Asking(count=3, rounds=1)
    ).run()
    both, one = frozenset({0, 1}), frozenset({0})
    assert [seen for _, _, seen in asked] == [(), (both,), (both, both)]
    ends_s = [row.end_s for row in world.rows.of[Round]]
    assert [(now_s, began_s) for now_s, began_s, _ in asked] == list(
        zip(ends_s, [0.0, 0.5, 1.0], strict=True)
    )
    assert world.rows.of[Session][2].devices == "0"
    assert one not in asked[-1][2]


def test_a_policy_that_never_names_its_reason_is_told() -> None:
    class Mute(FixedInterval):
        """A policy that ends a session without a reason."""

        def reason_to_end(self, state: Any) -> str | None:
            return None

    with refused_at("", "Mute", "1.2 s"):
        ran(rules={"every_s": 0.5}, policy=Mute(count=1, length_s=1.2))


def test_the_clocks_of_classes_count_too() -> None:
    walkers = {"name": "attraction", "begin_hour": 6, "day_s": 86_400}
    with refused_at("", "devices.classes.slow.mobility", "begin_hour 6"):
        small_world(
            [50.0, 60.0],
            devices={"classes": {"quick": {"count": 1}, "slow": {"count": 1, "mobility": walkers}}},
            policy=Daily(at_hours=(8,), begin_hour=7),
            duration_s=10.0,
        )
