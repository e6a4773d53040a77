"""Test the last two lines of a run, from a run directory written by hand."""

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from edgefl.commands.closing import WIDTH, closing, epsilon, of_study
from tests.unit.analysis.conftest import write_run


def a_run(path: Path, accuracies: list[float | str], **about: Any) -> Path:
    """Write a run of two cells with alternating rounds of 500 J, which ends with a round of each cell."""
    rounds = [
        {"session": 1, "round": number // 2 + 1, "cell": number % 2, "energy_j": 500.0, "accuracy": accuracy}
        for number, accuracy in enumerate(accuracies)
    ]
    write_run(path, rounds, [{"session": 1}], **about)
    table = pd.read_csv(path / "rounds.csv")
    table.assign(energy_server_j=0.0, energy_wasted_j=0.0, energy_cut_j=0.0).to_csv(
        path / "rounds.csv", index=False
    )
    return path


def test_the_end_of_a_run_names_its_clocks_joules_accuracy_and_what_is_next(tmp_path: Path) -> None:
    """The energy is 4 x 500 J, and the cells' latest models have accuracies of 90 and 80 %."""
    path = a_run(tmp_path / "my run", [0.1, 0.2, 0.9, 0.8], simulated_s=114.25, wall_s=16.6)
    assert closing(path) == (
        "114 s simulated in 17 s of wall time · 2.00 kJ · accuracy 85.0 %",
        f"next: edgefl report '{path}'",
    )
    reached = of_study(path)
    assert callable(reached)
    assert reached() == ["114 s simulated", "accuracy 85.0 %"], "equal to the progress line of a study"


def test_without_training_there_is_no_accuracy(tmp_path: Path) -> None:
    line, _ = closing(a_run(tmp_path / "run", ["", ""], simulated_s=7200.0, wall_s=200.0))
    assert line == "2.00 h simulated in 3 min of wall time · 1.00 kJ"


@pytest.mark.parametrize(
    ("names", "clock", "told"),
    [
        (("a", "b"), " in 67 min of wall time", " · a 50.0 % · b 25.0 %"),
        (("meters_in_town", "b"), "", " · b 25.0 % · meters_in_town 50.0 %"),
        (("federation_of_many_electricity_meters_in_town", "b"), " in 67 min of wall time", ""),
    ],
)
def test_federations_have_their_own_scores_where_there_is_room(
    tmp_path: Path, names: tuple[str, str], clock: str, told: str
) -> None:
    """The scores replace the wall time if the line has no room for both."""
    whole = tmp_path / "whole"
    for name, accuracy in zip(names, (0.5, 0.25), strict=True):
        a_run(whole / name, [accuracy])
    about = json.loads((whole / names[0] / "run.json").read_text())
    about |= {"simulated_s": 9876.0, "wall_s": 4000.0, "federations": {name: {} for name in names}}
    (whole / "run.json").write_text(json.dumps(about))
    line, further = closing(whole)
    assert further == f"next: edgefl report {whole / names[0]}"  # a report is about one federation
    assert line == f"2.74 h simulated{clock} · 1.00 kJ{told}"
    assert len(line) <= WIDTH


@pytest.mark.parametrize(("spent", "told"), [(2.125, "2.12"), (1623.4, "1,623"), (1.25e9, "1,250,000,000")])
def test_a_private_run_ends_with_the_largest_epsilon(tmp_path: Path, spent: float, told: str) -> None:
    path = a_run(tmp_path / "run", [0.5], simulated_s=0.0134, wall_s=12_240.0, epsilon=spent)
    assert closing(path)[0].endswith(f" · accuracy 50.0 % · epsilon {told}")
    assert len(closing(path)[0]) <= WIDTH
    assert epsilon(path) == spent


def test_a_run_ends_without_a_second_for_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = a_run(tmp_path / "run", [0.5], simulated_s=2.0, wall_s=3.0)
    (path / "devices.csv").write_text("device,energy_j\n0,1.0\n")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert closing(path)[0].endswith(" · accuracy 50.0 %")
