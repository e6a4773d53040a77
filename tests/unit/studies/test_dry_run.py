"""Test the dry run of a study with a question, whose range is from the listed seeds to the budget."""

import itertools
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgefl.rng import Streams
from edgefl.run.forecast import Forecast, Range
from edgefl.run.plan import RunPlan
from edgefl.run.probe import Probe
from edgefl.run.progress import wall_time
from edgefl.scenario.scenario import Scenario
from edgefl.studies import StudyOptions, plan, run
from edgefl.studies.dry_run import FURTHER_PROBES_S, dry_run
from tests.tools.called import code_of
from tests.unit.studies.asked import GRID, STUDY, written

NARROW = STUDY.replace("precision: 0.5, budget: 40", "precision: 1.0e-9, budget: 12")
BASE = """\
name: base
devices: {{count: 4}}
sessions: {{name: schedule, {}}}
learning: {{dataset: digits, partition: iid, model: logistic}}
"""
# each run has 100 to 200 rounds of 1 s and 10 kB
ROUNDS = Range(100.0, 200.0)
EACH = Probe(2, 1.0, 0.0, 1.0, 3e8, 1e4)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("edgefl.studies.dry_run.probe", lambda *of, **how: EACH)
    monkeypatch.setattr(Forecast, "rounds", ROUNDS)
    return written(tmp_path, NARROW)


def last_line(study: Path, out: Path, seeds: tuple[int, ...] = ()) -> str:
    return list(dry_run(plan(study, seeds), out))[-1]


def test_the_range_is_from_the_seeds_listed_to_the_budget(study: Path, tmp_path: Path) -> None:
    """Three variants with two seeds, and up to ten more seeds for two variants, are 6 to 26 runs of 100 to 200 s."""
    told = last_line(study, tmp_path / "out")
    assert "up to a budget of 12: 6 to 26 runs, 10 min to 87 min on one core, 6.0 MB to 52 MB on disk" in told
    study.write_text(NARROW + GRID)
    assert "budget of 12 in each of 2 settings: 12 to 52 runs," in last_line(study, tmp_path / "out")


def test_seeds_that_are_named_are_all_and_nothing_is_asked(study: Path, tmp_path: Path) -> None:
    assert "question" not in last_line(study, tmp_path / "out", (4,))


def test_similar_cases_share_a_probe_when_time_is_up(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When probes have taken too long, other cases get the forecast of the most similar probed case."""
    probed: list[int] = []
    asked: list[int] = []

    def slow(run: RunPlan) -> Probe:
        probed.append(run.world.count)
        time.sleep(FURTHER_PROBES_S)
        return replace(EACH, rounds=len(probed))

    def forecast(scenario: Scenario, probe: Probe, own: float) -> Forecast:
        asked.append(probe.rounds)
        return Forecast(scenario, probe=probe, own=own)

    monkeypatch.setattr("edgefl.studies.dry_run.probe", slow)
    monkeypatch.setattr("edgefl.studies.dry_run.Forecast", forecast)
    study.write_text(
        STUDY.partition("variants:")[0]
        + "variants: {a: {}, b: {devices.count: 6}, c: {devices.count: 6, radio.bandwidth_hz: 1.0e+6},"
        + " d: {radio.bandwidth_hz: 1.0e+6}}\n"
    )
    list(dry_run(plan(study), tmp_path / "out"))
    assert probed == [4, 6]
    assert asked == [1, 2, 2, 1] * 2  # seeds


def test_loading_is_counted_once(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first probe starts in 100 s: 90 s to load PyTorch and data, counted once, and 10 s as in each run."""
    starts_s = itertools.chain([100.0], itertools.repeat(10.0))
    monkeypatch.setattr(
        "edgefl.studies.dry_run.probe", lambda run: replace(EACH, start_wall_s=next(starts_s))
    )
    study.write_text(study.read_text().partition("question:")[0])
    whole = Range(*(90.0 + 6 * (10.0 + number) for number in ROUNDS))
    assert f"roughly: {whole.text(wall_time)} on one core" in last_line(study, tmp_path / "out")


def test_reused_training_is_not_counted(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training that is reused is not counted; of six sessions, `average` reuses three, and `continuous` one.

    The narrow variant reuses all of similarity's training if the same devices take part: then its rounds, without
    training, take 1/4 of the time. Under the same condition, `average` reuses two of its three sessions, since only
    `similarity` has probe rounds. The most counts the training that is reused only under that condition.
    """
    untrained = replace(EACH, round_wall_s=0.25)
    monkeypatch.setattr("edgefl.studies.dry_run.probe", lambda run: EACH if run.training else untrained)
    (tmp_path / "base.yaml").write_text(BASE.format("count: 6, rounds: 2"))
    starts = {name: f"learning.warm_start: {name}" for name in ("similarity", "average", "continuous")}
    starts["narrow"] = starts["similarity"] + ", radio.bandwidth_hz: 1.0e+6"
    variants = "\n".join(f"  {name}: {{{changes}}}" for name, changes in starts.items())
    study.write_text(f"name: s\nscenario: base.yaml\nseeds: [1]\nvariants:\n{variants}\n")
    counted = Range(ROUNDS.least * (1 + 1 / 2 + 5 / 6 + 1 / 4), ROUNDS.most * (1 + 5 / 6 + 5 / 6 + 1))
    *listed, _, costs = dry_run(plan(study), tmp_path / "out")
    assert f"roughly: {counted.text(wall_time)} on one core" in costs
    condition = "as long as the same devices take part"
    assert [line.partition("seed 1")[2] for line in listed] == [
        "",
        f", takes its session 1 from similarity/seed-1, and sessions 2 to 3 {condition}",
        ", takes its session 1 from similarity/seed-1",
        f", takes its training from similarity/seed-1 {condition}",
    ]


def test_reuse_is_promised_only_if_certain(study: Path, tmp_path: Path) -> None:
    """Runs that differ in what they record share all training; a run that saves models every round shares none."""
    (tmp_path / "base.yaml").write_text(BASE.format("count: 2, rounds: 1"))
    other = "rounds.selector: {name: uniform, count: 2}"
    study.write_text(
        "name: s\nscenario: base.yaml\nseeds: [1]\nvariants: {a: {}, same: {record.devices: none},"
        f" best: {{record.models: best}}, other: {{{other}}}, both: {{record.models: 1, {other}}}}}\n"
    )
    listed = list(dry_run(plan(study), tmp_path / "out"))[:5]
    assert [line.partition("seed 1")[2] for line in listed] == [
        "",
        ", takes its training from a/seed-1",
        "",
        ", takes its training from a/seed-1 as long as the same devices take part",
        "",
    ]


@pytest.mark.parametrize(("rounds", "probes"), [(2, 2), (1, 4)])
def test_cases_with_equal_first_rounds_share_a_probe(
    rounds: int, probes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases whose first rounds are equal share a probe, e.g. if only the warm starts differ, unused in the pilot."""
    probed: list[RunPlan] = []

    def note(run: RunPlan) -> Probe:
        probed.append(run)
        return EACH

    monkeypatch.setattr("edgefl.studies.dry_run.probe", note)
    monkeypatch.setattr("edgefl.studies.dry_run.FURTHER_PROBES_S", 100.0)
    (tmp_path / "base.yaml").write_text(
        f"name: base\ndevices: {{count: 4}}\nsessions: {{name: schedule, count: 3, rounds: {rounds}}}\n"
        "learning: {dataset: digits, partition: iid, model: logistic}\n"
    )
    starts = "a: {}, b: {learning.warm_start: average}"
    lr = "c: {learning.local.lr: 0.5}, d: {learning.local.lr: 0.5, learning.warm_start: average}"
    (tmp_path / "study.yaml").write_text(
        f"name: s\nscenario: base.yaml\nseeds: [1, 2]\nvariants: {{{starts}, {lr}}}\n"
    )
    list(dry_run(plan(tmp_path / "study.yaml"), tmp_path / "out"))
    assert len(probed) == probes


def test_what_is_there_is_not_counted_again(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(plan(study, [4, 2]), out, StudyOptions(executor="inline"))
    assert "0 to 20 runs, 0 s to 67 min on one core, 0 bytes to 40 MB" in last_line(study, out)
    run(plan(study, [5]), out, StudyOptions(executor="inline"))
    assert "0 to 18 runs" in last_line(study, out)


def test_answered_questions_add_none(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study.write_text(STUDY.replace("[a, b], precision: 1.0e-9", "[a, b], precision: 1.0e+9"))
    out = tmp_path / "out"
    found = run(plan(study), out, StudyOptions(executor="inline"))
    assert last_line(study, out) == f"the question is answered: {found.answer.sentence}"
    code_of("study", study, "--out", out, "--dry-run")
    assert re.search(r"6 completed\nthe question is answered: latency_s of a minus", capsys.readouterr().out)


def test_seeds_that_fail_at_their_start_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a mean of 0.5 devices in a cell of 1 km2, a seed places no device with probability 0.6.

    Without the dry run, a study would find this only when it runs that seed. The other seeds are probed and counted.
    """
    (tmp_path / "base.yaml").write_text(
        "name: base\ncell: {radius_m: 564.2}\nradio: {preset: journal}\ndevices: {density_per_km2: 0.5}\n"
        "sessions: {name: schedule, count: 1, rounds: 1}\nworkload: {payload_bits: 1, flops_per_sample: 1}\n"
    )
    (tmp_path / "study.yaml").write_text(
        "name: s\nscenario: base.yaml\nseeds: [1, 2, 3, 4, 5, 6]\nvariants: {a: {}}\n"
    )
    study = plan(tmp_path / "study.yaml")
    empty = []
    for one in study.runs:
        mean = 0.5 * np.pi * (0.5642**2 - 0.01**2)  # no device is within 10 m of the site
        if not Streams(one.scenario.seed)("drop", "count").poisson(mean):
            empty.append(one.label)
    assert 0 < len(empty) < 6
    assert code_of("study", tmp_path / "study.yaml", "--dry-run", "--out", tmp_path / "out") == 2
    told = capsys.readouterr()
    assert "still to be done" in told.out
    assert f"{len(empty)} of 6 runs would fail at their start:" in told.err
    assert re.findall(r"^  (a seed \d): .*there is no device", told.err, re.MULTILINE) == empty


def test_unchecked_runs_are_counted(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgefl.studies.dry_run.CHECKS_S", -1.0)
    told = list(dry_run(plan(study), tmp_path / "out"))
    assert "only 0 of 6 runs were checked: to check all would take over -1 s" in told
