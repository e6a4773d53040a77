"""Test that `edgefl describe` shows sections, dotted keys, kinds, and external components of any form."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from edgefl.commands.descriptions import describe, listed
from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.scenario.scenario import Scenario
from tests.tools.fuzz_schema import keys_of

ODD = """\
from torch import nn
from edgefl.learning.models import Model

class NoSize(Model):
    def build(self, input_shape, classes):
        return nn.Flatten()

class Fails(NoSize):
    typical_input = (3,)
    typical_classes = 2

    def build(self, input_shape, classes):
        raise RuntimeError("no such luck")

class Lazy(NoSize):
    typical_input = (3,)
    typical_classes = 2

    def build(self, input_shape, classes):
        return nn.LazyLinear(classes)
"""


@pytest.mark.parametrize("place", [".".join(key.place) for key in keys_of(Scenario)])
def test_every_key_of_a_scenario_is_described(place: str) -> None:
    text = describe(place)
    assert text.startswith(f"{place}\n\n")
    assert "  default: " in text or "Parameters:" in text


def test_a_key_is_described_with_unit_range_and_default() -> None:
    assert describe("radio.bandwidth_hz").partition("\n\nExample")[0].splitlines()[2:] == [
        "system bandwidth W; with preset: nr, the default of a site's power (budget.server_power_dbm) follows it",
        "",
        "  type:    a number",
        "  unit:    Hz",
        "  range:   >= 100000, <= 4.0e+9",
        "  default: 100.0e+6",
    ]
    assert describe("radio.bandwidth_hz").endswith("\n    bandwidth_hz: 100.0e+6")
    assert "  default: none; the key is required" in describe("learning.dataset")
    assert "schedule        Every session has T rounds" in describe("sessions")
    assert "edgefl describe radio.tdd" in describe("radio")
    assert "  transmit_power_dbm: " in describe("devices.classes")
    assert "Of algorithms/fedprox: weight of the proximal term" in describe("learning.algorithm.mu")
    assert describe("rounds.selector.name") == describe("rounds.selector") != describe("layout.sites.path")


def test_the_whole_scenario_and_a_kind_are_described() -> None:
    assert "  seed: the run is a function of scenario and seed" in describe("scenario")
    assert "edgefl describe selectors/NAME" in describe("selectors")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("radio.bandwith_hz", "radio has no such key: did you mean 'bandwidth_hz'"),
        ("learning.algorithm.nu", "see edgefl describe algorithms/NAME"),
        ("radio.slot_s.x", "see edgefl describe radio.slot_s"),
        ("radio.", "radio has no such key"),
        ("radio.noise_figure_db", "did you mean 'radio.budget.noise_figure_db'?"),
        ("", "write KIND/NAME"),
        ("bandwith", "did you mean 'bandwidth'?"),
        ("fedavgg", "did you mean 'fedavg'?"),
        ("quickstrt", "did you mean 'quickstart'?"),
        ("goal", "no component, section or key has this name: write KIND/NAME"),
        ("energy", "names contain it: selectors/energy_aware, selectors/least_energy, record.energy_excess"),
        ("count", "may be "),
        ("algorithms/", "no algorithm ''"),
        ("/fedprox", "no kind ''"),
    ],
)
def test_what_there_is_not(key: str, message: str) -> None:
    with pytest.raises(EdgeflError) as error:
        describe(key)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("bare", "full"),
    [
        ("fedavg", "algorithms/fedavg"),
        ("umi", "path_loss/umi"),
        ("bandwidth_hz", "radio.bandwidth_hz"),
        ("bandwidth", "radio.bandwidth_hz"),
        ("local", "learning.local"),
        ("battery", "devices.battery_j"),
        ("random waypoint", "mobility/random_waypoint"),
        ("time-to-trigger", "handover.time_to_trigger_s"),
        ("path loss", "path_loss"),
    ],
)
def test_a_bare_name_is_enough_where_it_is_the_only_one(bare: str, full: str) -> None:
    assert describe(bare) == describe(full)


def test_columns_and_tables_are_described() -> None:
    """A name of a key and of a column has both texts."""
    assert describe("latency_s").startswith("latency_s is a column of:\n\nrounds.csv  end_s minus start_s")
    assert [line.split()[0] for line in describe("energy_j").splitlines()[2:]] == [
        "rounds.csv",
        "devices.csv",
        "ledger.csv",
    ]
    both = describe("accuracy")
    assert both.startswith("stop.accuracy\n")
    assert "\nrounds.csv      share of test samples" in both
    assert describe("ledger.csv").startswith("ledger.csv: a row for each device")


def test_studies_and_shipped_files_are_described() -> None:
    assert "question that the study should answer" in describe("study")
    assert describe("study.question.budget").startswith("study.question.budget\n")
    assert "`edgefl run handover_hexagonal` runs it" in describe("handover hexagonal")
    assert describe("quickstart").count("quickstart, a shipped ") == 2


def test_every_name_that_is_listed_is_described() -> None:
    """Every listed name is described; if components of several kinds share a name, each of them is described."""
    for line in listed(None):
        kind = line.split()[0]
        assert describe(kind)
        for name in (each.split()[0] for each in listed(kind)):
            assert describe(f"{kind}/{name}").partition("\n\nPapers:")[0] in describe(name)
    both = describe("round_robin")
    assert both.startswith("selectors/round_robin\n")
    assert "\n\nschedulers/round_robin\n" in both


def test_kinds_and_components_are_listed_with_a_meaning() -> None:
    assert [line.split()[0] for line in listed(None)] == list(registry.KINDS)
    for kind in registry.KINDS:
        assert [line.split()[0] for line in listed(kind)] == registry.names(kind)
    assert "uniform            Draw devices without replacement" in listed("selectors")


@pytest.mark.parametrize(
    ("look_up", "name", "remedy"),
    [
        (listed, "fedavg", "'fedavg' is a component, not a kind: run `edgefl describe algorithms/fedavg`"),
        (describe, "clients_per_round", "edgefl calls it rounds.selector.count"),
        (describe, "target_accuracy", "edgefl calls it stop.accuracy"),
    ],
)
def test_a_name_of_another_kind_or_program_leads_on(
    look_up: Callable[[str], object], name: str, remedy: str
) -> None:
    with pytest.raises(EdgeflError, match=re.escape(remedy)):
        look_up(name)


def test_an_installed_package_that_does_not_work_spoils_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entry_points", lambda kind: {"theirs": "no_such_module:Theirs"})
    (line,) = [line for line in listed("selectors") if line.startswith("theirs")]
    assert "(broken: cannot load 'no_such_module:Theirs'" in line


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NoSize", "Size: see `edgefl validate`"),
        ("Fails", "Size: cannot be counted for 3 inputs and 2 classes: RuntimeError: no such luck"),
        ("Lazy", "Size: cannot be counted"),
    ],
)
def test_odd_models_from_outside_are_described(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd_models.py").write_text(ODD)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "odd_models", None)
    del sys.modules["odd_models"]
    text = describe(f"models/odd_models:{name}")
    assert said in text
    assert f"Defined by odd_models:{name}" in text


def test_letters_of_papers_are_told() -> None:
    papers = describe("papers")
    for letter in "JNIF":
        assert re.search(rf"^{letter}[,:] .{{40}}", papers, re.MULTILINE)
    assert describe("warm_starts/similarity").endswith("edgefl describe papers`.")
    assert "describe papers" not in describe("radio.bandwidth_hz")


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_example_is_valid_where_it_is_written(kind: str) -> None:
    """An example's lines are YAML with the component at the key of its kind, and are valid in a scenario."""
    for name in registry.names(kind):
        text = describe(f"{kind}/{name}")
        if "\nExample" not in text:
            continue
        lines = text.split("\nExample")[1].split("\n\n")[0].split("\n")[1:]
        value = yaml.safe_load("\n".join(lines))
        assert "federations" not in value, "the example sets the scenario's key"
        while isinstance(value, dict) and "name" not in value:
            ((_, value),) = value.items()
        assert (value["name"] if isinstance(value, dict) else value) == name


def test_a_default_is_shown_in_full_and_a_unit_once() -> None:
    text = describe("mobility/attraction")
    assert "{from_hour: 22, to: {home: 0.95, centre: 0.05}}])" in text
    assert "speed_min_m_s: lowest speed of a device (m/s, >= 0.001, <= 60, default 1)" in text
