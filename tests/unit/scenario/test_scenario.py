"""Test errors about a scenario (file, line and remedy), its dump, and the folders in which files are found."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from edgefl.config.yaml_source import Source
from edgefl.engine.selectors import Candidates, Selector
from edgefl.errors import EdgeflError
from edgefl.run.api import simulate
from edgefl.run_directory.circumstances import leaves
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.prepared import Identity, Prepared
from edgefl.scenario.scenario import Scenario, dump, load
from tests.refusals import refused_at

GOOD = """\
name: small
devices: {count: 4}
sessions: {name: schedule, count: 2, rounds: 3}
learning:
  dataset: digits
  model: logistic
  algorithm: {name: fedprox, mu: 0.5}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "a.yaml"
    path.write_text(text)
    return path


def test_dump_is_complete_and_loads_as_the_same(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, GOOD))
    text = dump(loaded)
    for default in ("radius_m: 250.0", "carrier_hz: 3500000000.0", "lr: 0.01", "name: previous"):
        assert default in text
    again = load(write(tmp_path, text))
    assert dump(again) == text
    assert again.learning.algorithm.mu == 0.5


def test_every_error_is_reported_at_once(tmp_path: Path) -> None:
    bad = GOOD.replace("count: 4", "count: 0").replace("digits", "digit")
    with pytest.raises(EdgeflError) as error:
        load(write(tmp_path, bad))
    assert len(str(error.value).splitlines()) == 2


def test_numbers_as_people_write_them(tmp_path: Path) -> None:
    """PyYAML reads 20e6 as text, but both notations are numbers in a scenario."""
    for number in ("20e6", "20.0e+6", "2.0e7", "20_000_000"):
        path = write(tmp_path, GOOD + f"radio: {{bandwidth_hz: {number}}}\n")
        assert load(path).radio.bandwidth_hz == 20e6


def test_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    keys = ["learning.algorithm.mu=2", "devices.mobility.doppler_speed_m_s=3", "learning.warm_start=average"]
    loaded = load(path, keys, 7)
    assert loaded.seed == 7
    assert loaded.learning.algorithm.mu == 2
    assert loaded.devices.mobility.doppler_speed_m_s == 3
    assert type(loaded.learning.warm_start).__name__ == "Average"
    for override, message in [
        ("learning.local.lr", "--set learning.local.lr: write --set KEY=VALUE"),
        ("learning.local.lr=-1", "--set learning.local.lr=-1 learning.local.lr: must be > 0"),
        ("devices={count: -1}", "--set devices={count: -1} devices.count: must be >= 1"),
        ("learning.local.lr.x=1", "'lr' is 0.01 and has no keys below it"),
        ("learnin.lr=1", "--set learnin.lr=1 learnin: unknown key: did you mean 'learning'?"),
        ("learning..lr=1", "is not a dotted key"),
        ("learning.local.lr=[", "is not a YAML value"),
        (
            "devices.count=",
            f"--set devices.count= (on {path}:2) devices: set either count or density_per_km2",
        ),
    ]:
        with refused_at("", message):
            load(write(tmp_path, GOOD + "  local: {lr: 0.01}\n"), [override])


def test_a_name_too_long_for_a_folder_is_refused(tmp_path: Path) -> None:
    assert load(write(tmp_path, GOOD.replace("small", "x" * 200))).name == "x" * 200
    with refused_at("name", "must have at most 200 characters"):
        load(write(tmp_path, GOOD.replace("small", "x" * 201)))


def test_later_errors_name_the_line(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, GOOD))
    with pytest.raises(EdgeflError, match=r"a\.yaml:5 learning\.dataset: gone"), loaded.naming_places():
        raise EdgeflError("gone", ("learning", "dataset"))


def test_a_scenario_is_frozen(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, GOOD))
    for section in (loaded, loaded.radio):
        with pytest.raises(EdgeflError, match=r"cannot be assigned.*with_\("):
            section.__setattr__(next(iter(type(section).model_fields)), 3)


def test_scenarios_of_the_same_values_are_equal(tmp_path: Path) -> None:
    one, other = load(write(tmp_path, GOOD)), load(write(tmp_path, f"# moved by a line\n{GOOD}"))
    assert one == other
    assert one != other.with_(seed=other.seed + 1)


def test_unreadable_files(tmp_path: Path) -> None:
    with refused_at("", "none.yaml"):
        Source(tmp_path / "none.yaml")
    with refused_at("", "a mapping"):
        Source(write(tmp_path, "- 1\n"))


SCENARIO = """
name: small
devices: {count: 1, mobility: {name: trace, path: traces/a.csv}}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 1000, flops_per_sample: 1}
"""
TRACE = "t,id,x,y\n0,a,20,20\n9,a,30,30\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a scenario and its trace, and make another folder the current folder."""
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
    assert path_of(load(home / "small.yaml")) == Path("traces/a.csv"), "its reader reports that it is missing"


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


def test_a_stored_run_does_not_differ_by_the_path_of_a_file(home: Path) -> None:
    """A run's scenario.yaml names the file, whose content its run.json identifies."""
    prepared = Prepared(load(home / "small.yaml"), Loaded(download=False))
    stored = Identity(dict(leaves(prepared.values)), prepared.identity.data)
    assert "devices.mobility.path" in stored.scenario
    assert prepared.identity.differences(stored) == []


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
