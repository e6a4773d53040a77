"""Test that runs that reuse another run's training have the same results, to the last bit."""

import json
from pathlib import Path
from typing import Any

import pytest

from edgefl.studies import StudyOptions, plan, run
from tests.end_to_end.directories import SMALL
from tests.tools.kill import differences

SESSIONS, ROUNDS = 4, 3
ALL = SESSIONS * ROUNDS


def both_ways(folder: Path, variants: str, base: str = SMALL) -> dict[str, Any]:
    """Return what each variant reuses from other runs, and check the results against a study without sharing."""
    (folder / "base.yaml").write_text(base)
    study = folder / "study.yaml"
    study.write_text(f"name: both\nscenario: base.yaml\nseeds: [3]\nvariants:\n{variants}")
    shared, alone = folder / "shared", folder / "alone"
    run(plan(study), shared, StudyOptions(jobs=1))
    run(plan(study), alone, StudyOptions(jobs=1, share=False))
    found = {}
    for path in alone.rglob("run.json"):
        there = shared / path.parent.relative_to(alone)
        assert differences(there, path.parent) == []
        assert "shared" not in json.loads(path.read_text())
        found[path.parent.parent.name] = json.loads((there / "run.json").read_text()).get("shared")
    assert list(shared.rglob("lent")) == [], "snapshots that no run needs are deleted"
    return found


def test_another_radio_trains_nothing(tmp_path: Path) -> None:
    variants = (
        "  narrow: {radio.bandwidth_hz: 20.0e+6}\n  wide: {}\n  slow: {devices.clock_hz: 1.0e+9}\n"
        "  fair: {radio.scheduler: proportional_fair, radio.sharing: dynamic}\n  umi: {radio.path_loss: umi}\n"
    )
    taken = both_ways(tmp_path, variants)
    whole = {"from": "narrow/seed-3", "rounds": ALL}
    assert taken == {"narrow": None, "wide": whole, "slow": whole, "fair": whole, "umi": whole}


def test_another_end_by_scores_trains_on(tmp_path: Path) -> None:
    """A run that stops at a different score reuses the common rounds, and trains the later rounds itself."""
    variants = (
        "  first: {stop: {accuracy: 0.46}}\n  same: {stop: {accuracy: 0.46}, radio.bandwidth_hz: 20.0e+6}\n"
        "  sooner: {stop: {accuracy: 0.3}}\n  later: {stop: {accuracy: 0.7}}\n"
    )
    taken = both_ways(tmp_path, variants, SMALL.replace("lr: 0.05", "lr: 0.005"))
    assert taken["first"] is None
    whole = taken["same"]["rounds"]
    assert 1 < taken["sooner"]["rounds"] < whole == taken["later"]["rounds"] < ALL


@pytest.mark.parametrize("pilots", [1, 2])
def test_warm_starts_share_the_pilot_sessions(pilots: int, tmp_path: Path) -> None:
    """Runs with probes reuse pilot sessions of a run without probes, and average the models of good sessions.

    With a history of one session, they reuse no other sessions.
    """
    similarity = "learning.warm_start: {name: similarity, pilot_model: good, history: 1}"
    variants = (
        f"  previous: {{}}\n  similarity: {{{similarity}}}\n"
        "  average: {learning.warm_start: {name: average, history: 1}}\n"
        f"  narrow: {{{similarity}, radio.bandwidth_hz: 20.0e+6}}\n"
    )
    base = SMALL + f"  pilot_sessions: {pilots}\n"
    taken = both_ways(tmp_path, variants, base)
    pilot = {"from": "previous/seed-3", "rounds": pilots * ROUNDS}
    later = SESSIONS - pilots
    narrow = {"from": "similarity/seed-3", "rounds": ALL + later * 1}
    assert taken["previous"] is None
    assert taken["similarity"] == taken["average"] == pilot
    assert taken["narrow"]["from"] == narrow["from"]
    assert taken["narrow"]["rounds"] > ALL


@pytest.mark.parametrize("pilots", [1, 2])
def test_of_one_saved_model_there_is_no_choice(pilots: int, tmp_path: Path) -> None:
    """By J (18) the weight mu of a single saved session is 1, so sessions P + 1 and P + 2 are equal to `previous`.

    The variants differ in probes only. With two pilot sessions, a run has no other sessions and reuses all models.
    """
    variants = (
        "  previous: {}\n  continuous: {learning.warm_start: continuous}\n"
        "  similarity: {learning.warm_start: {name: similarity, probe_rounds: 2}}\n"
        "  average: {learning.warm_start: average}\n"
        "  last: {learning.warm_start: {name: average, history: 1}}\n"
        "  narrow: {learning.warm_start: average, radio.bandwidth_hz: 20.0e+6}\n"
    )
    taken = both_ways(tmp_path, variants, SMALL + f"  pilot_sessions: {pilots}\n")
    two = {"from": "similarity/seed-3", "rounds": (pilots + 2) * ROUNDS}
    assert taken == {
        "similarity": None,
        "previous": two,
        "average": two,
        "last": two,
        "continuous": {"from": "similarity/seed-3", "rounds": pilots * ROUNDS},
        "narrow": {"from": "average/seed-3", "rounds": ALL},
    }


# features with state on devices or server that outlasts a round, or with random draws
LASTING = (
    "  algorithm: {name: scaffold}\n",
    "  algorithm: {name: moon, mu: 1.0}\n  evaluation: {validation: 0.2}\n",
    "    optimiser: adam\n  algorithm: {name: ditto}\n  evaluation: {tested_on: devices}\n",
    "  uplink_codec: {name: ef21}\n  downlink_codec: {name: qsgd}\n",
    "  after_pilot: restart\nrounds: {selector: {name: uniform, count: 2}, deadline_s: 0.00055}\n",
)


@pytest.mark.parametrize("learning", LASTING)
def test_probes_leave_nothing_behind(learning: str, tmp_path: Path) -> None:
    """Probes change no state of algorithms, codecs, tests or draws, so runs without probes reuse runs with them."""
    variants = "  similarity: {learning.warm_start: similarity}\n  average: {learning.warm_start: average}\n"
    taken = both_ways(tmp_path, variants, SMALL.replace("rounds: 3", "rounds: 2") + learning)
    assert taken["average"] == {"from": "similarity/seed-3", "rounds": 6}


def test_where_time_counts_only_pilot_sessions_are_shared(tmp_path: Path) -> None:
    """With a drift, a run without probes reuses only the pilot session of a run with probes."""
    learning = "  drift: {name: label_swap, clock: rounds, at: 5}\n"
    variants = "  similarity: {learning.warm_start: similarity}\n  average: {learning.warm_start: average}\n"
    taken = both_ways(tmp_path, variants, SMALL + learning)
    assert taken["average"] == {"from": "similarity/seed-3", "rounds": ROUNDS}


def test_at_the_first_other_question_a_run_trains_itself(tmp_path: Path) -> None:
    """If a deadline cuts uploads off in the middle of a session, a run does its own training from that round on."""
    variants = "  all: {}\n  late: {rounds.deadline_s: DEADLINE}\n  same: {rounds.deadline_s: 10.0}\n"
    (tmp_path / "first").mkdir()
    both_ways(tmp_path / "first", "  all: {}\n")
    rounds = (tmp_path / "first" / "shared" / "all" / "seed-3" / "rounds.csv").read_text().splitlines()
    column = rounds[0].split(",").index("latency_s")
    latencies_s = [float(row.split(",")[column]) for row in rounds[1:]]
    # a deadline between the latencies of most rounds and the longest latency after the first session
    late = max(range(ROUNDS, ALL), key=lambda n: latencies_s[n])
    deadline_s = 0.999 * latencies_s[late]
    expected = next(n for n in range(ALL) if latencies_s[n] > deadline_s)
    (tmp_path / "then").mkdir()
    taken = both_ways(tmp_path / "then", variants.replace("DEADLINE", f"{deadline_s:.9f}"))
    assert taken["same"]["rounds"] == ALL
    # the first round that the deadline ends is reused too: the same training is requested, but fewer updates arrive
    assert taken["late"]["rounds"] == expected + 1


def test_a_longer_run_goes_on_where_a_shorter_one_ended(tmp_path: Path) -> None:
    taken = both_ways(tmp_path, "  short: {}\n  long: {sessions.count: 6}\n")
    assert taken["long"] == {"from": "short/seed-3", "rounds": ALL}


def test_data_that_drift_by_the_clock_are_no_other_runs(tmp_path: Path) -> None:
    base = SMALL + "  drift: {name: label_swap, clock: seconds, at: 0.01}\n"
    taken = both_ways(tmp_path, "  wide: {}\n  narrow: {radio.bandwidth_hz: 20.0e+6}\n", base)
    assert taken["narrow"] == {"from": "wide/seed-3", "rounds": 1}, "both runs begin at time 0"
    by_rounds = base.replace("clock: seconds, at: 0.01", "clock: rounds, at: 5")
    (tmp_path / "rounds").mkdir()
    taken = both_ways(tmp_path / "rounds", "  wide: {}\n  narrow: {radio.bandwidth_hz: 20.0e+6}\n", by_rounds)
    assert taken["narrow"]["rounds"] == ALL


def test_other_settings_of_learning_share_nothing(tmp_path: Path) -> None:
    variants = (
        "  a: {}\n  b: {learning.local.lr: 0.06}\n"
        "  c: {devices.count: 9}\n  d: {learning.algorithm: scaffold}\n"
    )
    assert set(both_ways(tmp_path, variants).values()) == {None}


def test_several_cells_share_what_is_asked_in_the_same_order(tmp_path: Path) -> None:
    """If state vectors move with devices between cells, runs share training only while requests keep their order."""
    base = SMALL.replace("devices: {count: 8}", "devices: {count: 30, mobility: {name: random_waypoint}}")
    base = base.replace("count: 4, rounds: 3", "count: 2, rounds: 3")
    base += "  algorithm: scaffold\nlayout: {rings: 1}\nradio: {propagation: {shadowing: spatial}}\n"
    base += "cell: {radius_m: 60}\n"
    taken = both_ways(
        tmp_path, "  a: {}\n  b: {radio.scheduler: round_robin, radio.sharing: dynamic}\n", base
    )
    assert taken["b"] is None or taken["b"]["rounds"] < 7 * 2 * ROUNDS
