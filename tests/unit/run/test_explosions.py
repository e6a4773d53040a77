"""Test the notes on exploding values: absurdly long rounds, huge losses, scores of NaN."""

import json
import math
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from edgefl import load_scenario, simulate
from edgefl.engine.parts import Outcome
from edgefl.engine.records import DeviceRound, DeviceScore, Round, Session
from edgefl.run.counts import (
    HOPELESS_S,
    HUGE_LOSS,
    LONG_S,
    TIMES_IF_HOPELESS,
    TIMES_THE_MEDIAN,
    Extremes,
    explosions,
)
from edgefl.scenario.scenario import Scenario
from tests.tables import sections

FAR: dict[str, Any] = sections("""
    name=far; seed=3; devices={count: 12}; cell={radius_m: 5000}
    radio={preset: journal, propagation: {line_of_sight: never}, bandwidth_hz: 1.0e6}
    sessions={name: schedule, count: 1, rounds: 6}; workload={payload_bits: 1000000, flops_per_sample: 1.0}
""")


NUMBERS = dict.fromkeys([field.name for field in fields(Round) if field.default is MISSING], 0)


def row(number: int, took_s: float = 1.0, loss: float | None = 1.0, accuracy: float | None = 0.5) -> Round:
    place = {"session": 1, "round": number, "version": number, "phase": "train"}
    times = {"end_s": took_s, "latency_s": took_s, "latency_mean_s": took_s / 2}
    scores = {"participants": 2, "completed": 2, "accuracy": accuracy, "loss": loss}
    return Round(**{**NUMBERS, **place, **times, **scores})


def parts(number: int, uplinks_s: list[float], outcome: str = "completed") -> dict[str, Any]:
    several = range(len(uplinks_s))
    return {
        "session": 1,
        "phase": "train",
        "round": number,
        "cell": 0,
        "device": [10 + k for k in several],
        "downlink_start_s": [0.0 for _ in several],
        "downlink_end_s": [0.5 for _ in several],
        "uplink_start_s": [0.5 if uplink else None for uplink in uplinks_s],
        "uplink_end_s": [0.5 + uplink if uplink else None for uplink in uplinks_s],
        "outcome": [outcome for _ in several],
        "energy_j": [2.0 for _ in several],
    }


PLAIN = Scenario.model_validate(
    sections("""
        name=plain; devices={count: 4}; sessions={name: schedule, count: 1, rounds: 1}
        learning={dataset: digits, model: logistic}; radio={preset: journal}
    """)
)


def told(extremes: Extremes) -> list[str]:
    return list(explosions(extremes, list(PLAIN.by_federation.values()), PLAIN.radio))


@pytest.mark.parametrize(
    ("slowest_s", "others_s", "is_told"),
    [
        (HOPELESS_S + 1, HOPELESS_S / TIMES_IF_HOPELESS, True),
        (HOPELESS_S + 1, HOPELESS_S, False),  # a band or a model for which all links are slow
        (HOPELESS_S - 1, HOPELESS_S - 1, False),  # large models
        (LONG_S + 1, LONG_S / TIMES_THE_MEDIAN, True),
        (LONG_S + 1, 1.0, False),
        (LONG_S - 1, 0.01, False),  # much longer than usual, but still short
    ],
)
def test_an_overlong_transfer_is_noted(slowest_s: float, others_s: float, is_told: bool) -> None:
    extremes = Extremes()
    for number in range(1, 6):
        took_s = [others_s, slowest_s if number == 4 else 0.0]
        extremes.see(row(number, max(took_s)))
        extremes.see_columns(DeviceRound, parts(number, took_s))
    found = told(extremes)
    assert len(found) == is_told
    if is_told:
        assert f"the uplink of device 11 took {slowest_s:,.0f} s in session 1, train round 4" in found[0]
        usual = f"{others_s:,.0f} s" if others_s >= 100 else f"{others_s:.3g} s"
        assert (
            f"while the median uplink of the round's other devices took {usual}: the device's link"
            in found[0]
        )
        assert "rounds.deadline_s" in found[0]
        assert "radio.preset: nr" in found[0]


def test_the_only_transfer_of_a_round_is_compared_with_other_rounds() -> None:
    extremes = Extremes()
    extremes.see(row(1, 9754.0))
    extremes.see_columns(DeviceRound, parts(1, [8889.0]))
    assert not told(extremes), "its own round is no comparison"
    for number in (2, 3):
        extremes.see(row(number, 50.0))
        extremes.see_columns(DeviceRound, parts(number, [40.0]))
    (note,) = told(extremes)
    assert (
        "took 8,889 s in session 1, train round 1, while the median round takes 50 s: the device's link"
        in note
    )


def test_a_round_of_hours_by_a_radio_without_a_floor(tmp_path: Path) -> None:
    path = simulate(load_scenario(FAR), tmp_path / "run", device="cpu")
    devices = pd.read_csv(path / "devices.csv")
    took_s = devices.uplink_end_s - devices.uplink_start_s
    (note,) = json.loads((path / "run.json").read_text())["notes"]
    slowest = devices.loc[took_s.idxmax()]
    assert f"the uplink of device {slowest.device} took {took_s.max():,.0f} s" in note
    assert f"train round {slowest['round']}," in note
    near = simulate(load_scenario(FAR, ["cell.radius_m=500"]), tmp_path / "near", device="cpu")
    assert not any(" took " in note for note in json.loads((near / "run.json").read_text())["notes"])


def test_a_huge_loss_is_told_where_it_began() -> None:
    extremes = Extremes()
    for number, loss in enumerate((2.0, HUGE_LOSS, None, 2 * HUGE_LOSS, 3e17), 1):
        extremes.see(row(number, loss=loss))
    (note,) = told(extremes)
    assert "the loss in session 1, train round 4 is 2e+06" in note
    assert "learning.local.lr" in note


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_score_that_is_no_number_is_told_wherever_it_stands(value: float) -> None:
    extremes = Extremes()
    extremes.see(row(1), {"loss_validation": 1.0, "auc": None})
    extremes.see(row(2, loss=value), {"loss_validation": value})
    extremes.see(row(3, loss=value, accuracy=value))
    extremes.see(Session(2, 0.0, "start", "0", "0", "", "", 0.5, value))
    scores = {"session": 2, "round": 1, "phase": "train", "cell": 0, "device": [0, 1], "loss": [None, value]}
    extremes.see_columns(DeviceScore, scores)
    found = {note.split(" is not a finite number in ")[0]: note for note in told(extremes)}
    assert set(found) == {"loss", "loss_validation", "accuracy", "loss_start", "loss of evaluation.csv"}
    assert "in 2 rows, first in session 1, train round 2" in found["loss"]
    assert "in 1 row, first in session 2" in found["loss_start"]


def test_updates_that_were_dropped_are_told_with_their_joules() -> None:
    extremes = Extremes()
    extremes.see(row(1))
    extremes.see_columns(DeviceRound, parts(1, [0.1, 0.1, 0.1], Outcome.UNUSABLE_UPLINK))
    (note,) = told(extremes)
    assert "3 updates were not finite and therefore dropped (rounds.not_finite: drop), which wasted 6" in note
