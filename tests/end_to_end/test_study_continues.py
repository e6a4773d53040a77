"""Test that a continued study repeats no complete run, and reuses no stale run."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from edgefl.analysis.runs.load import load_runs
from edgefl.commands.study import ELSEWHERE
from edgefl.engine.records import Round
from edgefl.studies import IncompleteStudy, StudyOptions, execution, plan, run, run_locks, scheduler
from edgefl.studies.dry_run import dry_run
from edgefl.studies.merging import merge
from edgefl.studies.one_run import RunTask
from edgefl.studies.run_locks import STALE_S
from edgefl.studies.states import State, state_of
from edgefl.version import RESULTS_VERSION
from tests.end_to_end.directories import runs
from tests.refusals import refused_at
from tests.tools.called import code_of
from tests.tools.forked import Command
from tests.tools.kill import differences

RADIO = """\
name: radio
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 2}
workload: {payload_bits: 100000, flops_per_sample: 1000}
"""
STUDY = """\
name: radio
scenario: radio.yaml
seeds: [1, 2]
variants: {b: {}, a: {devices.count: 5}}
"""
SHARED = 7  # seeds of two variants, in a study that two processes share: 14 runs for four workers
# Of seeds 1 to 3, only seed 2 places no device in the cell.
FEW = "variants: {few: {devices.count: null, devices.density_per_km2: 3}}\n"


@pytest.fixture
def radio(tmp_path: Path) -> Path:
    (tmp_path / "radio.yaml").write_text(RADIO)
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path / "study.yaml"


@pytest.fixture(autouse=True)
def beats_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the heartbeat interval from 10 s, as abandoned claims are watched for longer than one interval."""
    monkeypatch.setattr(run_locks, "BEAT_S", 0.2)


def about(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "run.json").read_text())
    return found


def test_what_is_complete_is_not_done_again(radio: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(plan(radio, [1]), out, StudyOptions(jobs=1))
    before = runs(out)
    run(plan(radio), out, StudyOptions(jobs=1))
    after = runs(out)
    assert set(after) == {"b/seed-1", "a/seed-1", "b/seed-2", "a/seed-2"}
    assert {name: after[name] for name in before} == before
    told = about(out / "b" / "seed-1")
    assert told["variants"] == ["b", "a"]
    assert told["reference"] is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("count: 4}", "count: 6}", "b/seed-1: devices.count is 4, here 6"),
        ("rounds: 2}", "rounds: 2}\nduration_s: 9.0", "duration_s is not given, here 9.0"),
    ],
)
def test_a_changed_key_takes_no_run_for_another(
    old: str, new: str, said: str, radio: Path, tmp_path: Path
) -> None:
    run(plan(radio), tmp_path / "out", StudyOptions(jobs=1))
    before = runs(tmp_path / "out")
    radio.with_name("radio.yaml").write_text(RADIO.replace(old, new))
    with refused_at("", said):
        run(plan(radio), tmp_path / "out", StudyOptions(jobs=1))
    assert runs(tmp_path / "out") == before


def test_a_changed_name_is_the_same_run(radio: Path, tmp_path: Path) -> None:
    run(plan(radio), tmp_path / "out", StudyOptions(jobs=1))
    before = runs(tmp_path / "out")
    radio.with_name("radio.yaml").write_text(RADIO.replace("name: radio", "name: other"))
    run(plan(radio), tmp_path / "out", StudyOptions(jobs=1))
    assert runs(tmp_path / "out") == before


@pytest.mark.parametrize("seeds", ["[1, 2]", "[1, 2, 3]", "[2]"])
def test_a_changed_reference_is_that_of_all_runs(seeds: str, radio: Path, tmp_path: Path) -> None:
    """The runs of a continued study, with another reference and a new first variant, are those of a new study."""
    out, new = tmp_path / "out", tmp_path / "new"
    radio.write_text(STUDY + "reference: b\n")
    run(plan(radio), out, StudyOptions(jobs=1))
    changed = STUDY.replace("[1, 2]", seeds).replace("{b:", "{c: {devices.count: 6}, b:")
    radio.write_text(changed + "reference: a\n")
    run(plan(radio), out, StudyOptions(jobs=1))
    run(plan(radio), new, StudyOptions(jobs=1))
    for path in new.glob("*/seed-*"):
        assert differences(out / path.relative_to(new), path) == []
    assert {about(path)["reference"] for path in out.glob("*/seed-*")} == {"a"}
    assert list(load_runs(out).info["variant"].unique()) == ["c", "b", "a"]


@pytest.mark.parametrize("what", ["data", "results_version"])
def test_other_data_or_another_version_of_results_is_another_run(
    what: str, radio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "places.csv"
    trace.write_text(
        "id,time,x,y\n" + "".join(f"{i},{t},{9 * i + 20},{t}\n" for i in range(6) for t in (0, 9))
    )
    radio.write_text(STUDY.replace("a: {devices.count: 5}", "a: {}"))
    mobility = f"devices: {{count: 6, mobility: {{name: trace, path: {trace}}}}}"
    radio.with_name("radio.yaml").write_text(RADIO.replace("devices: {count: 4}", mobility))
    run(plan(radio, [1]), tmp_path / "out", StudyOptions(jobs=1))
    run(plan(radio, [1]), tmp_path / "out", StudyOptions(jobs=1))
    if what == "data":
        trace.write_text(trace.read_text().replace("20,0", "21,0"))
        message = "the data of devices.mobility.path is "
    else:
        from edgefl.scenario.prepared import Identity

        _, *others = Identity.__init__.__defaults__ or ()
        monkeypatch.setattr(Identity.__init__, "__defaults__", (999, *others))
        message = f"the version of results is {RESULTS_VERSION}, here 999"
    with refused_at("", message):
        run(plan(radio, [1]), tmp_path / "out", StudyOptions(jobs=1))


def test_a_directory_of_something_else_is_refused(
    radio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    run(plan(radio), out, StudyOptions(jobs=1))
    with refused_at("", tmp_path):
        run(plan(radio), out, StudyOptions(jobs=1, go_on=False))
    (out / "study.yaml").unlink()
    monkeypatch.delattr(execution, "check_builds")  # the study is refused before its cases are built
    with refused_at("", tmp_path):
        run(plan(radio), out, StudyOptions(jobs=1))


def test_without_out_the_study_goes_on_where_it_was(
    radio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = run(plan(radio, [1]), options=StudyOptions(jobs=1))
    assert run(plan(radio), options=StudyOptions(jobs=1)) == first
    radio.with_name("radio.yaml").write_text(RADIO.replace("count: 4", "count: 7"))
    assert run(plan(radio), options=StudyOptions(jobs=1)) == first.with_name("radio-2")


def test_without_out_other_variants_have_a_folder_of_their_own(
    radio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = run(plan(radio, [1]), options=StudyOptions(jobs=1))
    radio.write_text(STUDY.replace("variants: {", "variants: {c: {devices.count: 6}, "))
    assert run(plan(radio, [1]), options=StudyOptions(jobs=1)) == first, "a variant is added"
    radio.write_text(STUDY.replace("{b: {}, a: {", "{d: {}, e: {"))
    (planned, *_) = dry_run(plan(radio, [1]), None)
    assert planned.startswith("planned"), "no run exists yet"
    assert run(plan(radio, [1]), options=StudyOptions(jobs=1)) == first.with_name("radio-2")


def test_failed_runs_are_done_again_on_demand(radio: Path, tmp_path: Path) -> None:
    radio.write_text(STUDY.replace("variants: {b: {}, a: {devices.count: 5}}\n", FEW).replace("[1", "[3, 1"))
    out = tmp_path / "out"
    with refused_at("", "1 of 3", kind=IncompleteStudy):
        run(plan(radio), out, StudyOptions(jobs=1))
    complete, failed = out / "few" / "seed-1", out / "few" / "seed-2"
    before = about(failed)
    made = runs(out)["few/seed-1"]
    with refused_at("", "few seed 2", "run.json", "--retry", kind=IncompleteStudy):
        run(plan(radio), out, StudyOptions(jobs=1))
    with refused_at("", "seed 2", kind=IncompleteStudy):
        run(plan(radio), out, StudyOptions(jobs=1, retry=True))
    assert about(failed)["error"] == before["error"]
    assert runs(out)[str(complete.relative_to(out))] == made


def test_failed_runs_are_done_again_with_what_has_been_mended(radio: Path, tmp_path: Path) -> None:
    failing = STUDY.replace("variants: {b: {}, a: {devices.count: 5}}\n", FEW).replace("[1, 2]", "[3, 2]")
    radio.write_text(failing)
    out = tmp_path / "out"
    with refused_at("", "few seed 2", kind=IncompleteStudy):
        run(plan(radio), out, StudyOptions(jobs=1))
    shutil.rmtree(out / "few" / "seed-3")  # only the failed run is left to do
    radio.write_text(failing.replace("km2: 3", "km2: 30"))
    with refused_at("", "--retry", kind=IncompleteStudy):
        run(plan(radio), out, StudyOptions(jobs=1))
    run(plan(radio), out, StudyOptions(jobs=1, retry=True))
    assert about(out / "few" / "seed-2")["status"] == State.COMPLETED
    assert "density_per_km2: 30" in (out / "few" / "seed-2" / "scenario.yaml").read_text()


def test_what_was_begun_and_left_is_ended(radio: Path, tmp_path: Path) -> None:
    """A study completes runs interrupted or killed at any time, even before run.json or scenario.yaml was written."""
    undisturbed, out = tmp_path / "undisturbed", tmp_path / "out"
    run(plan(radio), undisturbed, StudyOptions(jobs=1))
    shutil.copytree(undisturbed, out)
    (out / "b" / "seed-1" / "run.json").write_text("")
    (out / "a" / "seed-1" / "scenario.yaml").unlink()
    here = {"pid": os.getpid(), "host": os.uname().nodename}
    dead = {**here, "started": 1, "heartbeat": "2020-01-01T00:00:00+00:00"}
    for name, status in (("a/seed-1", "running"), ("b/seed-2", "running"), ("a/seed-2", "interrupted")):
        told = about(out / name) | {"status": status, "process": dead}
        (out / name / "run.json").write_text(json.dumps(told))
        (out / name / "rounds.csv").write_text("half a li")
    assert state_of(out, Path("b", "seed-1")) is State.PLANNED
    assert state_of(out, Path("b", "seed-2")) is State.STALE
    assert state_of(out, Path("a", "seed-2")) is State.INTERRUPTED
    run(plan(radio), out, StudyOptions(jobs=1))
    for path in undisturbed.rglob("*.csv"):
        assert (out / path.relative_to(undisturbed)).read_bytes() == path.read_bytes()


def claimed(out: Path, run_path: Path = Path("b", "seed-1")) -> Path:
    """Claim a run for a process on another machine."""
    claim = out / "claims" / run_path / "1.json"
    claim.parent.mkdir(parents=True)
    claim.write_text(json.dumps({"pid": 1, "host": "elsewhere", "started": 1}))
    return claim


def test_a_run_in_other_hands_is_left_alone(radio: Path, tmp_path: Path) -> None:
    out, notes = tmp_path / "out", []
    run(plan(radio, [2]), out, StudyOptions(jobs=1))
    claim = claimed(out)
    run(plan(radio), out, StudyOptions(jobs=1, noted=notes.append))
    assert not (out / "b" / "seed-1").exists()
    assert notes == [
        f"other processes are running b seed 1 ({claim.parent});"
        " the same command continues what they leave unfinished"
    ]
    assert code_of("study", radio, "--out", out) == ELSEWHERE, "the comparison lacks runs"
    os.utime(claim, (time.time() - 1000,) * 2)
    run(plan(radio), out, StudyOptions(jobs=1))
    assert state_of(out, Path("b", "seed-1")) is State.COMPLETED


def test_an_error_leaves_no_trace_in_a_run_that_another_process_has(
    radio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error before the claim must not delete the directory, which holds another process's run."""
    out = tmp_path / "out"

    def work(task: RunTask, report: object) -> None:
        claimed(task.directory, task.run.path)
        raise PermissionError("claims")

    monkeypatch.setattr(scheduler, "work", work)
    with refused_at("", "4 of 4", kind=IncompleteStudy):
        run(plan(radio), out, StudyOptions(jobs=1))
    assert not runs(out)


def test_a_study_whose_folder_is_moved_ends_and_goes_on_where_it_is(
    radio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # on a busy machine, a heartbeat would find the claim gone, and end this process, before the study does
    monkeypatch.setattr(run_locks, "BEAT_S", 60.0)
    out, moved = tmp_path / "out", tmp_path / "moved"

    def move(label: str, report: Round | Path) -> None:
        if out.exists():
            out.rename(moved)

    with refused_at("", "--out"):
        run(plan(radio), out, StudyOptions(jobs=1, progress=move))
    assert not out.exists()
    run(plan(radio), moved, StudyOptions(jobs=1))
    assert len(runs(moved)) == 4


def test_a_run_in_other_hands_is_waited_for(radio: Path, tmp_path: Path) -> None:
    out, held = tmp_path / "out", list[str]()
    run(plan(radio, [2]), out, StudyOptions(jobs=1))
    os.utime(claimed(out), (time.time() - STALE_S + 1,) * 2)  # no heartbeat follows
    run(plan(radio), out, StudyOptions(jobs=1, wait=True, elsewhere=held.extend))
    assert held == []
    assert state_of(out, Path("b", "seed-1")) is State.COMPLETED


@pytest.mark.parametrize("content", ["[]", '{"status": 3}', "", '{"status": "running", "process": "x"}'])
def test_a_run_whose_description_is_damaged_has_it_again(content: str, radio: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(plan(radio, [2]), out, StudyOptions(jobs=1))
    before = about(out / "b/seed-2")
    (out / "b/seed-2/run.json").write_text(content)
    run(plan(radio, [2]), out, StudyOptions(jobs=1))
    again = about(out / "b/seed-2")
    assert {**again, "wall_s": 0} == {**again, **before, "wall_s": 0}


def test_parts_of_a_study_make_the_whole(radio: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    run(plan(radio), whole, StudyOptions(jobs=1))
    parts = [run(plan(radio), tmp_path / f"part-{i}", StudyOptions(jobs=1, shard=(i, 3))) for i in (1, 2, 3)]
    assert [len(runs(part)) for part in parts] in ([2, 1, 1], [1, 2, 1])
    assert merge(parts, tmp_path / "merged") == {State.COMPLETED: 4}
    assert merge([whole], tmp_path / "merged") == {State.COMPLETED: 4}, "existing runs stay"
    for path in whole.rglob("*.csv"):
        assert (tmp_path / "merged" / path.relative_to(whole)).read_bytes() == path.read_bytes()
    with refused_at("", "--shard 4/3"):
        run(plan(radio), tmp_path / "part-4", StudyOptions(jobs=1, shard=(4, 3)))


@pytest.mark.parametrize(
    ("radio_text", "study_text", "nouns"),
    [
        (RADIO.replace("count: 4", "count: 7"), STUDY, ("b/seed-1",)),
        (RADIO, STUDY.replace("name: radio", "name: other").replace("{b: {}", "{c: {}"), ("other", "radio")),
    ],
    ids=["runs", "names"],
)
def test_runs_of_two_studies_are_not_merged(
    radio_text: str, study_text: str, nouns: tuple[str, ...], radio: Path, tmp_path: Path
) -> None:
    run(plan(radio), tmp_path / "one", StudyOptions(executor="inline"))
    radio.with_name("radio.yaml").write_text(radio_text)
    radio.write_text(study_text)
    run(plan(radio), tmp_path / "two", StudyOptions(executor="inline"))
    with refused_at("", *nouns):
        merge([tmp_path / "one", tmp_path / "two"], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_a_key_that_is_new_in_edgefl_makes_no_other_run(radio: Path, tmp_path: Path) -> None:
    """A run from before a key existed has a different hash, but is reused if the key has its default."""
    out = tmp_path / "out"
    run(plan(radio), out, StudyOptions(executor="inline"))
    before = runs(out)
    for name in before:
        told = about(out / name)
        told["identity"]["hash"] = "0" * len(told["identity"]["hash"])
        (out / name / "run.json").write_text(json.dumps(told))
    run(plan(radio), out, StudyOptions(executor="inline"))
    assert runs(out) == before


def test_a_part_looks_at_the_runs_that_the_whole_study_looks_at(radio: Path, tmp_path: Path) -> None:
    """In part of a study, as in the whole study, only the run of seed 2, which places no device, fails."""
    few = STUDY.replace("variants: {b: {}, a: {devices.count: 5}}\n", FEW)
    radio.write_text(few.replace("[1, 2]", "[3, 2, 5, 1]"))
    with refused_at("", "1 of 4", kind=IncompleteStudy):
        run(plan(radio), tmp_path / "out", StudyOptions(executor="inline", shard=(2, 2)))
    assert state_of(tmp_path / "out", Path("few", "seed-1")) is State.COMPLETED


def test_two_processes_share_a_directory(radio: Path, tmp_path: Path) -> None:
    """Two processes that begin at once, each with two workers, carry out each run once in total."""
    radio.with_name("radio.yaml").write_text(RADIO.replace("rounds: 2", "rounds: 60"))
    radio.write_text(STUDY.replace("[1, 2]", str(list(range(1, SHARED + 1)))))
    out = tmp_path / "out"
    both = [Command(["study", str(radio), "--out", str(out), "--jobs", "2", "--wait"]) for _ in range(2)]
    for process in both:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
    run(plan(radio), tmp_path / "alone", StudyOptions(jobs=1))
    tables = list((tmp_path / "alone").rglob("rounds.csv"))
    assert len(tables) == 2 * SHARED
    for path in tables:
        path_here = out / path.relative_to(tmp_path / "alone")
        assert path_here.read_bytes() == path.read_bytes()
        assert "resumed" not in about(path_here.parent)
    assert not (out / "claims").exists()


def test_a_directory_takes_no_other_study(radio: Path) -> None:
    """A study of another name, or runs of a variant that a study no longer has, would enter its verdict."""
    out = radio.parent / "out"
    run(plan(radio), out)
    before = (out / "study.yaml").read_text()
    radio.write_text(STUDY.replace("name: radio", "name: other"))
    for refuses in (lambda: run(plan(radio), out), lambda: list(dry_run(plan(radio), out))):
        with refused_at("", "belongs to the study 'radio', not to 'other'"):
            refuses()
    radio.write_text(STUDY.replace("b: {}", "c: {}"))
    with refused_at("", "has runs of 'b', which this study does not have"):
        run(plan(radio), out)
    assert (out / "study.yaml").read_text() == before
    radio.write_text(STUDY.replace("b: {}", "b: {}, c: {devices.count: 3}").replace("[1, 2]", "[1, 2, 3]"))
    assert len(runs(run(plan(radio), out))) == 9
