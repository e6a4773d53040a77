"""Compare measures of the spread over devices with hand-computed values."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis import report_fairness
from edgefl.analysis.reports.fairness import measures

Write = Callable[..., Path]


def scores(accuracy: list[float], **columns: object) -> pd.DataFrame:
    given = {"variant": "a", "seed": 1, "model": "served", "cell": 0, "class": "", "samples": 1}
    return pd.DataFrame({**given, "device": range(len(accuracy)), "accuracy": accuracy, **columns})


def test_measures_follow_their_definitions() -> None:
    """For accuracies 0.1, 0.2 .. 1.0 in two cells and classes, the Gini coefficient equals a sum over all pairs."""
    accuracy = [k / 10 for k in range(1, 11)]
    table = scores(
        accuracy, cell=[0] * 5 + [1] * 5, samples=range(1, 11), **{"class": ["phone", "sensor"] * 5}
    )
    (row,) = measures(table).itertuples()
    assert row.devices == 10
    assert row.mean == pytest.approx(0.55)
    assert row.by_samples == pytest.approx(sum(k * k for k in range(1, 11)) / 10 / 55)
    assert (row.lowest, row.highest) == (0.1, 1.0)
    assert row.median == pytest.approx(0.55)
    assert row.q10 == pytest.approx(0.19)
    assert row.worst_tenth == 0.1
    assert row.gap_cells == pytest.approx(0.8 - 0.3)
    assert row.gap_classes == pytest.approx(0.6 - 0.5)
    pairs = np.abs(np.subtract.outer(accuracy, accuracy)).mean()
    assert row.gini == pytest.approx(pairs / (2 * 0.55))


def test_the_worst_tenth_of_a_few_is_one() -> None:
    (row,) = measures(scores([0.5, 0.25, 0.75])).itertuples()
    assert row.worst_tenth == 0.25
    assert np.isnan(row.gap_cells)
    assert np.isnan(row.gap_classes)
    (alike,) = measures(scores([0.5] * 4)).itertuples()
    assert (alike.gini, alike.std) == (0.0, 0.0)


def test_negative_scores_have_no_gini_coefficient() -> None:
    """Half the mean difference divided by the mean is above 1 for these scores, or negative for a negative mean."""
    (row,) = measures(scores([-0.5, 0.2, 0.4])).itertuples()
    assert np.isnan(row.gini)
    assert row.worst_tenth == -0.5


def test_runs_without_scores_are_told_what_to_set(write_run: Write) -> None:
    path = write_run("a", [{"session": 1, "round": 1}], [{"session": 1}])
    with pytest.raises(
        ValueError,
        match=r"run them with learning.evaluation.tested_on: devices and learning.evaluation.scores_every: 1 ",
    ):
        report_fairness(path)


def test_a_device_counts_where_it_was_last(write_run: Write) -> None:
    path = write_run("a", [{"session": 1, "round": 1}], [{"session": 1}])
    columns = "session,round,phase,cell,end_s,device,samples,accuracy,loss,accuracy_personal,loss_personal"
    rows = ["1,2,train,0,5.0,0,10,0.1,1,,", "1,4,train,0,9.0,0,10,0.4,1,,", "1,4,train,0,9.0,1,10,0.6,1,,"]
    rows += ["1,3,train,1,8.0,1,10,0.9,1,,", "1,3,train,1,8.0,2,10,,,,"]
    (path / "evaluation.csv").write_text("\n".join([columns, *rows]) + "\n")
    ledger = "device,receive_j,transmit_j,compute_j,tail_j,energy_j,idle_j,total_j,wasted_j"
    (path / "ledger.csv").write_text("\n".join([ledger, *(f"{k},0,0,0,0,0,0,0,0" for k in range(3))]) + "\n")
    report = report_fairness(path)
    devices = report.numbers["fairness_devices.csv"]
    assert list(zip(devices.device, devices.cell, devices.accuracy, strict=True)) == [
        (0, 0, 0.4),
        (1, 0, 0.6),
    ]
