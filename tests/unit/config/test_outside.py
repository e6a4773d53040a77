"""Test that untrusted scenarios run no code, and that a user's components are found, with one-line errors."""

import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

import edgefl
from edgefl.commands import cli
from edgefl.config import outside, registry
from edgefl.errors import EdgeflError
from edgefl.studies.workers import Failure
from tests.refusals import refused_at
from tests.tools.called import code_of
from tests.tools.forked import Command

SCENARIO = """\
name: mine
devices: {count: 2, mobility: "%s"}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 1000000, flops_per_sample: 1000}
"""
PARTS = """\
from pathlib import Path
Path(__file__).with_name("it_ran").touch()
from edgefl.mobility import Mobility
from edgefl.mobility.static import Static

class Mine(Static):
    "Stand still."

class Lacks(Mobility):
    "Lack the methods."

class Fails(Static):
    "Fail at the start."

    def start(self, *arguments, **options):
        return 1 / 0

class Changes(Static):
    "Change a parameter at the start."

    def start(self, *arguments, **options):
        self.doppler_speed_m_s = 1.0

class Few(Static):
    "Take fewer arguments than edgefl gives."

    def start(self):
        return None

class NoMobility:
    pass

here = 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder with a user's components, and another current folder; scenarios may not run code."""
    (tmp_path / "somewhere").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.delenv(outside.ALLOW, raising=False)
    (tmp_path / "somewhere" / "mine_only.py").write_text(PARTS)
    yield tmp_path / "somewhere"
    sys.modules.pop("mine_only", None)


def scenario(folder: Path, part: str) -> Path:
    file = folder / "mine.yaml"
    file.write_text(SCENARIO % part)
    return file


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_strangers_scenario_runs_no_code(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = scenario(folder, "mine_only:Mine")
    assert code_of(*command.split(), file) == 2
    said = capsys.readouterr().err
    assert f"{file}:2 devices.mobility: 'mine_only:Mine' is code from outside edgefl" in said
    assert "--allow-code" in said
    assert not (folder / "it_ran").exists()
    assert "mine_only" not in sys.modules


def test_with_leave_it_is_found_in_the_scenarios_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(outside.ALLOW, "0")  # this value denies permission
    file = scenario(folder, "mine_only:Mine")
    with refused_at("devices.mobility", "--allow-code"):
        edgefl.load_scenario(file)
    assert code_of("validate", "--allow-code", file) == 0
    assert (folder / "it_ran").exists()


def test_what_is_imported_already_needs_no_leave(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    import mine_only  # type: ignore[import-not-found]

    loaded = edgefl.load_scenario(scenario(folder, "mine_only:Mine"))
    assert isinstance(loaded.devices.mobility, mine_only.Mine)


def test_an_installed_package_needs_no_leave(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(registry, "_entry_points", lambda kind: {"theirs": "mine_only:Mine"})
    assert edgefl.load_scenario(scenario(folder, "theirs")).devices.count == 2


def test_the_scenario_of_a_run_needs_no_leave_for_an_installed_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scenario.yaml of a run names the class itself, and so do `edgefl resume` and other runs of this file."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(registry, "_entry_points", lambda kind: {"theirs": "mine_only:Mine"})
    assert edgefl.load_scenario(scenario(folder, "mine_only:Mine")).devices.count == 2
    del sys.modules["mine_only"]
    with pytest.raises(EdgeflError, match="your consent"):
        edgefl.load_scenario(scenario(folder, "mine_only:Changes"))


def test_a_name_of_two_installed_packages_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages are installed by hand: a folder .dist-info with the name and the entry points of each."""
    monkeypatch.syspath_prepend(str(folder))
    for package, name in (("one", "Mine"), ("two", "Changes"), ("three", "Mine")):
        about = folder / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        points = f"[edgefl.mobility]\n{package} = mine_only:{name}\nclash = mine_only:{name}\n"
        (about / "entry_points.txt").write_text(points)
    registry._entry_points.cache_clear()
    try:
        both = "mine_only:Changes and mine_only:Mine: write one of these"
        with refused_at("devices.mobility", "register 'clash' for several components", both):
            edgefl.load_scenario(scenario(folder, "clash"))
        assert edgefl.load_scenario(scenario(folder, "one")).devices.count == 2
    finally:
        registry._entry_points.cache_clear()


@pytest.mark.parametrize(
    "name", ["os:system", "subprocess:Popen", "edgefl.commands.cli:main", "builtins:eval"]
)
def test_what_is_no_component_is_not_called(name: str, folder: Path) -> None:
    with refused_at("devices.mobility", name):
        edgefl.load_scenario(scenario(folder, name))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            "mine_only:Nobody",
            "mine_only.py has no Nobody; it defines Mine, Lacks, Fails, Changes, Few, NoMobility",
        ),
        ("mine_only:here", "here is not a class"),
        (
            "mine_only:NoMobility",
            "'mine_only:NoMobility' is not a Mobility: make it extend edgefl.mobility.Mobility",
        ),
        (
            "mine_only:Lacks",
            "'mine_only:Lacks' lacks methods that every Mobility needs: write area_radius_m(self, ",
        ),
        (
            "nowhere_at_all:Part",
            "packages: run the command in the folder that contains nowhere_at_all",
        ),
        ("broken_part:Part", "broken_part.py:2 SyntaxError"),
        ("raising_part:Part", "raising_part.py:1 ZeroDivisionError: division by zero"),
        (
            "importing_part:Part",
            "No module named 'no_such_package', which importing_part imports: install it",
        ),
        (
            "methodical_part:Part",
            "methodical_part.py:2 TypeError: Part.typical_input is a value, not a method: write typical_input",
        ),
        (
            "misspelt_part:Part",
            "has a method 'area_radius', which edgefl never calls: did you mean 'area_radius_m'?",
        ),
    ],
)
def test_a_part_that_cannot_be_loaded_is_one_message(
    part: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(outside.ALLOW, "1")
    (folder / "broken_part.py").write_text("x = 1\ndef f(:\n")
    (folder / "raising_part.py").write_text("1 / 0\n")
    (folder / "importing_part.py").write_text("import no_such_package\n")
    (folder / "misspelt_part.py").write_text(
        "from edgefl.mobility.static import Static\n"
        "class Part(Static):\n    def area_radius(self, cell):\n        return 9.0\n"
    )
    (folder / "methodical_part.py").write_text(
        "from edgefl.learning.models import Model\n"
        "class Part(Model):\n    def typical_input(self):\n        return (28, 28)\n"
    )
    with pytest.raises(EdgeflError) as error:
        edgefl.load_scenario(scenario(folder, part))
    assert f"{folder / 'mine.yaml'}:2 devices.mobility: " in str(error.value)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_torchvision_of_another_pytorch_has_a_remedy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torchvision from another package index than PyTorch causes an error that names the remedy."""
    monkeypatch.setenv(outside.ALLOW, "1")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    (folder / "torchvision").mkdir()
    (folder / "torchvision" / "__init__.py").write_text("raise RuntimeError('operator nms does not exist')\n")
    (folder / "needing_vision.py").write_text("import torchvision\n")
    with pytest.raises(EdgeflError) as error:
        edgefl.load_scenario(scenario(folder, "needing_vision:Part"))
    assert "RuntimeError: operator nms does not exist; the installed torchvision" in str(error.value)
    assert f"does not match this PyTorch ({version('torch')}): install both from the same index" in str(
        error.value
    )
    assert "\n" not in str(error.value)


def test_a_part_that_changes_itself_is_blamed_by_file_and_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scenario is frozen with all its components, so a component that changes itself at the start is refused."""
    assert code_of("validate", "--allow-code", scenario(folder, "mine_only:Changes")) == 2
    line = PARTS.splitlines().index("        self.doppler_speed_m_s = 1.0") + 1
    blamed = f"{folder / 'mine_only.py'}:{line} start: AttributeError: doppler_speed_m_s cannot be assigned"
    assert f"{blamed}, since a component is frozen" in capsys.readouterr().err


def test_a_part_that_fails_at_work_is_blamed_by_file_and_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = scenario(folder, "mine_only:Fails")
    assert code_of("validate", "--allow-code", file) == 2
    line = PARTS.splitlines().index("        return 1 / 0") + 1
    said = capsys.readouterr().err
    assert f"{folder / 'mine_only.py'}:{line} start: ZeroDivisionError: division by zero" in said
    assert "Traceback" not in said
    monkeypatch.setenv("EDGEFL_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["validate", str(file)])


SLIPS = """\
from dataclasses import dataclass
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.engine.selectors import Selector
from edgefl.learning.lr_schedules import LrSchedule

def slip(*arguments):
    raise ValueError("my mistake")

class Chooses(Selector):
    "Fail."
    select = slip

@dataclass(frozen=True)
class Shares(EqualShare):
    "Fail."
    shares = slip

@dataclass(frozen=True)
class Sees(UMi):
    "Fail."
    los_probability = slip

class Falls(LrSchedule):
    "Fail."
    shape = slip
"""


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("rounds.selector", "Chooses"),
        ("radio.scheduler", "Shares"),
        ("radio.path_loss", "Sees"),
        ("learning.local.lr_schedule", "Falls"),
    ],
)
def test_a_value_error_of_a_users_method_is_no_error_of_the_scenario(
    key: str, part: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine_only.py").write_text(SLIPS)
    file = folder / "mine.yaml"
    file.write_text(
        "name: mine\ndevices: {count: 2}\nsessions: {name: schedule, count: 1, rounds: 1}\n"
        "learning: {dataset: digits, model: logistic}\n"
    )
    assert (
        code_of("run", "--allow-code", file, "--out", folder / "run", "--set", f"{key}=mine_only:{part}") == 2
    )
    line = SLIPS.splitlines().index('    raise ValueError("my mistake")') + 1
    assert f"{folder / 'mine_only.py'}:{line} slip: ValueError: my mistake" in capsys.readouterr().err


def test_a_method_with_too_few_arguments_is_blamed_where_it_is_defined(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("validate", "--allow-code", scenario(folder, "mine_only:Few")) == 2
    line = PARTS.splitlines().index("    def start(self):") + 1
    said = capsys.readouterr().err
    assert f"{folder / 'mine_only.py'}:{line} start: TypeError: Few.start() got an unexpected" in said
    assert "Traceback" not in said


def test_classes_of_one_name_in_two_files_are_both_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error of a call has only the class's name."""
    monkeypatch.setenv(outside.ALLOW, "1")
    twin = "from edgefl.mobility.static import Static\nclass Few(Static):\n    'Stand still.'\n"
    (folder / "a_twin.py").write_text(
        f"{twin}    def start(self, *a, **k):\n        return super().start(*a, **k)\n"
    )
    with outside.looking_in(folder):
        outside.load("a_twin:Few")
    assert code_of("validate", "--allow-code", scenario(folder, "mine_only:Few")) == 2
    line = PARTS.splitlines().index("    def start(self):") + 1
    places = [f"{folder / 'a_twin.py'}:4 start", f"{folder / 'mine_only.py'}:{line} start"]
    said = capsys.readouterr().err
    assert f"{' or '.join(places)}: TypeError: Few.start() got an unexpected" in said


def test_a_failure_of_a_users_part_in_a_study_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(outside.ALLOW, "1")
    with outside.looking_in(folder):
        part = outside.load("mine_only:Fails")
    with pytest.raises(ZeroDivisionError) as raised:
        part().start()
    failure = Failure.of(raised.value)
    assert failure.trace == ""
    assert failure.error.startswith(f"{folder / 'mine_only.py'}:")


def test_two_folders_with_modules_of_one_name_are_not_mixed_up(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(outside.ALLOW, "1")
    edgefl.load_scenario(scenario(folder, "mine_only:Mine"))
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine_only.py").write_text(PARTS)
    with refused_at("devices.mobility", "mine_only"):
        edgefl.load_scenario(scenario(other, "mine_only:Mine"))


def test_resuming_asks_for_leave_too(folder: Path) -> None:
    file = scenario(folder, "mine_only:Mine")
    for extra, end in ((), 2), (("--allow-code",), 0):
        command = Command(["run", str(file), "--out", "r", *extra])
        _, errors = command.communicate()
        assert command.returncode == end, errors.decode()
    assert "mine_only:Mine" in Path("r/scenario.yaml").read_text()
