"""Test that a learning rate of 0 before a run's end is an error if it is certain, and otherwise a note."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgefl import load_scenario, simulate
from edgefl.config import registry
from edgefl.learning.lr_schedules.step import StepDecay
from tests.refusals import refused_at
from tests.tables import rows, sections

RUN: dict[str, Any] = sections("""
    name=rates; devices.count=6; sessions={name: schedule, count: 2, rounds: 4}
    learning={dataset: digits, partition: iid, model: logistic, local: {steps: 1}}
""")
# schedule, other keys, and the first round with a rate of 0
ZERO = rows("""
{name: polynomial, rounds: 3} |  | 4
{name: cosine, rounds: 7} |  | 8
{name: step, every: 3} |  | 4
{name: step, every: 5, rounds: 99} |  | 6
{name: cosine, rounds: 9} | sessions={name: membership, count: 5} | 10
{name: cosine, rounds: 1} | sessions={name: interval, length_s: 1, count: 2} | 2
""")


@pytest.mark.parametrize(("schedule", "keys", "first"), ZERO)
def test_a_rate_of_zero_is_refused(
    schedule: str, keys: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StepDecay, "factor", 0.0)
    with refused_at("learning.local.lr_schedule", f"round {first} ", "lr_floor") as error:
        load_scenario(RUN, [f"learning.local.lr_schedule={schedule}", *filter(None, [keys])])
    assert "learning.local.lr_schedule: " in str(error.value)


@pytest.mark.parametrize(
    "keys",
    [
        ["learning.local.lr_schedule={name: polynomial, rounds: 8}"],  # the last round has 1/8 of the rate
        ["learning.local.lr_schedule={name: polynomial, rounds: 3}", "learning.local.lr_floor=0.01"],
        ["learning.local.lr_schedule={name: step, every: 4}"],
        ["learning.local.lr_schedule={name: cosine, rounds: 3}", "learning.local.lr_power=0"],
        ["learning.local.lr_schedule={name: cosine, rounds: 3}", "duration_s=1"],  # may end before
        ["sessions.count=100", "sessions.rounds=100"],
    ],
)
def test_what_may_have_a_rate_to_the_end_is_not(keys: list[str]) -> None:
    load_scenario(RUN, keys)


def notes_about_rates(path: Path) -> list[str]:
    return [note for note in json.loads((path / "run.json").read_text())["notes"] if "learning rate" in note]


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold", "feddc"])
def test_rounds_without_a_rate_change_nothing_and_are_noted(algorithm: str, tmp_path: Path) -> None:
    """Neither the model nor c_k changes, so a later session with a rate above 0 continues with both."""
    keys = [
        f"learning.algorithm={algorithm}",
        "learning.local.lr_schedule={name: polynomial, rounds: 3}",
        "duration_s=1000",  # makes the number of rounds unknown
    ]
    if algorithm == "feddc":
        keys[0] = "learning.algorithm={name: feddc, alpha: 0}"  # without h, which moves the model at any rate
    path = simulate(load_scenario(RUN, keys), tmp_path / "run", device="cpu")
    rounds = path.rounds
    assert len(rounds) == 8
    assert rounds.loss.iloc[2:].tolist() == pytest.approx([rounds.loss.iloc[2]] * 6, rel=1e-6)
    assert rounds.loss.iloc[2] < rounds.loss.iloc[0]
    (note,) = notes_about_rates(path)
    assert "with polynomial the learning rate is 0 from round 4 on" in note
    assert "a cell had 8 rounds" in note


def test_a_run_with_a_rate_to_its_end_has_no_such_note(tmp_path: Path) -> None:
    keys = ["duration_s=1000", "learning.local.lr_schedule={name: polynomial, rounds: 8}"]
    scenario = load_scenario(RUN, keys)
    assert not notes_about_rates(simulate(scenario, tmp_path / "run", device="cpu"))


@pytest.mark.parametrize("algorithm", sorted(registry.names("algorithms")))
def test_algorithms_accept_rate_zero(algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepDecay, "factor", 0.0)
    keys = ["learning.local.lr_schedule={name: step, every: 1}", "duration_s=1000"]
    keys.append(f"learning.algorithm={algorithm}")
    keys += ["learning.local.epochs=2"] if algorithm == "flash" else []
    keys += ["learning.drift={name: label_swap, at: 2}"] if algorithm == "oracle" else []
    rounds = simulate(load_scenario(RUN, keys), tmp_path / "run", device="cpu").rounds
    assert len(rounds) == 8
    if algorithm != "local_only":  # without a global model, no model is tested
        assert np.isfinite(rounds.loss).all()
