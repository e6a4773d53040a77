"""Test what is known before a run: errors (with no files written), notes, and the length of the first round."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgefl import studies
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.federation.rounds import Rounds, Selection
from edgefl.errors import EdgeflError
from edgefl.run.api import simulate
from edgefl.run.plan import prepare
from edgefl.run.simulation import carry_out
from edgefl.scenario import scenario
from edgefl.studies import validation
from tests.refusals import refused_at

STUDY = """\
name: small
scenario: digits.yaml
seeds: [1, 2]
reference: plain
variants:
  plain: {}
  wrong: {%s}
"""


def notes_of(file: Path, *changes: str) -> list[str]:
    """Return the notes before a run."""
    return prepare(scenario.load(file, changes), device="cpu").notes


@pytest.mark.parametrize(
    "line", ["rounds: {min_updates: 7}", "rounds: {over_selection: 2}", "radio: {slot_s: 0.01}"]
)
def test_validate_says_what_the_run_would_and_names_file_and_line(digits: Path, line: str) -> None:
    digits.write_text(f"{digits.read_text()}{line}\n")
    with pytest.raises(EdgeflError) as validated:
        validation.check(digits)
    with pytest.raises(EdgeflError) as refused:
        simulate(scenario.load(digits), "out", device="cpu")
    assert str(validated.value) == str(refused.value)
    assert str(refused.value).startswith(f"{digits}:8 {line.partition(':')[0]}")
    assert list(digits.parent.iterdir()) == [digits], "nothing is written"


def test_a_study_looks_at_every_variant_before_its_first_run(digits: Path) -> None:
    file = digits.with_name("study.yaml")
    file.write_text(STUDY % "radio.slot_s: 0.01")
    with refused_at("radio.slot_s", "wrong seed 1", "study.yaml:7"):
        validation.check(file)
    with refused_at("", "wrong seed 1"):
        studies.run(studies.plan(file), "out", studies.StudyOptions(device="cpu", jobs=1))
    assert not Path("out").exists()


def test_a_study_reads_its_data_once(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from edgefl.learning.datasets.digits import Digits

    file = digits.with_name("study.yaml")
    file.write_text(STUDY % "learning.local.lr: 0.1")
    loads, load = [], Digits.load
    monkeypatch.setattr(Digits, "load", lambda self: loads.append(1) or load(self))
    assert len(validation.check(file)) == 2
    assert len(loads) == 1


def test_what_was_found_is_said_in_a_few_lines(digits: Path) -> None:
    (found,) = validation.check(digits)
    *lines, last = found.lines()
    assert lines == [
        "6 devices in one cell",
        "sessions: 2, of at most 2 rounds",
        "model logistic: 650 parameters, 2,560 FLOPs per sample",
        "bits per transfer: 20,800",
    ]
    samples = re.fullmatch(r"samples per device: (\d+) to (\d+), median ([\d.]+)", last)
    assert int(samples[1]) <= float(samples[3]) <= int(samples[2])


def test_a_run_of_a_duration_has_as_many_sessions_as_there_is_time_for(digits: Path) -> None:
    """Populations, pilot sessions and probes are not checked against a number of sessions that is unknown."""
    overrides = [
        "duration_s=5",
        "sessions={name: interval, length_s: 2}",
        "devices.populations=2",
        "learning.warm_start={name: similarity, probe_share: 0.4}",
        "learning.pilot_sessions=3",
        "rounds.min_updates=2",
    ]
    with refused_at("rounds.min_updates", "2 exceeds the number of participants"):
        scenario.load(digits, overrides)
    loaded = scenario.load(digits, overrides[:-1])
    assert prepare(loaded, device="cpu").notes == []
    said = validation.check_build(loaded, "cpu").lines()
    assert "sessions: as many as begin within duration_s, ended by the clock" in said


def test_a_study_says_once_what_its_runs_share(digits: Path) -> None:
    file = digits.with_name("study.yaml")
    file.write_text(STUDY % "learning.model: mlp2")
    said = validation.summary(validation.check(file))
    assert said[0] == "2 runs per seed; with the first seed:"
    assert said.count("6 devices in one cell") == 1
    assert sum(line.startswith("model") and line.endswith("(1 of them)") for line in said) == 2


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("learning.pilot_sessions=2", "learning.warm_start similarity has no effect"),
        ("learning.drift={name: label_swap, at: 5}", "learning.drift.at 5 is after the run's last round, 4"),
        ("learning.local.batch=5000", "learning.local.batch 5,000 exceeds the"),
    ],
)
def test_what_has_no_effect_is_noted(override: str, words: str, digits: Path) -> None:
    (note,) = notes_of(digits, override)
    assert words in note
    assert notes_of(digits) == []


@pytest.mark.parametrize(
    ("key", "others"),
    [
        ("learning.theory", ["learning.local.momentum=0"]),
        ("learning.evaluation.scores_every", ["learning.evaluation.tested_on=devices"]),
        ("learning.evaluation.every", []),
    ],
)
def test_an_interval_longer_than_the_run_is_noted(
    key: str, others: list[str], digits: Path, tmp_path: Path
) -> None:
    """Intervals count the rounds of all sessions: with two sessions of two rounds, three is due in the second."""
    (note,) = notes_of(digits, *others, f"{key}=5")
    assert note.startswith(f"{key} 5 measures nothing")
    assert "set it to 4 or less" in note
    loaded = scenario.load(digits, [*others, f"{key}=3"])
    assert prepare(loaded, device="cpu").notes == []
    results = simulate(loaded, tmp_path / "run", device="cpu")
    if key.endswith("scores_every"):
        due = results.evaluation
    else:
        due = results.rounds.dropna(subset="theory_lr" if key.endswith("theory") else "accuracy")
    assert set(zip(due.session, due["round"], strict=True)) == {(2, 1)}


@pytest.mark.parametrize("name", ["apfl", "ditto"])
def test_personal_models_that_nobody_tests_are_noted(name: str, digits: Path) -> None:
    notes = partial(notes_of, digits, f"learning.algorithm={name}")
    (note,) = notes()
    assert note.startswith(f"learning.algorithm {name}: only the global model is tested")
    assert (
        "set learning.evaluation.tested_on: devices (accuracy_personal in rounds.csv and devices.csv)" in note
    )
    assert notes("learning.evaluation.tested_on=devices", "record.devices=none") == []


BOTH_WAYS = "1 of 2 vectors in the downlink and 1 of 2 vectors in the uplink"
AS_IT_BEGINS = "an additional vector in the downlink until a device's first update of a session arrives"
STOPS = "the forward passes that decide when devices stop"
COMPARED = "the passes of the model%s compares with the trained model"
CHOICE, ONE_MODEL = "the passes in which devices choose a model", "all but one of the models in the downlink"


@pytest.mark.parametrize(
    ("changes", "sent", "computed"),
    [
        (["learning.algorithm=fedprox"], "", ""),
        (["learning.algorithm=scaffold"], BOTH_WAYS, ""),
        (["learning.algorithm=feddc"], f"{BOTH_WAYS} and {AS_IT_BEGINS}", ""),
        (["learning.algorithm=feddyn"], AS_IT_BEGINS, ""),
        (["learning.algorithm=hypcluster"], ONE_MODEL, CHOICE),
        (["learning.algorithm=feddrift"], ONE_MODEL, CHOICE),
        (["learning.algorithm=moon"], "", COMPARED % "s that the algorithm's loss"),
        (["learning.algorithm=flash", "learning.local.epochs=2"], "", STOPS),
        (["learning.local.early_stopping=0.04", "learning.local.epochs=2"], "", STOPS),
        (["learning.warm_start=continuous"], "", COMPARED % " that warm start continuous"),
    ],
)
def test_uncounted_costs_are_noted(changes: list[str], sent: str, computed: str, digits: Path) -> None:
    """Uncounted energy is noted with the journal's preset or with its keys; `nr` counts all energy."""

    def costs(*overrides: str) -> list[str]:
        return [
            note for note in notes_of(digits, *changes, *overrides) if "costs of this run leave out" in note
        ]

    assert costs() == []
    by_hand = ["learning.cost.payload=model", "learning.cost.booked=processed"]
    left_out = [
        *([f"{sent} (learning.cost.payload: exchanged counts them)"] if sent else []),
        *([f"{computed} (learning.cost.booked: all counts them)"] if computed else []),
    ]
    for overrides in (["radio.preset=journal"], by_hand):
        found = [note.partition(" leave out ")[2] for note in costs(*overrides)]
        assert found == [", and ".join(left_out)][: len(left_out)]
    assert len(costs(by_hand[0])) == bool(sent)
    assert len(costs(by_hand[1])) == bool(computed)


def test_nominal_books_leave_out_personal_models(digits: Path) -> None:
    tested = ["learning.algorithm=ditto", "learning.evaluation.tested_on=devices"]
    notes = partial(notes_of, digits, *tested)
    (note,) = notes("learning.cost.booked=nominal")
    assert "leave out the passes that train personal models (learning.cost.booked: all" in note
    assert notes("learning.cost.booked=processed") == []


def test_a_check_leaves_the_run_as_it_was(digits: Path) -> None:
    """After a rehearsed round, the count of clamped links is 0, and samples are dealt as for the first session."""
    moving = ["cell.min_distance_m=200", "devices.mobility=random_waypoint"]
    run = prepare(scenario.load(digits, [*moving, "learning.partition.overlap=0.0"]), device="cpu")
    assert run.world.gains.clamped == 0
    assert run.learner.device_data.key == 1


@pytest.mark.parametrize(
    ("sets", "change", "nouns"),
    [
        ("[[0, 1], [2, 3], [10]]", "devices.count=6", ("session 3 has label 10", "0 to 9")),
        # label 4 has 140 samples
        ("[[0, 1], [2, 3], [4]]", "devices.count=200", ("samples in the session", "200 devices")),
    ],
)
def test_labels_of_later_sessions(digits: Path, sets: str, change: str, nouns: tuple[str, ...]) -> None:
    changes = [f"learning.partition={{name: iid, label_sets: {sets}}}", change, "sessions.count=4"]
    with refused_at("learning.partition", *nouns):
        prepare(scenario.load(digits, changes), device="cpu")


def with_labels(file: Path, train: list[Any], test: list[Any]) -> None:
    """Let a scenario train on 40 samples with these labels, repeated, and test on 20."""
    x = np.zeros((40, 4), np.float32)
    labels = {"x_train": x, "y_train": np.array(train * 10), "x_test": x[:20], "y_test": np.resize(test, 20)}
    np.savez(file.parent / "a.npz", **labels)
    file.write_text(file.read_text().replace("dataset: digits", "dataset: {name: npz, path: a.npz}"))


@pytest.mark.parametrize(
    ("train", "test", "held", "tested"),
    [([0, 1, 2, 2], [3, 3], "0, 1, 2", "3"), (list("abcd"), list("ABAB"), "a, b, c, d", "A, B")],
)
def test_labels_without_a_test_sample(
    train: list[Any], test: list[Any], held: str, tested: str, digits: Path
) -> None:
    """A session whose labels no test sample has is refused before the run, with the labels of the file."""
    with_labels(digits, train, test)
    for check in (validation.check, partial(simulate, out="out", device="cpu")):
        with refused_at("learning.dataset", f"labels {held} that a session", f"have the labels {tested}:"):
            check(digits)
    assert not Path("out").exists()


def noted(file: Path, *changes: str) -> list[list[str]]:
    """Return the notes of `edgefl validate` and of a run."""
    checked = validation.check_build(scenario.load(file, changes), "cpu")
    return [list(checked.notes), notes_of(file, *changes)]


@pytest.mark.parametrize(
    ("train", "test", "said"),
    [
        ([0, 1, 2, 2], [0, 1, 5, 7, 5], "no training sample has their labels (5, 7): 12 of 20; correct"),
        (list("abcd"), list("abcz"), "no training sample has their labels (z): 5 of 20; correct"),
        ([0, 1, 2, 2], [0, 1], ""),  # the test samples lack a label
    ],
)
def test_test_samples_that_no_session_can_test_are_noted(
    train: list[Any], test: list[Any], said: str, digits: Path
) -> None:
    """Labels that only some sessions hold are left out on purpose, without a note."""
    with_labels(digits, train, test)
    for notes in [*noted(digits), *noted(digits, "learning.evaluation.tested_on=devices")]:
        assert [note.startswith("learning.dataset: test samples left out") for note in notes] == [
            True
        ] * bool(said)
        assert all(said in note for note in notes)
    assert noted(digits, "learning.partition={name: iid, label_sets: [[0], [1]]}")[0] == noted(digits)[0]


@pytest.mark.parametrize(("change", "count"), [("steps=7", 1), ("steps=5", 0), ("batch=64", 0)])
def test_steps_that_epochs_replace_are_noted(change: str, count: int, digits: Path) -> None:
    """A run's complete scenario also states the default number of steps."""
    for notes in noted(digits, "learning.local.epochs=2", f"learning.local.{change}"):
        assert sum("learning.local.steps 7 has no effect, since" in note for note in notes) == count
        assert sum("local.steps" in note for note in notes) == count


WIDE = """\
from torch import nn
from edgefl.learning.tasks.classification import Classification

def make(num_classes, further):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes + further))

class Own(Classification):
    pass
"""


def test_outputs_without_a_target_are_noted(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEFL_ALLOW_CODE", "1")
    (digits.parent / "wide_model.py").write_text(WIDE)
    model = "learning.model={name: factory, function: 'wide_model:make', arguments: {further: %d}}"
    for notes in noted(digits, model % 2):
        (note,) = notes
        assert note.startswith(
            "learning.model: the model returns 12 numbers for a target, but num_classes is 10"
        )
    assert noted(digits, model % 0) == [[], []]
    own = "learning.task=wide_model:Own"
    assert noted(digits, model % 2, own) == [[], []], "an own task may use further outputs"


def test_labels_without_a_validation_sample(digits: Path) -> None:
    changes = [
        "learning.partition={name: iid, label_sets: [[0, 1], [8, 9]]}",
        "learning.evaluation.validation=0.0007",
    ]
    with refused_at("learning.evaluation.validation", "no validation sample", "a larger share"):
        prepare(scenario.load(digits, changes), device="cpu")


def test_a_deadline_in_which_no_update_can_arrive_is_noted(digits: Path) -> None:
    """A downlink and an uplink take at least two slots of 0.5 ms, so a shorter deadline is noted."""
    (note,) = notes_of(digits, "rounds.deadline_s=1.0e-5")
    assert note.startswith("rounds.deadline_s 1e-05: almost no update can arrive in time; the fastest device")
    assert notes_of(digits, "rounds.deadline_s=10") == []


@pytest.mark.parametrize(
    ("local", "enough"), [("{steps: 5, batch: 10000}", True), ("{epochs: 40, batch: 10}", False)]
)
def test_a_deadline_is_compared_with_the_samples_that_devices_hold(
    local: str, enough: bool, digits: Path, tmp_path: Path
) -> None:
    """Each of six devices holds 250 of 1,500 samples, and computes 8 GFLOP/s / 2 MFLOP = 4 samples per ms.

    Five steps on all of these samples take 0.3 s, whatever the batch size; forty epochs take 2.5 s.
    """
    own = ["learning.partition=iid", f"learning.local={local}", "learning.cost={flops_per_sample: 2.0e+6}"]
    loaded = scenario.load(digits, [*own, "rounds.deadline_s=1", "devices.flops_per_cycle=8"])
    notes = [note for note in prepare(loaded, device="cpu").notes if "almost no update" in note]
    assert len(notes) == (not enough)
    rounds = simulate(loaded, tmp_path / "run", device="cpu").rounds
    assert rounds.completed.gt(0).all() == enough


@pytest.mark.parametrize(
    ("rounds", "connects"), [("{deadline_s: 0.02}", True), ("{deadline_s: 0.3, every_s: 60}", False)]
)
def test_a_deadline_below_the_access_time_is_noted(
    rounds: str, connects: bool, digits: Path, tmp_path: Path
) -> None:
    """Access alone takes 0.36 s with a setup, and more than 0.02 s without; after a minute devices set up again."""
    workload = ["learning=null", "workload={payload_bits: 1000, flops_per_sample: 1}", f"rounds={rounds}"]
    cell = scenario.load(digits, workload)
    (note,) = prepare(cell, device="cpu").notes
    first_s, *later_s = [float(number) for number in re.findall(r"([\d.]+) s(?:,|$| in)", note)]
    assert cell.radio.access is not None
    assert first_s > cell.radio.access.setup_s
    # both numbers are rounded to three digits
    assert later_s == [pytest.approx(first_s - cell.radio.access.setup_s, abs=6e-4)] * connects
    done = simulate(cell, tmp_path / "run", device="cpu")
    assert "completed" not in set(done.devices.outcome)
    above = f"rounds.deadline_s={later_s[0] + 0.01 if connects else first_s + 0.01}"
    assert not any("deadline_s" in note for note in notes_of(digits, *workload, above))


DAY = ["sessions={name: daily, count: 2, at_hours: [0, 12]}", "learning.pilot_sessions=1"]


def test_a_day_of_rounds_that_follow_one_another_at_once_is_noted(digits: Path) -> None:
    """Rounds without pauses in two sessions of twelve hours are noted."""
    (note,) = notes_of(digits, *DAY)
    assert note.startswith("rounds follow each other without a pause for 86,400 s: about ")
    assert note.endswith("set rounds.every_s or rounds.pause_s")
    for remedy in ("rounds.every_s=60", "rounds.pause_s=60", "duration_s=60"):
        assert notes_of(digits, *DAY, remedy) == []


def test_a_rounds_length_is_that_without_fading(digits: Path, tmp_path: Path) -> None:
    """Rayleigh fading lowers a rate, here 4 bit/s/Hz or more, by at most 0.83 bit/s/Hz (Euler's constant over ln 2).

    A round of 200 Mbit each way therefore takes up to a third longer than the note on the deadline says.
    """
    workload = ["learning=null", "workload={payload_bits: 2.0e+8, flops_per_sample: 1}"]
    overrides = [*workload, "devices.count=1", "radio.preset=journal"]
    plan = prepare(scenario.load(digits, [*overrides, "rounds.deadline_s=0.01"]), device="cpu")
    (note,) = plan.notes
    said_s = float(note.split()[-2])
    done = simulate(scenario.load(digits, overrides), tmp_path / "run", device="cpu")
    assert said_s < done.rounds.latency_s.iloc[0] < 4 / 3 * said_s


SHARED = [
    "learning=null",
    "workload={payload_bits: 1.0e+6, flops_per_sample: 1}",
    "devices.count=40",
    "radio={preset: nr, sharing: dynamic, scheduler: equal_share}",
    "federations={phones: {share: 0.5}, meters: {share: 0.5}}",
    "rounds.selector={name: uniform, count: 3}",
]


@pytest.mark.parametrize(
    ("overrides", "servers"),
    [
        pytest.param(["rounds.selector={name: uniform, count: 3}"], 1, id="alone"),
        pytest.param(SHARED, 2, id="federations"),
        pytest.param(["rounds.server={name: fedbuff, buffer: 2, concurrency: 2}"], 1, id="concurrency"),
    ],
)
def test_the_round_that_is_opened_before_the_run_is_the_runs_first(
    overrides: list[str], servers: int, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rehearsed round and the run's first round have the same participants, links, and random numbers."""
    opened: list[tuple[Any, ...]] = []
    open_ = Rounds.open

    def noting(rounds: Rounds, selection: Selection, *bits: Sequence[int]) -> RadioRound:
        of = open_(rounds, selection, *bits)
        snr = of.links.snr["uplink"].tolist()
        opened.append((rounds.seat, selection.large_scale.key, list(selection.ids), snr))
        return of

    monkeypatch.setattr(Rounds, "open", noting)
    plan = prepare(scenario.load(digits, overrides), device="cpu")
    before, opened[:] = list(opened), []
    carry_out(plan, tmp_path / "run")
    firsts = {seat: one for seat, *one in reversed(opened)}
    assert len(before) == servers
    assert {seat: one for seat, *one in before} == firsts
