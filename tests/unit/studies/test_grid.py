"""Test a study's file: grids, zipped lists, labels, and a study without a proposed variant."""

from pathlib import Path

import pytest

from edgefl import analysis, load_scenario
from edgefl.studies import Failed, IncompleteStudy, StudyOptions, StudyPlan, plan, run
from edgefl.studies.study_file import _label_texts
from tests.refusals import refused_at
from tests.unit.studies.asked import written

STUDY = "name: small\nscenario: radio.yaml\nseeds: [2, 1]\nvariants: {b: {}, a: {}}\n"


def planned(folder: Path, grid: str, study: str = STUDY) -> StudyPlan:
    return plan(written(folder, f"{study}grid: {grid}\n"))


def test_zipped_keys_change_together(tmp_path: Path) -> None:
    found = planned(tmp_path, "{size: {zip: {devices.count: [5, 50], radio.bandwidth_hz: [1.0e+6, 1.0e+7]}}}")
    sizes = [(run.scenario.devices.count, run.scenario.radio.bandwidth_hz) for run in found.runs[:4]]
    assert sizes == [*[(5, 1e6)] * 2, *[(50, 1e7)] * 2]
    assert found.runs[0].path == Path("size-5-1-MHz", "b", "seed-2")
    assert found.runs[0].member.setting == {"size": "5 1 MHz"}
    assert found.runs[0].member.settings == {"size": ("5 1 MHz", "50 10 MHz")}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("1.0e+6", "must be a list of values, or labels with overrides: write [1.0e+6] for one value"),
        ("proportional_fair", "write [proportional_fair]"),
        ("", "has no values"),
    ],
)
def test_an_axis_of_one_value_is_a_list(tmp_path: Path, values: str, message: str) -> None:
    with refused_at("grid.radio.bandwidth_hz", message):
        planned(tmp_path, f"{{radio.bandwidth_hz: {values}}}")


def test_every_key_can_be_swept(tmp_path: Path) -> None:
    """Labels are distinct and readable for top-level keys, negative values, and components with parameters."""
    grid = (
        "{duration_s: [1.0, 2.0], name: [x, y], devices.transmit_power_dbm: [-10.0, 10.0],"
        " rounds.selector: [all, {name: uniform, count: 2}]}"
    )
    found = planned(tmp_path, grid)
    assert len({run.path for run in found.runs}) == 2 * 2 * 2**4
    assert {run.scenario.duration_s for run in found.runs} == {1.0, 2.0}
    assert {run.scenario.name for run in found.runs} == {"x", "y"}
    assert {run.member.setting["selector"] for run in found.runs} == {"all", "uniform count 2"}
    assert {run.member.setting["transmit_power"] for run in found.runs} == {"-10 dBm", "10 dBm"}


def test_a_variant_may_add_to_a_component_of_the_grid(tmp_path: Path) -> None:
    """The component gets a key, its other keys keep their values, and other variants do not get the key."""
    variants = STUDY.replace("{b: {}, a: {}}", "{b: {rounds.selector.kappa: 0.5}, a: {}}")
    found = planned(tmp_path, "{rounds.selector: [{name: fedl, count: 2}, {name: fedl, count: 3}]}", variants)
    chosen = [run.scenario.rounds.selector for run in found.runs[:4]]
    assert [(one.count, one.kappa == 0.5) for one in chosen] == [(2, True), (2, False), (3, True), (3, False)]


def test_a_variant_may_change_a_setting_that_its_author_named(tmp_path: Path) -> None:
    """A label of the author's own states no value; a variant's values do not reach other variants."""
    variants = STUDY.replace("{b: {}, a: {}}", "{b: {radio.bandwidth_hz: 1.0e+6}, a: {}}")
    found = planned(tmp_path, "{band: {wide: {radio: {bandwidth_hz: 2.0e+7}}}}", variants)
    assert [run.scenario.radio.bandwidth_hz for run in found.runs[:2]] == [1e6, 2e7]


def test_order_is_the_files(tmp_path: Path) -> None:
    found = planned(tmp_path, "{devices.count: [9, 8]}")
    assert [run.path.as_posix() for run in found.runs[:4]] == [
        f"count-{count}/{variant}/seed-2" for count in (9, 8) for variant in "ba"
    ]
    assert found.runs[0].member.variants == ("b", "a")
    assert found.runs[0].member.reference is None


PLAIN = STUDY.partition("variants")[0]


def test_a_sweep_needs_no_variants(tmp_path: Path) -> None:
    """Without variants, a sweep has one variant: the unchanged scenario, with its name."""
    found = planned(tmp_path, "{radio.bandwidth_hz: [1.0e+6, 2.0e+6]}", PLAIN)
    assert [run.path.as_posix() for run in found.runs] == [
        f"bandwidth-{mhz}-MHz/radio/seed-{seed}" for seed in (2, 1) for mhz in (1, 2)
    ]
    assert {run.member.variants for run in found.runs} == {("radio",)}
    assert found.runs[0].label == "bandwidth 1 MHz seed 2"  # omits the only variant's name
    named = planned(tmp_path, "{devices.count: [4, 5]}", f"{PLAIN}variants: {{as it is: }}\n")
    assert named.runs[0].path == Path("count-4", "as-it-is", "seed-2")
    with refused_at("", "varies nothing: define variants, a grid, or both"):
        planned(tmp_path, "{}", PLAIN)
    with refused_at("", "study.yaml", "is a study; `edgefl study"):
        load_scenario(tmp_path / "study.yaml")
    with refused_at("", "radio.yaml", "edgefl run"):
        plan(tmp_path / "radio.yaml")


def test_keys_of_other_tools_name_keys_that_a_study_has(tmp_path: Path) -> None:
    """Errors about other tools' keys suggest keys that a study really has, unlike `stop.accuracy`."""
    with refused_at("sweep", "edgefl calls it grid"):
        planned(tmp_path, "{}", f"{PLAIN}sweep: {{radio.bandwidth_hz: [1.0e+6]}}\n")
    with refused_at("target", "unknown key here; write question.target"):
        planned(tmp_path, "{}", f"{PLAIN}target: 0.8\n")


def test_two_labels_need_two_folders(tmp_path: Path) -> None:
    with refused_at("", "'a b' and 'a-b' would have the same folder, a-b"):
        planned(tmp_path, "{}", f"{PLAIN}variants: {{a b: {{}}, a-b: {{}}}}\n")
    with refused_at("", "'1 MHz' and '1-MHz' would have the same folder, 1-MHz"):
        planned(tmp_path, "{width: {1 MHz: {radio.bandwidth_hz: 1.0e+6}, 1-MHz: {}}}", PLAIN)


def test_folders_of_an_earlier_version_are_read_and_renamed_to_continue(tmp_path: Path) -> None:
    found = planned(tmp_path, "{radio.bandwidth_hz: [1.0e+6, 2.0e+6]}", PLAIN)
    out = run(found, tmp_path / "out", StudyOptions(executor="inline"))
    for path in out.glob("bandwidth-*"):
        path.rename(path.with_name(path.name.replace("-MHz", " MHz")))
    assert list(analysis.load_settings(out)) == [(("bandwidth", "1 MHz"),), (("bandwidth", "2 MHz"),)]
    with refused_at("", "bandwidth-", " MHz/radio/seed-", "earlier version", "(bandwidth-"):
        run(found, out, StudyOptions(executor="inline"))
    for path in out.glob("bandwidth-*"):
        path.rename(path.with_name(path.name.replace(" MHz", "-MHz")))
    before = {path: path.stat().st_mtime_ns for path in out.rglob("run.json")}
    run(found, out, StudyOptions(executor="inline"))
    assert {path: path.stat().st_mtime_ns for path in out.rglob("run.json")} == before


def test_equal_failures_have_one_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object, **__: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr("edgefl.studies.one_run._begin", wrong)
    failures: list[Failed] = []
    options = StudyOptions(executor="inline", failed=failures.append)
    with pytest.raises(IncompleteStudy):
        run(planned(tmp_path, "{}"), tmp_path / "out", options)
    assert [failure.error for failure in failures] == ["KeyError: 'bug'"] * 4  # two variants and seeds
    assert ["Traceback" in failure.trace for failure in failures] == [True, False, False, False]


def test_a_study_may_name_a_shipped_scenario(tmp_path: Path) -> None:
    """A misspelled name is an error at the key."""
    text = "name: small\nscenario: {}\nseeds: [1]\nreference: a\nvariants: {{a: {{}}}}\n"
    (run,) = plan(written(tmp_path, text.format("quickstart"))).runs
    assert run.scenario.name == "quickstart"
    with refused_at("scenario", "study.yaml:2", "did you mean 'quickstart'?"):
        plan(written(tmp_path, text.format("quikstart")))


def test_labels_have_the_units_that_tables_have() -> None:
    assert _label_texts("radio.bandwidth_hz", [5e6, 10e6]) == ["5 MHz", "10 MHz"]
    assert _label_texts("x_s", [{"name": "gauss", "a": 1}, True, "20 s"]) == ["gauss a 1", "True", "20 s"]
