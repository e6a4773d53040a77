"""Test that a scenario's files are found beside it or in the current folder, and in runs from any folder."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from edgefl.engine.selectors import Candidates, Selector
from edgefl.run.api import simulate
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.prepared import Prepared
from edgefl.scenario.scenario import Scenario, dump, load

SCENARIO = """
name: small
devices: {count: 1, mobility: {name: trace, path: traces/a.csv}}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 1000, flops_per_sample: 1}
"""
TRACE = "t,id,x,y\n0,a,20,20\n9,a,30,30\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a scenario and its trace, and make another folder the current one."""
    (tmp_path / "home/traces").mkdir(parents=True)
    (tmp_path / "home/small.yaml").write_text(SCENARIO)
    (tmp_path / "home/traces/a.csv").write_text(TRACE)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "home"


def path_of(scenario: Scenario) -> Path:
    return Path(str(scenario.devices.mobility.path))


def test_beside_the_scenario_then_in_the_current_folder(home: Path) -> None:
    Path("traces").mkdir()
    Path("traces/a.csv").write_text(TRACE)
    assert path_of(load(home / "small.yaml")) == home / "traces/a.csv"
    (home / "traces/a.csv").unlink()
    assert path_of(load(home / "small.yaml")) == Path.cwd() / "traces/a.csv"
    assert path_of(load("../home/small.yaml")) == Path.cwd() / "traces/a.csv"
    Path("traces/a.csv").unlink()
    assert path_of(load(home / "small.yaml")) == Path("traces/a.csv"), "its reader says that it is missing"


def test_a_path_in_a_dict_or_on_the_command_line(home: Path) -> None:
    Path("b.csv").write_text(TRACE)
    assert path_of(load(home / "small.yaml", ["devices.mobility.path=b.csv"])) == Path.cwd() / "b.csv"


def test_scenario_yaml_loads_anywhere(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulate(load("../home/small.yaml"), "run", device="cpu")
    monkeypatch.chdir(tmp_path)
    again = load(tmp_path / "elsewhere" / run / "scenario.yaml")
    assert dump(again) == (tmp_path / "elsewhere/run/scenario.yaml").read_text()


def test_what_a_run_is_does_not_tell_where_its_files_lie(home: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(home, tmp_path / "moved")
    here, there = (
        Prepared(load(folder / "small.yaml"), Loaded(download=False)).identity for folder in (home, moved)
    )
    assert here == there
    (moved / "traces/a.csv").write_text(TRACE.replace("30", "31"))
    assert Prepared(load(moved / "small.yaml"), Loaded(download=False)).identity != here


class Listed(Selector):
    """A user's selector that reads a file itself, so that edgefl knows only the file's name."""

    order: str

    def wanted(self, present: int) -> int:
        return present

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        return list(candidates.ids)


def test_the_name_of_a_file_counts_whose_content_is_not_known(home: Path) -> None:
    scenario = load(home / "small.yaml")
    first, second = (
        Prepared(scenario.with_(rounds__selector=Listed(order=order)), Loaded(download=False)).identity
        for order in ("/a.txt", "/b.txt")
    )
    assert first.hash != second.hash
    assert first.differences(second) == ["rounds.selector.order is /b.txt, here /a.txt"]


def test_files_that_come_with_edgefl_keep_their_name(home: Path) -> None:
    assert path_of(load("mobility_trace")) == Path("scenarios/traces/grid.fcd.xml")


def test_a_data_set_beside_the_scenario(home: Path) -> None:
    """A run accepts images in folders as a data set, which gets a checksum although it is a folder."""
    pillow = pytest.importorskip("PIL.Image")
    for label in ("cat", "dog"):
        (home / "pets" / label).mkdir(parents=True)
        for number in range(20):
            pillow.fromarray(np.full((8, 8), number, np.uint8)).save(home / f"pets/{label}/{number}.png")
    text = SCENARIO.replace("workload: {payload_bits: 1000, flops_per_sample: 1}", "")
    text = text.replace(", mobility: {name: trace, path: traces/a.csv}", "")
    dataset = "{name: image_folder, path: pets, size: [8, 8]}"
    (home / "pets.yaml").write_text(
        f"{text}learning: {{dataset: {dataset}, model: logistic, partition: iid, local: {{steps: 1, batch: 4}}}}\n"
    )
    run = simulate(load(home / "pets.yaml"), "pets-run", device="cpu")
    assert load(Path(run) / "scenario.yaml").learning.dataset.path == home / "pets"


@pytest.mark.parametrize("pattern", ["traces", "traces/*.csv", "tr?ces/**/[ab].csv"])
def test_folders_and_patterns_lie_beside_the_scenario_too(home: Path, pattern: str) -> None:
    """A run's identity changes if a file of the folder or pattern changes, is added, or is renamed."""
    (home / "traces/b.csv").write_text("t,x,y\n0,1,2\n9,1,2\n")
    changes = [f"devices.mobility.path={pattern}", "devices.count=all"]

    def identity() -> str:
        scenario = load(home / "small.yaml", changes)
        assert path_of(scenario) == home / pattern
        return Prepared(scenario, Loaded(download=False)).identity.hash

    first = identity()
    assert identity() == first
    (home / "traces/b.csv").write_text("t,x,y\n0,1,2\n9,1,3\n")
    second = identity()
    (home / "traces/b.csv").rename(home / "traces/a2.csv" if "[" not in pattern else home / "traces/c.csv")
    assert len({first, second, identity()}) == 3
