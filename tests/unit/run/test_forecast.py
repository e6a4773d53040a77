"""Compare the forecast of a run with values by hand from a probe's figures, and test probes without training."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from edgefl.commands.preview_data import make_preview
from edgefl.errors import EdgeflError
from edgefl.rng import Streams
from edgefl.run.api import simulate
from edgefl.run.forecast import Forecast, Range
from edgefl.run.plan import prepare
from edgefl.run.probe import Probe, _accesses, probe
from edgefl.run.progress import size
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.scenario import Scenario, dump
from edgefl.scenario.world import World
from edgefl.studies import plan, validation
from edgefl.studies.dry_run import dry_run
from edgefl.studies.validation import look
from tests.tables import sections
from tests.tools.journal import with_journal

PROBE = Probe(
    rounds=2, latency_s=4.0, start_wall_s=10.0, round_wall_s=0.5, memory_bytes=3e8, round_bytes=1000.0
)
SEVEN = sections("layout={rings: 1, isd_m: 100}; radio.propagation.shadowing=spatial; devices.count=30")
SMALL = sections("name=a; devices.count=2; workload={payload_bits: 1000, flops_per_sample: 1}")


def expected(scenario: Scenario, probe: Probe = PROBE) -> Forecast:
    return Forecast(scenario, probe=probe)


def scenario(**changes: object) -> Scenario:
    return Scenario.model_validate(with_journal({**SMALL, **changes}))


def test_rounds_back_to_back_with_pauses() -> None:
    by_rounds = scenario(sessions={"name": "schedule", "count": 3, "rounds": 10}, rounds={"pause_s": 1.0})
    found = expected(by_rounds)
    assert found.rounds == (30, 30)
    assert found.simulated_s == (149.0, 149.0)  # no pause follows the last round
    assert found.wall_s == (25.0, 25.0)
    assert found.disk_bytes == (30_000.0, 30_000.0)
    assert "  rounds          30" in found.costs()
    assert not found.ends_by_the_clock
    most = by_rounds.with_(duration_s=100.0)
    assert expected(most).simulated_s == (100.0, 100.0)
    assert expected(most).ends_by_the_clock


def test_devices_connect_in_the_first_round_only() -> None:
    """Only the time to connect, at most access.setup_s, is in a probe's first round but not in later rounds."""
    access = {"preset": "nr", "access": {"setup_s": 0.36}}
    shape = scenario(radio=access, sessions={"name": "schedule", "count": 1, "rounds": 32})
    seen = probe(prepare(shape))
    assert 0.0 < seen.connecting_s <= 0.36
    assert seen.later_s == pytest.approx(seen.latency_s - seen.connecting_s / 2)
    assert expected(shape, seen).simulated_s.least == pytest.approx(32 * seen.later_s + seen.connecting_s)
    without = {**access, "access": {"setup_s": 0.0}}
    assert probe(prepare(scenario(radio=without, sessions=shape.sessions))).connecting_s == 0.0


@pytest.mark.parametrize("server", ["fedasync", "fedbuff", "semi_synchronous"])
@pytest.mark.parametrize("sessions", [1, 4])
def test_the_length_of_runs_with_overlapping_rounds(server: str, sessions: int, tmp_path: Path) -> None:
    """A model needs the updates of some devices, in no fixed order: the estimate is within a third of the length."""
    of_server = {"fedasync": {"concurrency": 8}, "fedbuff": {"buffer": 3, "concurrency": 8}}
    rules = {"server": {"name": server, **of_server.get(server, {"every_s": 0.05})}}
    many = {"name": "schedule", "count": sessions, "rounds": 60 // sessions}
    work = {"payload_bits": 20_000, "flops_per_sample": 1e6}
    changes = {"devices": {"count": 12}, "sessions": many, "rounds": rules, "workload": work}
    shape = scenario(**changes, radio={"preset": "nr", "bandwidth_hz": 5e6})
    took_s = simulate(shape, tmp_path).info["simulated_s"]
    assert expected(shape, probe(prepare(shape))).simulated_s.least == pytest.approx(took_s, rel=1 / 3)


@pytest.mark.parametrize(("every_s", "connects"), [(5, False), (20, True)])
@pytest.mark.parametrize("record", [{}, {"devices": "none"}])
def test_devices_connect_again_after_a_release(
    every_s: float, connects: bool, record: dict[str, str]
) -> None:
    """Connections are released 10 s after a transfer: with a round every 20 s, each round includes connecting."""
    access = {"preset": "nr", "access": {"setup_s": 0.36}}
    timed = {"sessions": {"name": "interval", "length_s": 60}, "rounds": {"every_s": every_s}}
    seen = probe(prepare(scenario(radio=access, duration_s=240, record=record, **timed)))
    assert (seen.connecting_s == 0.0) == connects


def test_slower_links_in_later_rounds_do_not_hide_connecting() -> None:
    """A device's access time tells whether it connects, whatever its transfers take."""
    row = {"phase": "train", "cell": "0", "session": "0"}
    first, later = (
        {**row, "round": number, "access_s": waits} for number, waits in (("1", "0.5"), ("2", "0.1"))
    )
    other = {**first, "cell": "1", "round": "2"}  # the first round of another cell
    assert _accesses([[first, first, later, other], [later]]) == ([0.5, 0.5, 0.5, 0.1], [0.1])


def test_each_federation_has_rounds_of_its_own() -> None:
    """A run ends with its longest federation: a has 3 x 10 rounds and pauses of 1 s, b has 2 x 5 rounds every 8 s."""
    both = sections("""
        radio={sharing: dynamic, scheduler: equal_share}; sessions={name: schedule, count: 3, rounds: 10}
        rounds.pause_s=1; federations.a.share=0.5; federations.b={share: 0.5, rounds: {every_s: 8, pause_s: 0}}
        federations.b.sessions={name: schedule, count: 2, rounds: 5}
    """)
    found = expected(scenario(**both))
    assert found.rounds == (40, 40)
    assert found.simulated_s == (149.0, 149.0)


def test_probes_take_no_time_of_the_grid() -> None:
    shape = sections("""
        sessions={name: schedule, count: 3, rounds: 10}; workload=null
        learning={dataset: digits, model: logistic, pilot_sessions: 1, warm_start: similarity}
    """)
    by_grid = expected(scenario(**shape, rounds={"every_s": 60.0}))
    assert by_grid.rounds == (32, 32)  # including two probe rounds
    # no interval follows the last round, of 4 s
    assert by_grid.simulated_s == (29 * 60.0 + 4.0, 29 * 60.0 + 4.0)
    at_once = expected(scenario(**shape))
    assert at_once.simulated_s == (32 * 4.0, 32 * 4.0)


def test_a_duration_by_its_grid_in_all_cells() -> None:
    shape = {"duration_s": 86_400, "sessions": {"name": "daily", "at_hours": [8]}, "rounds": {"every_s": 60}}
    day = scenario(**shape)
    found = expected(scenario(**shape, **SEVEN))
    assert found.rounds == (7 * 1440, 7 * 1440)
    assert found.simulated_s == (86_400.0, 86_400.0)
    assert "  rounds          10,080 in 7 cells" in found.costs()
    # the next round follows at once if a round is longer than the grid's interval
    assert expected(day, replace(PROBE, latency_s=120.0)).rounds == (720, 720)


def test_rounds_of_a_day_in_which_devices_also_rest_or_leave() -> None:
    """A cell may be empty for hours, and the first rounds may be those in which all devices walk."""
    shape = {
        "duration_s": 86_400.0,
        "rounds": {"every_s": 600},
        "sessions": {"name": "daily", "at_hours": [8]},
    }
    found = expected(scenario(**shape, devices={"count": 2, "mobility": "attraction"}))
    assert found.rounds == (2, 144)
    assert "  rounds          2 to 144" in found.costs()
    assert found.wall_s == (10.0 + 2 * 0.5, 10.0 + 144 * 0.5)


@pytest.mark.parametrize(
    ("rounds", "record", "known"),
    [
        ({"selector": {"name": "uniform", "count": 4}}, {}, False),
        ({"selector": {"name": "uniform", "count": 4}}, {"devices": "none"}, False),
        ({"selector": {"name": "uniform", "count": 4}, "every_s": 60}, {}, True),
        ({"server": {"name": "fedasync", "concurrency": 4}}, {}, False),
        ({}, {}, True),
    ],
)
def test_the_joules_of_tails_that_still_run_are_a_range(
    rounds: dict[str, object], record: dict[str, object], known: bool, tmp_path: Path
) -> None:
    """A later round may cut short the tails of devices that the probe sees only once."""
    shape = scenario(
        rounds=rounds,
        record=record,
        radio={"preset": "nr"},
        devices={"count": 12, "power": "tr38840"},
        sessions={"name": "schedule", "count": 1, "rounds": 100},
    )
    seen, found = probe(prepare(shape)), simulate(shape, tmp_path / "run").rounds
    joules = found.energy_j[: seen.energy_rounds].mean()
    assert seen.energy_j - seen.open_j - 1e-6 <= joules <= seen.energy_j + 1e-6
    assert (seen.open_j == 0) == known
    assert (" to " in seen.energy) != known


@pytest.mark.parametrize(
    ("rules", "rounds"),
    [
        ({"server": {"name": "fedasync", "concurrency": 6}}, 150),
        ({"selector": {"name": "uniform", "count": 3}}, 50),
        ({"selector": {"name": "uniform", "count": 9}}, 50),
    ],
)
def test_rounds_take_longer_until_all_devices_have_connected(
    rules: dict[str, object], rounds: int, tmp_path: Path
) -> None:
    """First models wait for connections, also of devices that earlier rounds left out: their mean is too long."""
    shape = scenario(
        rounds=rules,
        radio={"preset": "nr"},
        devices={"count": 12, "indoor_share": 0},
        sessions={"name": "schedule", "count": 1, "rounds": rounds},
    )
    found = simulate(shape, tmp_path / "run").rounds
    lasts_s = found.end_s.max()
    seen = probe(prepare(shape))
    assert seen.gradual
    assert expected(shape, seen).simulated_s.least == pytest.approx(lasts_s, rel=0.3)
    assert seen.latency_s * rounds > 1.3 * lasts_s, "the mean over the probe's rounds"
    spent_j = found.energy_j - found.energy_tail_j
    assert seen.later_j == pytest.approx(spent_j[seen.rounds // 2 : seen.rounds].mean(), rel=1e-6)


def test_a_run_that_stops_at_an_accuracy_may_end_early() -> None:
    shape = sections("""
        sessions={name: schedule, count: 1, rounds: 80}; workload=null; stop={accuracy: 0.9}
        learning={dataset: digits, model: logistic}
    """)
    found = expected(scenario(**shape))
    assert (found.rounds, found.simulated_s) == ((2, 80), (8.0, 320.0))
    assert "  rounds          2 to 80" in found.costs()


def test_sessions_that_may_end_early() -> None:
    bounded = {"name": "membership", "count": 10, "min_rounds": 5, "max_rounds": 20}
    found = expected(scenario(sessions=bounded))
    assert found.rounds == (50, 200)
    assert found.simulated_s == (200.0, 800.0)
    assert "  rounds          50 to 200" in found.costs()
    assert expected(scenario(sessions=bounded, duration_s=400.0)).rounds == (50, 100)


def test_sessions_by_time_end_a_run_by_the_clock() -> None:
    intervals = {"name": "interval", "count": 4, "length_s": 50.0}
    assert scenario(sessions=intervals).sections.latest_end_s == 200.0
    assert scenario(sessions=intervals, duration_s=120.0).sections.latest_end_s == 120.0
    assert expected(scenario(sessions=intervals)).rounds == Range(50, 50)


def test_a_probe_is_the_first_two_rounds_of_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    by_rounds = {"name": "schedule", "count": 3, "rounds": 10}
    found = probe(prepare(scenario(sessions=by_rounds, rounds={"server_s": 7.0})))
    assert found.rounds == 2
    assert 7.0 < found.latency_s < 7.1
    assert found.round_wall_s > 0
    assert found.round_bytes > 100
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize(("each_s", "rounds"), [(0.1, 14), (0.6, 7)])
def test_what_comes_before_the_first_round_does_not_cut_a_probe_short(each_s: float, rounds: int) -> None:
    """A probe's limit of 1.5 s counts from the end of the first round, and so excludes a minute of preparation.

    The probe contains the first rounds of all cells, as they end at the same time.
    """
    clock = itertools.chain([0.0], (60.0 + each_s * number for number in itertools.count()))
    run = prepare(scenario(sessions={"name": "schedule", "count": 3, "rounds": 10}, **SEVEN))
    found = probe(run, most_s=1.5, clock=lambda: next(clock))
    assert (found.rounds, found.cut_short) == (rounds, rounds < 14)


def lines_of(file: Path) -> list[str]:
    return list(look(file, "auto", Loaded(download=False), plan=True))


def test_a_file_and_a_study_are_told(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "name: a\ndevices: {count: 1}\nsessions: {name: schedule, count: 1, rounds: 5}\n"
        "workload: {payload_bits: 1000, flops_per_sample: 1}\n"
    )
    told = lines_of(file)
    assert told[0].startswith(f"{file}: ok\n  1 device in one cell")
    assert told[2].split() == ["rounds", "5"]
    study = tmp_path / "study.yaml"
    study.write_text(
        "name: s\nscenario: a.yaml\nseeds: [1, 2]\nreference: one\n"
        "variants: {one: {}, many: {devices.count: 200}}\n"
    )
    told = lines_of(study)
    assert told[:2] == [f"{study}:", "one seed 1, one of 2 seeds:"]
    assert told[-1].startswith("the whole study, 4 runs one after another: ")
    file.write_text(file.read_text().replace("count: 1", "count: 1, mobility: {name: trace, path: none.csv}"))
    with pytest.raises(EdgeflError):
        lines_of(file)


def _dry_run(one: Scenario, folder: Path) -> None:
    (folder / "a.yaml").write_text(dump(one))
    (folder / "study.yaml").write_text("name: s\nscenario: a.yaml\nseeds: [1]\nvariants: {one: {}}\n")
    list(dry_run(plan(folder / "study.yaml"), folder / "out", device="cpu"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda one, _: make_preview(one, "cpu"),
        # validate --plan, in its own process
        lambda one, _: validation._try((one, "cpu"), lambda forecast: None),
        _dry_run,
    ],
    ids=["preview", "validate", "dry_run"],
)
def test_a_forecast_builds_a_run_once(
    ask: Callable[[Scenario, Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forecast builds a run only once, even if devices report losses or a score ends the run."""
    built: list[Scenario] = []
    init = World.__init__

    def count(self: World, scenario: Scenario, streams: Streams) -> None:
        built.append(scenario)
        init(self, scenario, streams)

    monkeypatch.setattr(World, "__init__", count)
    reporting = sections("""
        learning={dataset: digits, model: logistic, local: {steps: 1}}; workload=null; stop.patience=9
        sessions={name: adaptive, count: 1, min_rounds: 2, max_rounds: 4}
        rounds.selector={name: power_of_choice, count: 1, d: 2}
    """)
    ask(scenario(**reporting), tmp_path)
    assert len(built) == 1


@pytest.mark.parametrize(
    ("count", "text"), [(12, "12 bytes"), (3400, "3.4 kB"), (5e8, "500 MB"), (1.26e9, "1.3 GB")]
)
def test_sizes_for_people(count: float, text: str) -> None:
    assert size(count) == text
