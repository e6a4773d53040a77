"""Test the sentences on what runs have in common, with runs that differ in each of the facts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgefl.analysis import load_runs
from edgefl.analysis.html.energy import energy
from edgefl.analysis.html.page import _notes
from edgefl.analysis.html.words import summary
from tests.unit.analysis.conftest import change

LEARNING = {"model": "logistic", "dataset": {"name": "digits"}, "algorithm": {"name": "fedavg"}}
LAYOUT = {"rings": 0, "isd_m": 500.0, "sectors": 1, "azimuth_deg": 0.0, "federations": "all"}
BEGIN = "{} in one cell train the model logistic on the data set digits with the algorithm fedavg."


@pytest.fixture
def add(write_run: Callable[..., Path]) -> Callable[..., Path]:
    """Return a function that adds a run of one round to a folder of runs, and returns the folder."""

    def write(variant: str, seed: int = 1, *, devices: int = 2, rings: int = 0, **more: Any) -> Path:
        learning: dict[str, Any] | None = more.pop("learning", LEARNING)
        about = {"variant": variant, "seed": seed, "study": "s", **more}
        layout = LAYOUT | {"rings": rings}
        about["scenario"] = {"cell": {"radius_m": 100.0}, "layout": layout, "learning": learning}
        about["ledger"] = [{}] * devices
        return write_run(f"{variant}{seed}", [{"session": 1, "round": 1}], [{"session": 1}], **about).parent

    return write


def told(folder: Path) -> list[str]:
    return summary(load_runs(folder))


def test_what_all_runs_share_is_said_once(add: Callable[..., Path]) -> None:
    add("a", 1)
    assert told(add("a", 2)) == [BEGIN.format("2 devices"), "2 runs: a with 2 seeds."]
    add("b", 1)
    assert told(add("b", 2)) == [BEGIN.format("2 devices"), "4 runs: a, b, each with 2 seeds."]


@pytest.mark.parametrize(
    ("differs", "common", "either"),
    [
        ({"devices": 1}, "2 devices", "1 or 2 devices"),
        ({"rings": 1}, "one cell", "one cell or 7 cells with a federation each"),
        ({"learning": LEARNING | {"algorithm": "m:Own"}}, "fedavg", "fedavg or m:Own"),
        ({"learning": LEARNING | {"dataset": "mnist"}}, "digits", "digits or mnist"),
        ({"learning": LEARNING | {"model": {"name": "mlp2"}}}, "logistic", "logistic or mlp2"),
        ({"learning": None}, "fedavg", "fedavg, or run a workload without training"),
        ({"learning": None, "learner": {"name": "m:L"}}, "fedavg", "fedavg, or train with the learner m:L"),
    ],
)
def test_what_differs_is_named(
    add: Callable[..., Path], differs: dict[str, Any], common: str, either: str
) -> None:
    """The first run is the one that the sentence used to describe alone."""
    add("a")
    found = BEGIN.format("2 devices").replace(common, either)
    assert told(add("b", **differs)) == [found, "2 runs: a, b."]


def test_many_different_values_are_counted(add: Callable[..., Path]) -> None:
    for number, name in enumerate(("fedavg", "fedprox", "scaffold", "fednova"), start=1):
        folder = add(name, devices=number, learning=LEARNING | {"algorithm": name})
    first, _ = told(folder)
    assert first == (
        "1 to 4 devices in one cell train the model logistic on the data set digits with one of 4 algorithms."
    )


def test_a_single_device_trains(add: Callable[..., Path]) -> None:
    assert told(add("a", devices=1))[0] == BEGIN.replace("train ", "trains ").format("1 device")


def test_devices_that_never_took_part_are_not_counted_as_training(add: Callable[..., Path]) -> None:
    """A device that is out of coverage all the time spends no energy."""
    folder = add("a", devices=3)
    change(folder / "a1", "ledger", energy_j=[1.0, 0.0, 1.0])
    assert told(folder)[0] == BEGIN.format("2 of 3 devices")


def test_an_own_learner_trains_and_a_workload_does_not(add: Callable[..., Path]) -> None:
    folder = add("a", learning=None, learner={"name": "my_learner:Ridge", "resumable": False})
    assert told(folder)[0] == "2 devices in one cell train with the learner my_learner:Ridge."
    assert load_runs(folder).info["learner"].tolist() == ["my_learner:Ridge"]


def test_a_workload_trains_nothing(add: Callable[..., Path]) -> None:
    assert told(add("a", learning=None))[0] == "2 devices in one cell run a workload; nothing is trained."


def test_unequal_numbers_of_seeds_are_named_by_variant(add: Callable[..., Path]) -> None:
    add("cls")
    add("cls", 2)
    folder = add("other")
    assert told(folder)[1] == "3 runs: cls (2 seeds), other (1 seed)."
    assert "Energy of the devices, means over 1 to 2 seeds" in energy(load_runs(folder))
    add("other", 2)
    assert "Energy of the devices, means over 2 seeds" in energy(load_runs(folder))


def test_a_note_names_its_runs_unless_all_have_it(add: Callable[..., Path]) -> None:
    for variant in "ab":
        for seed in (1, 2):
            own = [f"of {variant}"] if variant == "b" else ["of a"] * (seed == 1)
            folder = add(variant, seed, notes=["of all", *own])
    assert list(_notes(load_runs(folder))) == ["of all", "a, seed 1: of a", "b, seed 1; b, seed 2: of b"]
