"""The report's tables say what each session had, also one that had no round."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from edgefl.analysis import load_runs
from edgefl.analysis.html.words import session_table, summary


def test_a_session_without_rounds_has_no_rounds_and_no_energy(write_run: Callable[..., Path]) -> None:
    rounds = [{"session": 1, "round": number, "accuracy": 0.5, "energy_j": 5.0} for number in (1, 2)]
    runs = load_runs(write_run("a", rounds, [{"session": 1}, {"session": 2}]))
    table = session_table(runs, next(runs.info.itertuples()))
    assert table["session"].tolist() == ["1", "2"]
    assert table["rounds"].tolist() == ["2", "0"]
    assert table["energy"].tolist() == ["10.0\N{NO-BREAK SPACE}J", "0"]


def test_a_private_run_has_the_largest_epsilon(write_run: Callable[..., Path]) -> None:
    """`edgefl run` ends with the same number; a row without an upload has none."""
    rounds = [{"session": 1, "round": number, "accuracy": 0.5} for number in (1, 2, 3)]
    path = write_run("a", rounds, [{"session": 1}])
    (path / "scenario.yaml").write_text(
        "{cell: {radius_m: 250.0}, layout: {rings: 0, isd_m: 200.0, sectors: 1, azimuth_deg: 30.0, federations: all},"
        " learning: {dataset: digits, model: mlp, algorithm: fedavg}}"
    )
    ledger = (
        "device,receive_j,transmit_j,compute_j,tail_j,energy_j,idle_j,total_j,wasted_j\n1,1,1,1,0,3,0,3,0\n"
    )
    (path / "ledger.csv").write_text(ledger)
    sentence = "Privacy: the largest epsilon of a device is 2.12."
    assert sentence not in summary(load_runs(path))
    devices = pd.read_csv(path / "devices.csv").assign(epsilon=[1.25, 2.125, None])
    devices.to_csv(path / "devices.csv", index=False)
    assert sentence in summary(load_runs(path))
