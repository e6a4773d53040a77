"""Test how levels and recovery are read from accuracies before and after a drift, on hand-written series."""

import re

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis.measures.drift import Reading, drift_figures, participants
from tests.unit.analysis.test_drift import FIRST, ROUNDS, linear_recovery, run_of, sudden

NAN = float("nan")
LOW_LATE = np.array([0.2, 0.6, 0.4, 0.5, 0.9, 0.1])


@pytest.mark.parametrize(
    ("reading", "dip"),
    [
        (Reading(), 0.1),
        (Reading(last=5), 0.2),
        (Reading(first=2, last=5), 0.4),
        (Reading(window=2), 0.4),  # 0.2 and 0.6
        (Reading(window=3), 0.4),  # 0.2, 0.6, 0.4
        (Reading(window=3, first=2), 0.5),  # windows 0.6, 0.4, 0.5 and 0.5, 0.9, 0.1
        (Reading(window=6), 0.45),
        (Reading(window=100, last=200), 0.45),  # the concept lasts fewer rounds, so fewer rounds are averaged
        (Reading(first=9), NAN),
    ],
)
def test_the_dip_is_the_lowest_mean_of_a_window_in_the_interval(reading: Reading, dip: float) -> None:
    assert reading.dip(LOW_LATE) == pytest.approx(dip, nan_ok=True)


def test_a_window_averages_over_its_tested_rounds() -> None:
    accuracy = np.array([NAN, 0.2, NAN, 0.6, NAN, 0.4])
    assert Reading(window=4).dip(accuracy) == pytest.approx(0.4)  # the lowest mean is the mean of 0.2 and 0.6
    assert np.isnan(Reading().dip(np.full(3, NAN)))


def test_a_plateau_is_where_the_next_rounds_gain_little() -> None:
    """Accuracy rises by 0.02 per round to 0.7 in round 30: means of 5 rounds gain 0.1 until later rounds reach 0.7.

    Of rounds r + 5 to r + 9, the first is 0.02 (30 - r - 5) below 0.7, and so on.
    """
    accuracy = linear_recovery(30)[FIRST - 1 :]

    def gain(r: int) -> float:
        return float(accuracy[r + 5 : r + 10].mean() - accuracy[r : r + 5].mean())

    for margin in (0.0, 0.01, 0.05):
        expected = next(r for r in range(60) if gain(r) <= margin + 1e-12)
        found = Reading(recovery="plateau", smooth=5, margin=margin).recovery_rounds(accuracy, 0.8, 0.7, 0.1)
        assert found == expected
    assert Reading(recovery="plateau", smooth=5, margin=0.0).recovery_rounds(accuracy, 0.8, 0.7, 0.1) == 30


def test_who_never_rests_has_no_plateau() -> None:
    rising = np.linspace(0, 1, 40)
    assert Reading(recovery="plateau", smooth=10, margin=0.1).recovery_rounds(rising, 0.5, 0.9, NAN) == np.inf
    assert Reading(recovery="plateau", smooth=10, margin=0.9).recovery_rounds(rising, 0.5, 0.9, NAN) == 0


def test_by_samples() -> None:
    """Weighted by samples, 0.6 and 0.7 average to 0.675, as device 2 has 3 of 4 samples; rounds.csv differs."""
    rounds, devices = run_of(linear_recovery(30), sudden())
    rounds = rounds.assign(accuracy_by_samples=rounds["accuracy"] / 2)
    keys = ["variant", "seed", "cell", "session", "round", "phase"]
    table = pd.concat(
        [
            rounds[keys].assign(device=d, accuracy_personal=0.5 + d / 10, epochs=d, test_samples=n)
            for d, n in ((1, 1), (2, 3))
        ]
    )
    reading = Reading(by="samples")
    found = drift_figures(rounds, participants(table, reading), reading).iloc[0]
    assert (found["before"], found["dip"], found["final"]) == pytest.approx((0.4, 0.05, 0.35))
    assert found["personal_final"] == pytest.approx(0.675)
    assert found["epochs_before"] == 3
    alike = drift_figures(rounds, participants(table)).iloc[0]
    assert (alike["before"], alike["personal_final"]) == pytest.approx((0.8, 0.65))
    assert len(devices) == ROUNDS


@pytest.mark.parametrize("recorded", [0, 10])
def test_where_devices_are_not_recorded_rounds_say_how_good_personal_models_are(recorded: int) -> None:
    """If `record.devices` keeps no or every tenth round, means are from rounds.csv: 0.5, 0.9, and 0.6 if weighted."""
    rounds, _ = run_of(linear_recovery(30), sudden())
    keys = ["variant", "seed", "cell", "session", "round", "phase"]
    rounds = rounds.assign(
        accuracy_by_samples=rounds["accuracy"],
        accuracy_personal=np.where(rounds["round"] < FIRST, 0.5, 0.9),
        accuracy_personal_by_samples=0.6,
    )
    whole = rounds[keys].assign(device=0, accuracy_personal=0.3, epochs=1, test_samples=10)
    table = whole[whole["round"] % recorded == 0] if recorded else whole[:0]
    found = drift_figures(rounds, participants(table)).iloc[0]
    assert (found["personal_before"], found["personal_final"]) == pytest.approx((0.5, 0.9))
    reading = Reading(by="samples")
    found = drift_figures(rounds, participants(table, reading), reading).iloc[0]
    assert found["personal_final"] == pytest.approx(0.6)
    assert drift_figures(rounds, participants(whole)).iloc[0]["personal_final"] == pytest.approx(0.3)


def test_the_final_level_counts_once_it_is_settled() -> None:
    """Accuracy falls from 80 to 40 %, and is 65 % from round 20: settled after 40 rounds, and not after 39."""
    back = np.repeat([0.4, 0.65], 20)
    assert Reading(smooth=5).recovery_rounds(back, 0.8, 0.65, 0.4) == 20
    assert Reading(smooth=5).recovery_rounds(back[1:], 0.8, 0.65, 0.4) == np.inf
    back[30:] = 0.8
    assert Reading(smooth=5).recovery_rounds(back[1:], 0.8, 0.725, 0.4) == 29


@pytest.mark.parametrize("reading", [Reading(), Reading(recovery="plateau", smooth=5)])
def test_who_stays_in_the_dip_has_not_recovered(reading: Reading) -> None:
    """Accuracy falls from 84 to 1 %, and stays there for 60 rounds, or it stays at 84 %."""
    assert reading.recovery_rounds(np.full(60, 0.01), 0.84, 0.01, 0.01) == np.inf
    assert reading.recovery_rounds(np.full(60, 0.84), 0.84, 0.84, 0.84) == 0
    late = np.repeat([0.01, 0.8], 30)
    assert reading.recovery_rounds(late, 0.84, 0.8, 0.01) == pytest.approx(30, abs=5)
    nothing_before = reading.recovery_rounds(late, NAN, 0.8, 0.01)
    assert nothing_before == pytest.approx(30, abs=5) if reading.recovery == "level" else nothing_before == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"smooth": 0}, "smooth is 0: must be a number of rounds, at least 1"),
        ({"window": 0}, "window is 0"),
        ({"first": 0}, "from is 0"),
        ({"margin": 1.0}, "margin is 1.0: must be a share of accuracy"),
        ({"window": 20, "last": 10}, "rounds 1 to 10 are fewer than the 20 rounds of the window"),
        ({"first": 5, "last": 4}, "rounds 5 to 4 are fewer"),
        ({"by": "rounds"}, "by is 'rounds': choose devices or samples"),
        ({"recovery": "slope"}, "recovery is 'slope': choose level or plateau"),
    ],
)
def test_what_cannot_be_read_is_said(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Reading(**given)  # type: ignore[arg-type]
