"""Test a run's notes, which name features that were set but had no effect."""
# ruff: noqa: E501 - a row of a table is a line

import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis.page.formatting import TIME_UNITS, with_unit
from edgefl.engine.air.coverage import remedies
from edgefl.engine.air.efficiency import STEP, Efficiency
from edgefl.engine.parts import Outcome, Part, Span
from edgefl.engine.settings import RoundSettings
from edgefl.learning.settings import LearningSettings
from edgefl.rng import Streams
from edgefl.run import notes, preflight
from edgefl.run.api import simulate
from edgefl.run.counts import Extremes, _Slowest, explosions
from edgefl.run.coverage_notes import without_coverage
from edgefl.run.handover_notes import more_handovers_than_borders
from edgefl.run.notes import (
    NR_EFFICIENCY,
    Counts,
    _never_aggregated,
    _of_gains,
    _seconds,
    _warm_start_that_never_acted,
)
from edgefl.run.plan import prepare
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.testing.cell import within
from tests.tables import rows, sections

BASE: dict[str, Any] = sections("""
    name=notes; devices={count: 4}; sessions={name: schedule, count: 2, rounds: 2}
    workload={payload_bits: 1000, flops_per_sample: 1}; radio={preset: journal}
""")
REACH = "closer sites"
LEARNING = {"dataset": "digits", "model": "logistic", "local": {"steps": 1, "batch": 4}}


def notes_of(out: Path, duration_s: float | None = None, **changes: dict[str, Any]) -> list[str]:
    merged = BASE | {name: BASE.get(name, {}) | section for name, section in changes.items()}
    merged["duration_s"] = duration_s
    if "learning" in changes:
        del merged["workload"]
    return simulate(Scenario.model_validate(merged), out, device="cpu", threads=1).notes


def test_an_ordinary_run_has_nothing_to_say(tmp_path: Path) -> None:
    assert notes_of(tmp_path) == []


@pytest.mark.parametrize("beyond", ["drop", "cap"])
def test_updates_dropped_as_too_stale_are_counted(beyond: str, tmp_path: Path) -> None:
    """Ten devices work at once, and each update makes a model: most updates are more than one model old."""
    server = {"name": "fedbuff", "buffer": 1, "concurrency": 10, "max_staleness": 1, "beyond": beyond}
    changes = {"radio": {"preset": "nr"}, "sessions": {"rounds": 20}, "learning": LEARNING}
    said = notes_of(tmp_path, devices={"count": 10}, rounds={"server": server}, **changes)
    devices = pd.read_csv(tmp_path / "devices.csv")
    arrived = devices[devices.outcome == Outcome.COMPLETED]
    dropped = arrived.staleness.isna().sum()
    found = [note for note in said if "too stale" in note]
    if beyond == "cap":
        assert not found
    else:
        assert dropped > len(arrived) / 10
        assert f"{dropped} of {len(arrived)} updates that arrived" in found[0]


def test_a_class_of_which_no_update_arrived_is_named(tmp_path: Path) -> None:
    """Slow devices need a thousand times as long as fast ones, and the deadline lies between."""
    kinds = {"fast": {"count": 2, "clock_hz": 1e9}, "slow": {"count": 2, "clock_hz": 1e6}}
    work = {"payload_bits": 1000, "flops_per_sample": 1e8, "steps": 1, "batch": 1}
    devices, told = {"count": 4, "classes": kinds}, "none of their updates ever arrived"
    late = notes_of(tmp_path / "a", devices=devices, workload=work, rounds={"deadline_s": 0.5})
    (note,) = [note for note in late if told in note]
    assert "devices of class slow took part (2 of them)" in note
    assert told not in "".join(notes_of(tmp_path / "b", devices=devices, workload=work))


def test_empty_batteries_are_counted_once_each(tmp_path: Path) -> None:
    """Idle power of 1 W empties three batteries of 1 mJ early in the run; two of them are charged and empty again."""
    small = {"battery_j": 1e-3, "idle_power_w": 1.0}
    classes = {"solar": {"count": 2, "recharge_w": 0.9, **small}, "meter": {"count": 1, **small}}
    classes |= {"large": {"count": 1, "battery_j": 1e6}, "mains": {"count": 1}}
    out = tmp_path / "run"
    (note,) = notes_of(
        out, duration_s=1.0, devices={"count": None, "classes": classes}, rounds={"every_s": 0.4}
    )
    assert note == (
        "3 of 4 batteries ran empty (battery_empty in events.csv): a device without charge takes no part and uses no"
        " energy"
    )
    events = pd.read_csv(out / "events.csv")
    assert (events["event"] == "battery_empty").sum() > 3


def test_a_run_that_never_learnt(tmp_path: Path) -> None:
    before, note = notes_of(tmp_path, rounds={"min_updates": 2, "deadline_s": 1e-6})
    assert before.startswith("rounds.deadline_s 1e-06: almost no update can arrive in time")
    assert note == (
        "no update was ever aggregated in 4 rounds: overall, 0 of 16 participations were completed, and a round"
        " needs 2 updates (rounds.min_updates); a longer rounds.deadline_s lets more updates arrive"
    )


def test_fewer_updates_are_advised_only_if_some_arrived() -> None:
    rules = RoundSettings(min_updates=2)
    for completed, advised in ((0, False), (1, True)):
        counts: Any = SimpleNamespace(
            rounds=Counter([0]), models=Counter(), completed=completed, participants=3
        )
        (note,) = _never_aggregated(rules, counts, 0, REACH)
        assert note.endswith("; a lower rounds.min_updates requires fewer updates") == advised


@pytest.mark.parametrize("value", [0.6775, 0.9425, 0.0123456, 1.5, 6.4412, 86_400.0])
def test_a_note_rounds_a_time_as_the_last_line_does(value: float) -> None:
    """The last line of `run` says `678 ms`, and once a note said `0.677 s`."""
    said = _seconds(value)
    assert said == with_unit(value, TIME_UNITS[:2]).replace(".50 s", ".5 s")


def test_cells_that_never_aggregated_are_named() -> None:
    counts: Any = SimpleNamespace(
        rounds=Counter([0, 2, 7, 17]), models=Counter([0]), completed=0, participants=3
    )
    (note,) = _never_aggregated(RoundSettings(), counts, 0, REACH)
    assert note.startswith("no update was ever aggregated in cells 2, 7 and 17 in 3 rounds: ")
    counts.models.update([7, 17])
    (note,) = _never_aggregated(RoundSettings(), counts, 0, REACH)
    assert note.startswith("no update was ever aggregated in cell 2 in 1 round: ")


def test_notes_of_several_federations_say_whose(tmp_path: Path) -> None:
    """Notes name their federation: the deadline of b, before any update, does not affect a in the same cell."""
    told = notes_of(
        tmp_path,
        radio={"sharing": "dynamic", "scheduler": "equal_share"},
        federations={
            "a": {"share": 0.5, "learning": {**LEARNING, "warm_start": "similarity"}},
            "b": {"share": 0.5, "rounds": {"deadline_s": 1e-6}},
        },
    )
    assert [note.partition(":")[0] for note in told] == ["federation b", "federation b", "federation a"]
    assert "almost no update can arrive in time" in told[0]
    assert "no update was ever aggregated in 4 rounds: overall, 0 of 8 participations" in told[1]
    assert "no session began with saved models; the first that can do so is session 3" in told[2]


def test_a_run_in_which_nobody_ever_was(tmp_path: Path) -> None:
    """A run of ten seconds whose devices arrive after a year ends, and notes that no round took place."""
    trace = {"0": {"active": [31_536_000.0], "inactive": [31_536_001.0], "finish_time": 4e7}}
    (tmp_path / "later.json").write_text(json.dumps(trace))
    churn = {"name": "availability_trace", "path": str(tmp_path / "later.json")}
    devices = {"count": 1, "churn": churn}
    notes = notes_of(tmp_path / "run", duration_s=10.0, devices=devices, rounds={"max_wait_s": 1.0})
    assert "no round ever took place: no device was in a cell with a server" in notes


def plan(days: str, hour: str) -> dict[str, Any]:
    trip = {"leave": hour, "to": "work", "days": days}
    back = {"leave": 23, "to": "home", "days": days}
    return {"name": "itinerary", "addresses": {"work": [50.0, 0.0]}, "plan": [trip, back]}


WALK, CYCLE = {"name": "random_waypoint", "area_factor": 1.5}, {"name": "duty_cycle"}
# one note covers both classes, although their weekly plans differ
WEEK = {"a": {"count": 2, "mobility": plan("weekdays", "8:00")}, "b": {"mobility": plan("weekend", "9:00")}}


@pytest.mark.parametrize(
    ("devices", "kind", "noun"),
    [
        ({"churn": {**CYCLE, "on_s": 1e6, "off_s": 1e3}}, "churn duty_cycle", "cycle of 1,001,000 s"),
        ({"churn": {**CYCLE, "on_s": 2e-3, "off_s": 1e-3}}, "", ""),  # several cycles
        (
            {"mobility": {**WALK, "name": "random_direction"}},
            "mobility random_direction",
            "entered or left a cell",
        ),
        ({"mobility": WALK}, "mobility random_waypoint", "use static"),
        ({"mobility": {**WALK, "area_factor": 1.0}}, "", ""),  # no device can leave its cell
    ],
)
def test_what_never_switched_or_moved(devices: dict[str, Any], kind: str, noun: str, tmp_path: Path) -> None:
    found = notes_of(tmp_path, devices=devices, sessions={"rounds": 20})
    if not kind:
        assert found == []
        return
    assert_matches(found, rf"devices.{kind}: no device .*(; |, and )the run lasts [\d.]+ ms")
    assert noun in found[0]


def test_a_run_that_stop_ends_is_not_told_to_add_rounds(tmp_path: Path) -> None:
    ends = {"learning": LEARNING, "stop": {"accuracy": 0.01}}
    (note,) = [one for one in notes_of(tmp_path, devices={"mobility": WALK}, **ends) if "mobility" in one]
    assert "ended by `stop`" in note
    assert note.endswith("spread the rounds (rounds.every_s) or end the run later (stop)")


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ({"classes": WEEK}, "2 of 4 devices do not move before 28,800 s"),
        ({"mobility": {**WALK, "pause_s": 1e9}}, "no device moves before 2.25497e+08 s"),
        ({"mobility": {**WALK, "name": "attraction"}}, "no device moves before "),
    ],
)
def test_devices_that_never_moved_are_noted_once(devices: dict[str, Any], said: str, tmp_path: Path) -> None:
    """The note names the remedy; more sessions or rounds are none, since they may end before the first move too."""
    found = [
        note for note in notes_of(tmp_path, devices=devices, sessions={"rounds": 20}) if "mobility" in note
    ]
    assert said in found[0]
    assert not [note for note in found if "would cover" in note or "add rounds" in note]


def test_handovers_of_which_most_are_the_radio_going_to_and_fro(tmp_path: Path) -> None:
    """Cars in small cells with a rough line-of-sight field and no filter have mostly ping-pong handovers."""
    world = sections("""
        duration_s=30; layout={rings: 1, isd_m: 300, federations: centre}; rounds.every_s=10
        devices={count: 30, indoor_share: 0, mobility: {name: random_direction, speed_min_m_s: 12, speed_max_m_s: 14}}
        radio.propagation={shadowing: spatial, line_of_sight: probabilistic}; handover.l3_filter_k=0
        sessions={count: 1, rounds: 3}
    """)
    (note,) = (one for one in notes_of(tmp_path / "rough", **world) if one.startswith("handovers"))
    handovers, each, borders = re.match(
        r"handovers: (\d+), ([\d.]+) for each of (\d+) crossings", note
    ).groups()
    events = pd.read_csv(tmp_path / "rough" / "events.csv")
    assert int(handovers) == (events["event"] == "handover").sum()
    assert float(each) == pytest.approx(int(handovers) / int(borders), abs=0.05)


def world_of(changes: dict[str, Any]) -> World:
    return World(Scenario.model_validate(BASE | changes), Streams(0))


@pytest.mark.parametrize(
    ("handovers", "crossed", "says"),
    [
        (30, 10, None),
        (31, 10, "31, 3.1 for each of 10 crossings"),
        (29, 1, None),
        (1200, 0, "1,200, although there were no crossings of borders"),
    ],
)
def test_handovers_are_told_from_three_a_border_on(handovers: int, crossed: int, says: str | None) -> None:
    world = world_of({"layout": {"rings": 1}, "radio": {}})
    found = list(more_handovers_than_borders(world, handovers, crossed))
    assert [bool(found), *(says in note for note in found if says)] == ([True, True] if says else [False])


# keys | advice
REMEDIES = """
layout={rings: 1, isd_m: 400} | radio.path_loss: uma (umi is meant for sites 200 m apart), layout.sectors: 3, handover.l3_filter_k: 8 or OFFSET 3
SECTORS; SPREAD={line_of_sight: probabilistic} | radio.propagation.line_of_sight: soft, handover.l3_filter_k: 8 or OFFSET 3
layout={sites: [[0, 0], [300, 0]], sectors: 3}; radio.path_loss=uma; SPREAD={line_of_sight: always, site_correlation: 0.2, los_site_correlation: 0}; handover={time_to_trigger_s: 0.32, l3_filter_k: 11, a3_offset_db: 2} | radio.propagation.site_correlation: 0.5, handover.time_to_trigger_s: 0.64 or OFFSET 2
SECTORS; SPREAD={shadowing_std_db: 0, los_site_correlation: 0.1}; handover.l3_filter_k=8 | radio.propagation.los_site_correlation: 0.5 or OFFSET 3
SECTORS; handover={l3_filter_k: 8, a3_offset_db: 6} | OFFSET 6
"""
SHORT = {
    "SECTORS": "layout={rings: 1, sectors: 3}",
    "OFFSET": "handover.a3_offset_db above",
    "SPREAD": "radio.propagation",
}


@pytest.mark.parametrize(("keys", "fewer_by"), rows(REMEDIES, SHORT))
def test_the_remedies_are_those_that_the_scenario_lacks(keys: str, fewer_by: str) -> None:
    (note,) = more_handovers_than_borders(world_of({"radio": {}} | sections(keys)), 100, 10)
    assert note.endswith(f"(drive tests of uccmisl/5Gdataset). For fewer handovers, set {fewer_by}")


@pytest.mark.parametrize(
    ("layout", "far"),
    [
        ({"sectors": 3}, False),
        ({"rings": 1, "isd_m": 200}, False),
        ({"rings": 1, "isd_m": 201}, True),
        ({"sites": [[0, 0], [190, 0], [0, 190]]}, False),
        ({"sites": [[0, 0], [190, 0], [0, 230]]}, True),  # nearest sites are 203 m apart on average
    ],
)
def test_sites_too_far_apart_for_umi(layout: dict[str, Any], far: bool) -> None:
    (note,) = more_handovers_than_borders(world_of({"radio": {}, "layout": layout}), 100, 10)
    assert ("radio.path_loss: uma" in note) == far


@pytest.mark.parametrize("rounds", [{"every_s": 0.1}, {"pause_s": 0.1}])
def test_other_users_of_whom_less_is_known_than_the_run_is_long(
    tmp_path: Path, rounds: dict[str, float]
) -> None:
    """A trace of other users' load that covers only 20 ms causes a single note in a run of some hundred ms.

    Rounds every 0.1 s make the run's length known before it begins.
    """
    table = tmp_path / "load.csv"
    table.write_text("time_s,uplink_load\n0,0.1\n0.01,0.2\n")
    background = {"name": "trace", "path": str(table), "file_bits": 1000}
    budget = {"power_over_share": "per_resource_block"}
    radio = {"sharing": "dynamic", "budget": budget, "background": background}
    (note,) = notes_of(tmp_path / "run", radio=radio, rounds=rounds)
    assert (
        note
        == (  # a number of seconds would be wrong before the run, since rounds may last longer than planned
            "radio.background: its trace ends at 0.02 s, before the run ends: from then on the last load stays in force;"
            " add rows to the trace"
        )
    )
    before = prepare(Scenario.model_validate(BASE | {"radio": BASE["radio"] | radio, "rounds": rounds})).notes
    assert before == ([note] if "every_s" in rounds else [])


def test_a_membership_rule_that_never_ended_a_session(tmp_path: Path) -> None:
    policy = {"name": "membership", "count": 3, "min_rounds": 1, "max_rounds": 2}
    assert simulate(Scenario.model_validate(BASE | {"sessions": policy}), tmp_path / "run").notes == [
        "sessions membership: the policy ended no session before max_rounds (2; sessions: 3); lower the policy's"
        " threshold, or raise max_rounds"
    ]


@pytest.mark.parametrize(
    ("warm_start", "pilots", "sessions", "said"),
    [
        ("average", 2, 3, "no session began with saved models; the first that can do so is session 4"),
        ("average", 1, 2, "no session began with saved models; the first that can do so is session 3"),
        ("average", 100, 3, "has no effect: sessions 1 to 100 are pilot sessions"),
        ("average", 1, 3, None),
        ("previous", 1, 1, None),
    ],
)
def test_a_warm_start_without_effect(
    warm_start: str, pilots: int, sessions: int, said: str | None, tmp_path: Path
) -> None:
    learning = LEARNING | {"warm_start": warm_start, "pilot_sessions": pilots}
    found = notes_of(tmp_path, learning=learning, sessions={"count": sessions, "rounds": 1})
    assert [said in note for note in found] == ([True] if said else [])


def counted(sessions: int, models: int) -> Any:
    return SimpleNamespace(warm=0, sessions=sessions, models={0: models})


def test_a_warm_start_is_told_to_add_sessions_only_if_that_helps() -> None:
    """More sessions do not help if no update was ever aggregated, or if the run ended before its last session."""
    learning = LearningSettings.model_validate(LEARNING | {"warm_start": "similarity"})
    assert list(_warm_start_that_never_acted(learning, 4, counted(4, 0))) == []
    (note,) = _warm_start_that_never_acted(learning, 4, counted(1, 3))
    assert note.endswith("is session 3 (learning.pilot_sessions: 1), but the run ended in session 1")
    (note,) = _warm_start_that_never_acted(learning, 4, counted(4, 3))
    assert note == (
        "learning.warm_start similarity: no session began with saved models; no two sessions after the pilot sessions"
        " had an update of a probe round"
    )


# In free space without shadowing, a transfer has some 20 bit/s/Hz and takes a second, so padding is negligible.
LONG = {"payload_bits": 20 * 10**8 // 4, "flops_per_sample": 1}


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_a_radio_faster_than_nr(sharing: str, tmp_path: Path) -> None:
    (note,) = notes_of(tmp_path / "free", workload=LONG, radio={"sharing": sharing})
    assert "one layer of NR carries at most 7.4" in note
    assert "radio.link.max_efficiency caps it" in note
    capped = {"sharing": sharing, "link": {"max_efficiency": 7.4}}
    assert notes_of(tmp_path / "capped", workload=LONG, radio=capped) == []


def test_nr_s_limit_is_that_of_its_table() -> None:
    assert pytest.approx(7.4063, abs=5e-5) == NR_EFFICIENCY


def parts(*transfers: tuple[float, float, int]) -> list[Part]:
    """Return participations, each with a downlink (start, end, bits) and an empty uplink."""
    found = []
    for start_s, end_s, bits in transfers:
        downlink = Span(start_s, end_s, 0.0, bits, airtime_s=(end_s - start_s) / 2)
        found.append(Part(len(found), Outcome.COMPLETED, 1, downlink, uplink=Span(end_s, end_s, 0.0, 0)))
    return found


def test_a_transfers_efficiency_is_its_bits_over_share_band_and_airtime() -> None:
    shares = {"downlink": np.array([0.5, 0.25, 0.25]), "uplink": np.ones(3)}
    efficiency = Efficiency(1000.0, {"downlink": 0.5, "uplink": 0.5}, dynamic=False)
    # share of the band x weight of the direction x time: 500 x 0.5 x 2, 250 x 0.5 x 4, 250 x 0.5 x 1 Hz s
    efficiency.count(parts((0.0, 2.0, 500), (0.0, 4.0, 1500), (1.0, 2.0, 875)), shares)
    assert efficiency.median("downlink") == pytest.approx(3.0, abs=STEP)
    assert np.isnan(efficiency.median("uplink"))


def test_a_shared_bands_efficiency_is_all_bits_over_the_time_in_use() -> None:
    shares = {"downlink": np.ones(2), "uplink": np.ones(2)}
    efficiency = Efficiency(1000.0, {"downlink": 0.5, "uplink": 0.5}, dynamic=True)
    # the band is in use from 0 to 3 s and from 5 to 6 s; half of this time serves the downlink
    efficiency.count(parts((0.0, 3.0, 4000), (5.0, 6.0, 4000)), shares)
    assert efficiency.median("downlink") == pytest.approx(4.0, abs=STEP)


def assert_matches(found: list[str], pattern: str) -> None:
    assert len(found) == 1, found
    assert re.match(pattern, found[0]), found[0]


def test_devices_out_of_coverage_and_rounds_that_waited_for_timers(tmp_path: Path) -> None:
    """Rounds wait for devices far outside a weak cell's range only if `coverage_margin_db` is off."""
    weak = sections("""
        propagation={shadowing: spatial, line_of_sight: never}; link.rates=cqi; monitoring.t310_s=1
        budget={server_power_dbm: 20, power_over_share: per_resource_block}
    """)
    cell = {"radius_m": 400.0}
    waiting = within(weak, {"monitoring": {"coverage_margin_db": 0.0}})
    (note,) = notes_of(tmp_path / "a", radio=waiting, cell=cell, devices={"count": 20})
    assert re.fullmatch(
        r"out of coverage: on average [\d.]+ devices of a cell when a round began, at most \d+; no round"
        r" selects or waits for them; closer sites .*",
        note,
    )
    notes = notes_of(tmp_path / "b", radio=weak, cell=cell, devices={"count": 20})
    assert_matches(
        notes, r"[1-4] of 4 rounds \([\d.]+ %\) waited for a device whose link had failed, until .*"
    )


def test_coverage_is_noted_from_a_tenth_of_the_devices_or_a_lost_round_on() -> None:
    few, more = (Counts(uncovered=[each] * 10, rounds=Counter({0: 10})) for each in (3, 4))
    assert list(without_coverage(few, 40, REACH)) == []
    assert_matches(list(without_coverage(more, 40, REACH)), "out of coverage: on average 4 devices")
    assert_matches(list(without_coverage(few, 30, REACH)), "out of coverage: on average 3 devices")
    lost = Counts(uncovered=[1], rounds=Counter({0: 4}), timers=1)
    (note,) = without_coverage(lost, 40, REACH)
    assert note.startswith("out of coverage: on average 1 device of a cell")
    assert "and 1 of 4 rounds (25.0 %) ended with a timeout" in note
    once = Counts(uncovered=[1, 0, 2, 0], rounds=Counter({0: 4}), timers=1)
    (note,) = without_coverage(once, 40, REACH)
    assert note.startswith(
        "out of coverage: a device of a cell when 2 of 4 rounds began, at most 2; no round"
    )
    in_two = Counts(uncovered=[2] * 4, rounds=Counter({0: 2, 1: 2}))
    assert_matches(list(without_coverage(in_two, 40, REACH)), "out of coverage: on average 2 devices")
    many = Counts(uncovered=[19_978, 19_979], rounds=Counter({0: 2}))
    assert_matches(list(without_coverage(many, 20_000, REACH)), "out of coverage: on average 19,978 devices")


def test_what_befalls_less_than_a_tenth_is_not_noted() -> None:
    few = Counts(participants=1000)
    near = [SimpleNamespace(clamped=clamped, beyond=0) for clamped in (100, 101)]
    assert list(_of_gains(near[0], few)) == []
    assert_matches(list(_of_gains(near[1], few)), "101 times a device was closer")


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"devices": {"power": "journal"}}, "counts only radiated power: 0.2 W while sending"),
        ({"radio": {"tdd": None}}, "100 MHz carry both directions at once"),
    ],
)
def test_simplifications_are_noted_with_preset_nr(keys: dict[str, Any], says: str, tmp_path: Path) -> None:
    for preset, said in (("nr", True), ("journal", False)):
        own = keys | {"radio": {"preset": preset, **keys.get("radio", {})}}
        assert any(says in note for note in notes_of(tmp_path / preset, **own)) == said


TRAINED = {**{key: of for key, of in BASE.items() if key != "workload"}, "learning": LEARNING}
EXPLODED = Extremes(
    latencies_s=[1.0],
    slowest=_Slowest(1e4, 0, "uplink", "round 1"),
    huge=("round 1", 1e9),
    not_finite={"loss": "round 1"},
)
STUCK = Counts(participants=9, completed=1, rounds=Counter({0: 3}), models={0: 0})
AWAY = Counts(participants=9, rounds=Counter({0: 3}), uncovered=[9, 9], timers=1)
FAST = SimpleNamespace(median=lambda direction: 99.0)


def advice_of(scenario: Scenario) -> str:
    """Return all notes with advice for a run that has every problem."""
    kinds = scenario.devices.kinds()
    found: list[str] = [
        *more_handovers_than_borders(World(scenario, Streams(1)), 100, 10),
        *notes._never_aggregated(scenario.rounds, STUCK, 0, REACH),
        *notes._churn_that_never_acted(kinds, STUCK, 1.0, stopped=False),
        *notes._movement_that_never_acted(kinds, STUCK, 1.0, stopped=True),
        *without_coverage(AWAY, 1, remedies(scenario.layout, World(scenario, Streams(1)).fleet)),
        *explosions(EXPLODED, list(scenario.by_federation.values()), scenario.radio),
        *notes._radiated_power_only(scenario.radio, kinds),
        *notes._two_bands_at_once(scenario.radio),
        *notes._beyond_nr(FAST, scenario.radio.link),
        *(preflight._of_personal_models(scenario.learning) if scenario.learning else ()),
        *(preflight._of_costs(scenario.learning) if scenario.learning else ()),
    ]
    return "\n".join(found)


# before | advice | followed
ADVICE = """
layout.rings=1 | layout.sectors: 3 | layout.sectors=3
layout={rings: 1, isd_m: 400} | radio.path_loss: uma | radio.path_loss=uma
layout.rings=1; handover.time_to_trigger_s=0.1 | time_to_trigger_s: 0.64 | handover.time_to_trigger_s=0.64
layout.rings=1; handover.l3_filter_k=4 | l3_filter_k: 8 | handover.l3_filter_k=8
layout.rings=1 | a3_offset_db above 3 | handover.a3_offset_db=15
layout.rings=1; SPREAD.line_of_sight=probabilistic | line_of_sight: soft | SPREAD.line_of_sight=soft
layout.rings=1; SPREAD.site_correlation=0.1 | .site_correlation: 0.5 | SPREAD.site_correlation=0.5
layout.rings=1; SPREAD.los_site_correlation=0.1 | .los_site_correlation: 0.5 | SPREAD.los_site_correlation=0.5
layout.rings=0 | closer sites (cell.radius_m) | layout.rings=1
layout.rings=1 | closer sites (layout.isd_m) | layout.sites=[[0, 0]]; layout.rings=0
rounds.deadline_s=1 | a longer rounds.deadline_s | rounds.deadline_s=null
rounds.min_updates=2 | a lower rounds.min_updates | rounds.min_updates=1
devices.churn={name: duty_cycle, on_s: 0.1, off_s: 0.1} | use always_on | devices.churn=always_on
devices.mobility={name: random_waypoint} | use static | devices.mobility=static
devices.indoor_share=0.5 | a lower indoor_share | devices.indoor_share=0
learning.local.clip_norm=null | , or learning.local.clip_norm, | learning.local.clip_norm=1
name=notes | ; rounds.deadline_s ends rounds | rounds.deadline_s=1
radio.preset=journal | radio.preset: nr | radio.preset=nr
radio.monitoring.t310_s=null; radio.link.rates=shannon | radio.monitoring.t310_s abandons | radio.monitoring.t310_s=1
devices.power=journal | the power models tr38840 and phone_5g | devices.power=tr38840
radio.tdd=null | leave radio.tdd out | radio.tdd={pattern: DDDSU}
name=notes | ); radio.link.max_efficiency caps | radio.link.max_efficiency=7.4
learning.algorithm=apfl | tested_on: devices | learning.evaluation.tested_on=devices
learning={algorithm: scaffold, cost: {payload: model}} | learning.cost.payload: exchanged | learning.cost.payload=exchanged
learning={algorithm: moon, cost: {booked: processed}} | learning.cost.booked: all | learning.cost.booked=all
"""


@pytest.mark.parametrize(("before", "advice", "followed"), rows(ADVICE, SHORT))
def test_advice_is_not_given_where_it_is_followed(before: str, advice: str, followed: str) -> None:
    lacking = within(within(TRAINED, {"radio": {"preset": "nr"}}), sections(before))
    assert advice in advice_of(Scenario.model_validate(lacking))
    assert advice not in advice_of(Scenario.model_validate(within(lacking, sections(followed))))
