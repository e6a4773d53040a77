"""Check that every registered component conforms to its interface, so that new files are tested automatically."""

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from edgefl.commands.descriptions import describe
from edgefl.config import registry
from edgefl.config.component import AnyComponent, parameters_of
from edgefl.config.component import build as build_component
from edgefl.config.scenario_fields import Named
from edgefl.errors import EdgeflError
from edgefl.scenario import scenario as scenarios
from edgefl.testing import check
from edgefl.testing.conformance import ROOMS
from tests.refusals import refused_at

TRACE = Path(__file__).parents[1] / "golden" / "sumo_fcd.xml"
TRACES = Path(__file__).parents[2] / "scenarios" / "traces"
AVAILABILITY, BAND_LOAD = TRACES / "availability.json", TRACES / "band_load.csv"
# values of parameters without a default, by the parameter's name
FLOWS = [{"from_hour": 0, "trips_per_hour": {"a": {"b": 40.0, "a": 10.0}, "b": {"a": 60.0}}}]
# depart before 180 s, the last time at which the check of mobility models reads positions
PLAN = [
    {"leave": "0:00:20", "to": "work", "spread_min": 0.3},
    {"leave": "0:00:50", "to": "school", "share": 0.5},
    {"leave": "0:02", "to": "home", "spread_min": 0.5},
]
REQUIRED = {
    "count": 3,
    "d": 5,
    "rounds": 2,
    "sessions": [[0, 1], [2]],
    "every_s": 2.0,
    "path": str(TRACE),
    "length_s": 60.0,
    "at_hours": [8, 17.5],
    "begin": {"a": 0.7, "b": 0.3},
    "flows": FLOWS,
    "addresses": {"work": [60.0, 20.0], "school": {"a": 0.7, "b": 0.3}},
    "plan": PLAN,
    "function": "tests.tools.factories:tiny",
}
# values with which a component works in the small world in which it is checked
FITTING: dict[tuple[str, str], dict[str, Any]] = {
    ("selectors", "fedcs"): {"deadline_s": 1.0},
    **{
        ("datasets", name): {"path": f"nowhere.{name}"}
        for name in ("npz", "csv", "image_folder", "huggingface")
    },
    ("churn", "availability_trace"): {"path": str(AVAILABILITY)},
    ("backgrounds", "trace"): {"path": str(BAND_LOAD)},
}
ALL = [(kind, name) for kind in registry.KINDS for name in registry.names(kind)]
SCENARIO = """\
name: outside
devices: {count: 2}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 1000000, flops_per_sample: 1000}
radio:
"""
OUTSIDE = """\
from dataclasses import dataclass
from edgefl.channel.component import parameter
from edgefl.channel.path_loss import Line, LossLines
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.schedulers.equal_share import EqualShare

@dataclass(frozen=True)
class Halves(EqualShare):
    "Some of the band."
    share: float = parameter(0.5, gt=0, le=1, description="what is given away")

    def shares(self, flows):
        return self.share * super().shares(flows)

@dataclass(frozen=True)
class Walls(UMi):
    "UMi behind walls."
    loss_db: float = parameter(20.0, ge=0, description="loss of the wall, dB")

    def lines(self, **radio):
        return LossLines(*(tuple(self.behind(one) for one in state) for state in super().lines(**radio)))

    def behind(self, line):
        return Line(line.intercept_db + self.loss_db, line.slope_db)
"""


def required(kind: str, name: str) -> dict[str, Any]:
    fields = parameters_of(registry.get(kind, name)).model_fields
    return {k: REQUIRED[k] for k, field in fields.items() if field.is_required()}


def build(kind: str, name: str) -> AnyComponent:
    values = {**required(kind, name), **FITTING.get((kind, name), {})}
    return build_component(registry.get(kind, name), values)


def test_every_kind_has_components() -> None:
    assert {kind for kind, _ in ALL} == set(registry.KINDS)


def test_every_kind_has_a_contract() -> None:
    missing = set(registry.KINDS) - set(ROOMS)
    assert not missing, f"check the interface of {missing} in a function of edgefl/testing"


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap cannot batch an embedding bag
@pytest.mark.parametrize(("kind", "name"), ALL)
def test_component(kind: str, name: str) -> None:
    component = build(kind, name)
    assert registry.name_of(kind, component) == name
    check(type(component), **{**required(kind, name), **FITTING.get((kind, name), {})})
    written: Any = Named(kind, short=True)._write(component)
    assert isinstance(written, str) == (not parameters_of(type(component)).model_fields)


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_describe(kind: str, name: str) -> None:
    text = describe(f"{kind}/{name}")
    assert text.startswith(f"{kind}/{name}\n\n")
    assert len(text.splitlines()) > 2
    assert ("FLOPs per sample" if name != "factory" else "Size: depends") in text or kind != "models"


def test_describe_shows_ranges_of_both_shapes() -> None:
    assert "  mu: " in describe("algorithms/fedprox")
    assert "(>= 0, < 1, default 0.98)" in describe("schedulers/proportional_fair")


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(EdgeflError, match="no algorithm 'fedprx': did you mean 'fedprox'"):
        registry.get("algorithms", "fedprx")
    with pytest.raises(EdgeflError, match="no kind 'algoritms': did you mean 'algorithms'"):
        registry.names("algoritms")
    with pytest.raises(EdgeflError, match="no scheduler 'x'; known: equal_share, learning_first, max_rate"):
        registry.get("schedulers", "x")
    with pytest.raises(EdgeflError, match="no path loss 'rma'; known: free_space, inh, uma, umi"):
        registry.get("path_loss", "rma")


def test_outside_component_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_algorithms.py").write_text(
        "from edgefl.learning.algorithms.fedavg import FedAvg\nclass Mine(FedAvg):\n    '''Mine.'''\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    component = registry.get("algorithms", "my_algorithms:Mine")()
    assert registry.name_of("algorithms", component) == "my_algorithms:Mine"
    with pytest.raises(EdgeflError, match="WarmStart"):
        registry.get("warm_starts", "my_algorithms:Mine")
    with pytest.raises(EdgeflError, match="my_algorithms:Nobody"):
        registry.get("algorithms", "my_algorithms:Nobody")


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write an external module, and return a folder for scenarios."""
    (tmp_path / "outside.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("outside", None)


def load(folder: Path, radio: str) -> scenarios.Scenario:
    path = folder / "a.yaml"
    path.write_text(SCENARIO + radio)
    return scenarios.load(path)


def test_outside_scheduler_and_path_loss_in_a_scenario(outside: Path) -> None:
    loaded = load(
        outside,
        "  path_loss: {name: 'outside:Walls', loss_db: 12}\n  scheduler: {name: 'outside:Halves', share: 0.25}\n",
    )
    assert dataclasses.asdict(loaded.radio.path_loss) == {"loss_db": 12.0}
    assert dataclasses.asdict(loaded.radio.scheduler) == {"share": 0.25}
    text = scenarios.dump(loaded)
    assert "name: outside:Halves\n    share: 0.25" in text
    (outside / "b.yaml").write_text(text)
    again = scenarios.load(outside / "b.yaml")
    assert again.radio == loaded.radio
    assert scenarios.dump(again) == text
    # an external class without additional parameters is written under the name of its base
    assert "path_loss: umi\n" in scenarios.dump(load(outside, "  path_loss: umi\n"))
    assert "what is given away (> 0, <= 1, default 0.5)" in describe("schedulers/outside:Halves")


@pytest.mark.parametrize(
    ("place", "noun", "radio"),
    [
        ("radio.scheduler.share", "<= 1", "scheduler: {name: 'outside:Halves', share: 2}"),
        ("radio.path_loss.loss_db", ">= 0", "path_loss: {name: 'outside:Walls', loss_db: -1}"),
        ("radio.path_loss", "PathLoss", "path_loss: outside:Halves"),
        ("radio.path_loss", "nowhere", "path_loss: nowhere:X"),
    ],
)
def test_bad_parameters_of_parts_from_outside(outside: Path, place: str, noun: str, radio: str) -> None:
    with refused_at(place, noun, "a.yaml:6"):
        load(outside, f"  {radio}\n")


def test_a_module_in_the_current_folder_is_found(outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module in the current folder is found even if `sys.path` lacks this folder, as in the `edgefl` command."""
    (outside / "statistics.py").write_text("raise ImportError('hides the one of Python')\n")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(outside))])
    monkeypatch.chdir(outside)
    assert registry.get("schedulers", "outside:Halves").__name__ == "Halves"
    assert sys.path.count(str(outside)) == 1
    assert registry.get("path_loss", "outside:Walls").__name__ == "Walls"
    assert sys.path.count(str(outside)) == 1
    monkeypatch.delitem(sys.modules, "statistics", raising=False)
    with pytest.raises(EdgeflError, match="Walls"):
        registry.get("path_loss", "statistics:Walls")


@pytest.mark.parametrize(
    ("noun", "text"),
    [
        ("No module named 'nowhere_else'", "import nowhere_else"),
        ("outside.py:1 SyntaxError", "this is no Python"),
        ("outside.py:1 ZeroDivisionError", "1 / 0"),
        (
            "'Nowhere' is not defined",
            OUTSIDE.replace("Halves", "Mine").replace("share: float", "share: 'Nowhere'"),
        ),
    ],
)
def test_a_malformed_file_from_outside_is_an_error_with_its_name(
    outside: Path, monkeypatch: pytest.MonkeyPatch, noun: str, text: str
) -> None:
    (outside / "outside.py").write_text(text)
    monkeypatch.setattr(registry, "_entry_points", lambda kind: {"mine": "outside:Mine"})
    # the name is listed without importing the module
    assert "mine" in registry.names("schedulers")
    with refused_at("", "outside:Mine", noun):
        registry.get("schedulers", "mine")
