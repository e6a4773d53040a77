"""Test that imports between folders have one direction only."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from edgefl.config import registry

pytestmark = pytest.mark.always  # never marked `nightly`

ROOT = Path(__file__).parents[2]
# folder -> prefixes of modules that no file in it may import; `channel` and `analysis` import no other part of edgefl
CHANNEL, ANALYSIS = "edgefl.channel", "edgefl.analysis"
FORBIDDEN = {
    "channel": ("edgefl", "torch", "simpy", "pandas", "pydantic"),
    "analysis": ("edgefl", "torch", "simpy"),
    "edgefl/engine": ("edgefl.learning", "edgefl.run.simulation", "torch", ANALYSIS),
    "edgefl/learning": ("edgefl.engine", "edgefl.run.simulation", "simpy", CHANNEL, ANALYSIS),
    "edgefl/testing": ("pytest", "hypothesis", ANALYSIS),
    "edgefl/run_directory": ("edgefl.learning", "edgefl.run.simulation", "simpy", CHANNEL, ANALYSIS),
    "edgefl/mobility": ("edgefl.engine", "edgefl.learning", "simpy", "torch", ANALYSIS),
}


@cache
def imported(file: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def offences(folder: str, forbidden: tuple[str, ...]) -> list[str]:
    return [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        for name in imported(file)
        if any(name == prefix or name.startswith(prefix + ".") for prefix in forbidden)
        and not name.startswith(f"edgefl.{folder}.")
    ]


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_rooms_stay_apart(folder: str) -> None:
    assert offences(folder, FORBIDDEN[folder]) == []


def test_only_its_own_room_knows_flower() -> None:
    users = {line.split()[0] for line in offences("edgefl", ("flwr", "edgefl.flower"))}
    assert users
    assert all(user.startswith("edgefl/flower/") for user in users)


def test_the_test_can_fail() -> None:
    assert offences("edgefl/engine", ("simpy",)) != []


def test_only_the_command_line_and_the_python_interface_use_analysis() -> None:
    users = {line.split()[0] for line in offences("edgefl", (ANALYSIS,))}
    assert users
    interface = (
        "edgefl/commands/",
        "edgefl/run/results.py",
        "edgefl/studies/adding_seeds.py",
        "edgefl/studies/study_file.py",
    )
    assert all(user.startswith(interface) for user in users)


def test_only_devices_and_composition_roots_start_processes() -> None:
    """Few files may start processes, as a generator that is called but not started silently does nothing."""
    starters = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "edgefl").rglob("*.py")
        if "env.process(" in file.read_text()
    }
    assert starters == {
        "edgefl/engine/federation/device.py",
        "edgefl/run/composition.py",
        "edgefl/run/simulation.py",
        "edgefl/run/controlled.py",
        "edgefl/testing/cell.py",  # simulates a small world, which starts the server
    }


def loaded(code: str, packages: set[str]) -> set[str]:
    """Return which of these packages a new process has imported after some code."""
    code = f"import sys\n{code}\nprint('loaded', *({packages} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_the_testing_room_imports_quickly_and_without_a_test_framework() -> None:
    assert loaded("import edgefl.testing", {"torch", "pytest", "hypothesis"}) == set()


SLOW = {"torch", "scipy", "pandas", "matplotlib", "sklearn", "simpy", "pydantic", "numpy"}
TO_DESCRIBE = """
from edgefl.config import registry
for kind in set(registry.KINDS) - {"models"}:
    for name in registry.names(kind):
        registry.get(kind, name)
"""
SCENARIO = """
name: plain
devices: {count: 12, mobility: random_waypoint}
radio: {preset: journal}  # what places keep of a site, by nr, is looked up with scipy
sessions: {name: schedule, count: 2, rounds: 3}
learning:
  dataset: {name: synthetic, groups: 12}
  partition: natural
  model: mlp2
  algorithm: %s
  warm_start: similarity
  local:
    epochs: 2
"""


def test_help_waits_for_no_package_of_science() -> None:
    assert loaded("import edgefl.commands.cli", SLOW) == set()


def test_components_are_described_without_pytorch() -> None:
    """All components but models, which consist of PyTorch's layers, are described without PyTorch."""
    assert loaded(TO_DESCRIBE, {"torch", "scipy", "pandas", "matplotlib", "sklearn"}) == set()
    assert loaded("import edgefl.learning.models.cnn2", {"torch"}) == {"torch"}


def test_scenarios_are_validated_without_pytorch_and_scipy(tmp_path: Path) -> None:
    """If the model states its size, validation loads neither PyTorch nor SciPy, with any algorithm."""
    files = []
    for algorithm in registry.names("algorithms"):
        if not registry.get("algorithms", algorithm)().knows_drift:  # a drift loads PyTorch
            files.append(str(tmp_path / f"{algorithm}.yaml"))
            Path(files[-1]).write_text(SCENARIO % algorithm)
    code = f"""
from edgefl.commands.cli import main
try:
    main(["validate", *{files}])
except SystemExit as ended:
    assert not ended.code
"""
    assert loaded(code, {"torch", "scipy", "pandas", "matplotlib", "sklearn"}) == set()
