"""Test that shipped scenarios are found from any folder, and that errors name packages that hide edgefl's own."""

import hashlib
import tomllib
from pathlib import Path

import pytest
import yaml

from edgefl.config import shipped
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.prepared import LENGTH, Prepared
from edgefl.scenario.scenario import Scenario, load
from edgefl.studies.validation import check_build
from tests.refusals import refused_at
from tests.tools.called import code_of

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_of_the_users_comes_before_a_name(elsewhere: Path) -> None:
    assert shipped.find(Path("quickstart"), "scenario") == shipped.FOLDER / "quickstart.yaml"
    assert shipped.find(Path("quickstart"), "study") == shipped.FOLDER / "studies" / "quickstart.yaml"
    (elsewhere / "quickstart").write_text("name: mine\n")
    assert shipped.find(Path("quickstart"), "scenario") == Path("quickstart")


def test_the_paths_of_the_readme_work_from_anywhere(elsewhere: Path) -> None:
    for path in ("scenarios/quickstart.yaml", "scenarios/studies/quickstart.yaml"):
        assert shipped.find(Path(path), "scenario") == shipped.HOME / path
    trace = Path("scenarios/traces/grid.fcd.xml")
    assert shipped.data(trace) == shipped.HOME / trace
    (elsewhere / "scenarios/traces").mkdir(parents=True)
    trace.write_text("mine")
    assert shipped.data(trace) == trace
    # the path of a missing user file is unchanged, so that its reader names it
    assert shipped.find(Path("none.yaml"), "scenario") == Path("none.yaml")


def test_a_run_that_reads_a_shipped_trace_has_a_name_from_anywhere() -> None:
    """A run's identity contains the checksums of its input files, independent of the current folder."""
    path = Path("scenarios/traces/band_load.csv")
    radio = {"sharing": "dynamic", "budget": {"power_over_share": "per_resource_block"}}
    scenario = Scenario.model_validate(
        {
            "name": "traced",
            "devices": {"count": 1},
            "radio": {"preset": "journal", **radio, "background": {"name": "trace", "path": str(path)}},
            "sessions": {"name": "schedule", "count": 1, "rounds": 1},
            "workload": {"payload_bits": 1, "flops_per_sample": 1},
        }
    )
    checksum = hashlib.sha256((shipped.HOME / path).read_bytes()).hexdigest()
    assert Prepared(scenario, Loaded(download=False)).identity.data == {
        "radio.background.path": checksum[:LENGTH]
    }


def test_an_unknown_name_is_one_line_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("run", "quikstart") == 2
    assert "did you mean 'quickstart'?" in capsys.readouterr().err


def test_only_a_similar_file_is_proposed(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("sw.yaml").touch()
    for given, proposal in (("nosw.yaml", "check the path"), ("swf.yaml", "did you mean 'sw.yaml'?")):
        assert code_of("validate", given) == 2
        assert proposal in capsys.readouterr().err


def test_scenarios_are_listed_with_their_first_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code_of("scenarios")
    listed = capsys.readouterr().out
    assert "A first scenario: 40 devices in one 5G cell" in listed
    assert "schema" not in listed
    for kind in ("scenario", "study"):
        assert all(f"  {name} " in listed for name in shipped.names(kind))


@pytest.mark.parametrize("folder", [shipped.FOLDER, shipped.EXAMPLES], ids=lambda folder: folder.name)
def test_all_are_copied_and_nothing_is_overwritten(folder: Path, elsewhere: Path) -> None:
    written = shipped.copy(elsewhere / "mine", folder)
    for name in ("studies/bandwidth_sweep.yaml", "traces/grid.fcd.xml"):
        assert (elsewhere / "mine" / name in written) == (folder == shipped.FOLDER)
    for name in ("my_learner.py", "outside.yaml", "notebooks/lesson_1_radio.ipynb"):
        assert (elsewhere / "mine" / name in written) == (folder == shipped.EXAMPLES)
    assert {path for path in (elsewhere / "mine").rglob("*") if path.is_file()} == set(written)
    assert shipped.copy(elsewhere / "mine", folder) == written  # identical files may already exist
    written[0].write_text("mine")
    with refused_at("", written[0].name):
        shipped.copy(elsewhere / "mine", folder)


def test_examples_are_listed_with_what_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code_of("examples")
    listed = capsys.readouterr().out.splitlines()
    assert all(len(line.split("  ", 1)[1].strip()) > 20 for line in listed if "riverside/" not in line)
    copied = shipped.copy(tmp_path, shipped.EXAMPLES)
    assert [line.split()[0] for line in listed] == [str(file.relative_to(tmp_path)) for file in copied]


def test_the_wheel_and_the_source_archive_take_what_the_links_lead_to() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    links = sorted(path.name for path in (ROOT / "edgefl").iterdir() if path.is_symlink())
    assert build["targets"]["wheel"]["force-include"] == {name: f"edgefl/{name}" for name in links}
    assert sorted(build["exclude"]) == [f"/edgefl/{name}" for name in links]
    assert set(links) <= set(build["targets"]["sdist"]["only-include"])
    assert {folder.name for folder in (shipped.FOLDER, shipped.EXAMPLES)} <= set(links)


def test_commands_that_read_runs_are_commands_of_edgefl(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("compare", "nowhere") == 2
    assert capsys.readouterr().err == (
        "edgefl: error: no folder nowhere: give the folder of a run or of a study\n"
    )
    for command in ("compare", "sweep", "settings", "drift", "network", "costs", "theory", "papers"):
        assert code_of(command, "--help") == 0
        assert f"Usage: edgefl {command}" in capsys.readouterr().out


TRACED = [path for path in shipped.names("scenario").values() if "path: scenarios/" in path.read_text()]


@pytest.mark.parametrize("file", TRACED, ids=lambda file: file.stem)
def test_files_that_come_with_edgefl_are_read_from_anywhere(file: Path) -> None:
    scenario = load(file, ["learning=null", "workload={payload_bits: 1, flops_per_sample: 1}"])
    assert len(Prepared(scenario, Loaded(download=False)).identity.data) == 1  # the checksum of the trace
    assert check_build(scenario).devices


MOVING = {"handover_hexagonal", "membership_random_waypoint", "labels_by_zone", "commute_clock"}
MOVING |= {path.stem for path in shipped.FOLDER.glob("mobility_*.yaml")}


@pytest.mark.parametrize("name", sorted(MOVING))
def test_who_moves_does_so_in_real_time_and_the_file_says_what_to_look_at(name: str) -> None:
    text = (shipped.FOLDER / f"{name}.yaml").read_text()
    given = yaml.safe_load(text)
    assert "\n# Look at " in text
    assert float(given.get("radio", {}).get("bandwidth_hz", 100e6)) >= 100e6
    assert given["rounds"]["every_s"] >= 1
