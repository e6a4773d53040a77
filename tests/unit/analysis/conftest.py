"""Write run directories for the tests of analysis, and render figures only for tests that inspect them."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure

from tests.tools.figures import leave_figures_empty

RENDER = Figure.savefig
ROUND = {
    "version": 1,
    "phase": "train",
    "participants": 3,
    "completed": 3,
    "downlink_bits": 96,
    "uplink_bits": 96,
    "latency_s": 10.0,
    "latency_mean_s": 8.0,
    "energy_j": 5.0,
    "energy_rx_j": 1.0,
    "energy_tx_j": 3.0,
    "energy_compute_j": 1.0,
    "energy_tail_j": 0.0,
    "accuracy": "",
    "loss": "",
}
SESSION = {
    "reason": "schedule",
    "devices": "1 2 3",
    "labels": "0 1",
    "warm_start": "previous",
    "weights": "",
    "accuracy_start": "",
    "loss_start": "",
}
DEVICE = {
    "phase": "train",
    "device": 1,
    "distance_m": 50.0,
    "downlink_bits": 32,
    "uplink_bits": 32,
    "energy_j": 5.0,
    "outcome": "completed",
}
ROUND_COLUMNS = ["session", "round", *list(ROUND)[:2], "start_s", "end_s", *list(ROUND)[2:], "cell"]
EVENT_COLUMNS = ["time_s", "event", "device", "session", "stay_s", "interruption_s", "detail"]
SESSION_COLUMNS = ["session", "start_s", *SESSION, "cell"]
LEDGER = ("receive_j", "transmit_j", "compute_j", "tail_j", "energy_j", "idle_j", "total_j", "wasted_j")


def write_run(
    directory: Path,
    rounds: list[dict],
    sessions: list[dict],
    *,
    events: Sequence[dict] = (),
    ledger: Sequence[dict] = (),
    scenario: dict | str = "",
    **run: object,
) -> Path:
    """Write a run directory from the columns of rounds and sessions that matter to a test; others have defaults.

    By default, a round follows the previous round and lasts latency_s, and a session begins with its first round.

    Args:
        events: events beside the sessions' starts.
        ledger: a row per device, numbered from 0; joules are 0 by default.
        scenario: content of scenario.yaml, or its text.
        run: further entries of run.json.
    """
    directory.mkdir(parents=True)
    clock_s, rows, firsts = 0.0, [], {}
    for given in rounds:
        row = {**ROUND, "cell": 0, "start_s": clock_s, **given}
        row.setdefault("end_s", row["start_s"] + row["latency_s"])
        clock_s = row["end_s"]
        firsts.setdefault(row["session"], row["start_s"])
        rows.append(row)
    spells = [
        {**SESSION, "cell": 0, "start_s": firsts.get(given["session"], clock_s), **given}
        for given in sessions
    ]
    devices = [{"session": row["session"], "round": row["round"], **DEVICE} for row in rows]
    starts = [{"time_s": s["start_s"], "event": "session_start", "session": s["session"]} for s in spells]
    books = [{"device": device, **dict.fromkeys(LEDGER, 0.0), **row} for device, row in enumerate(ledger)]
    information = {
        "schema_version": 1,
        "status": "completed",
        "name": directory.name,
        "study": None,
        "variant": None,
        "reference": None,
        "seed": 1,
        "wall_s": 1.0,
        "simulated_s": clock_s,
    }
    (directory / "run.json").write_text(json.dumps(information | run))
    for name, table, columns in (
        ("rounds", rows, ROUND_COLUMNS),
        ("sessions", spells, SESSION_COLUMNS),
        ("devices", devices, ["session", "round", *DEVICE]),
        ("events", [*starts, *events], EVENT_COLUMNS),
        *[("ledger", books, ["device", *LEDGER])] * bool(books),
    ):
        further = [column for row in table for column in row if column not in columns]
        frame = pd.DataFrame(table, columns=list(dict.fromkeys([*columns, *further])))
        frame.to_csv(directory / f"{name}.csv", index=False)
    if scenario:
        text = scenario if isinstance(scenario, str) else yaml.safe_dump(scenario)
        (directory / "scenario.yaml").write_text(text)
    return directory


def rounds_of(session: int, accuracies: Iterable[float], phase: str = "train", **more: float) -> list[dict]:
    """Return a session's rounds with these accuracies, numbered from 1."""
    return [
        {"session": session, "round": t, "phase": phase, "accuracy": accuracy, **more}
        for t, accuracy in enumerate(accuracies, start=1)
    ]


def change(run: Path, name: str, **columns: object) -> None:
    """Set columns of a table in a run directory."""
    pd.read_csv(run / f"{name}.csv").assign(**columns).to_csv(run / f"{name}.csv", index=False)


def write_study(
    root: Path,
    *,
    variants: tuple[str, ...] = ("similarity", "previous", "average"),
    seeds: tuple[int, ...] = (100,),
    sessions: int = 7,
    rounds: int = 50,
    trained: bool = True,
    reference: str | None = "similarity",
) -> Path:
    """Write a study like the journal's: a pilot session, then two label sets in turn.

    Accuracy rises exponentially from a session's opening to a ceiling. In a recurring session `similarity` opens near
    the ceiling (and has one probe round per session after the pilot), `average` halfway, other variants low.
    """
    opening = {"similarity": 0.86, "average": 0.45}
    pace = {"similarity": 9.0, "previous": 8.0, "average": 7.0}
    for variant in variants:
        for seed in seeds:
            rng = np.random.default_rng([seed, len(variant)])
            rows, spells = [], []
            for session in range(1, sessions + 1):
                recurring = session > 3
                start = opening.get(variant, 0.08) if recurring else 0.1 if session == 1 else 0.2
                start += rng.normal(0, 0.015)
                ceiling = 0.9 + 0.006 * session + rng.normal(0, 0.004)
                if variant == "similarity" and session > 1:
                    rows.append(_round(session, 1, "probe", rng, 0.3))
                for t in range(1, rounds + 1):
                    accuracy = ceiling - (ceiling - start) * np.exp(-t / pace.get(variant, 12.0))
                    row = _round(session, t, "pilot" if session == 1 else "train", rng, 1.0)
                    rows.append(row | ({"accuracy": accuracy + rng.normal(0, 0.006)} if trained else {}))
                labels = "0 1 2 3 4 5" if session % 2 else "4 5 6 7 8 9"
                spells.append(
                    {"session": session, "labels": labels}
                    | ({"accuracy_start": max(start, 0)} if trained else {})
                )
            run = {"study": "demo", "variant": variant, "seed": seed, "reference": reference}
            write_run(root / variant / f"seed-{seed}", rows, spells, **run)
    return root


def _round(session: int, t: int, phase: str, rng: np.random.Generator, load: float) -> dict:
    latency_s, energy_j = 6.9 * np.exp(rng.normal(0, 0.1)), 77.7 * load * np.exp(rng.normal(0, 0.05))
    shares = {"energy_rx_j": 0.1, "energy_tx_j": 0.6, "energy_compute_j": 0.3}
    return {
        "session": session,
        "round": t,
        "phase": phase,
        "latency_s": latency_s,
        "latency_mean_s": 0.7 * latency_s,
        "energy_j": energy_j,
        **{name: share * energy_j for name, share in shares.items()},
    }


@pytest.fixture(name="write_run")
def write_run_fixture(tmp_path: Path) -> Callable[..., Path]:
    """Return `write_run` for the test's folder `tmp_path / "runs"`."""

    def write(name: str, rounds: list[dict], sessions: list[dict], **about: Any) -> Path:
        return write_run(tmp_path / "runs" / name, rounds, sessions, **about)

    return write


@pytest.fixture(name="write_study")
def write_study_fixture(tmp_path: Path) -> Callable[..., Path]:
    """Return `write_study` for the folder `tmp_path / "study"`."""
    return lambda **choices: write_study(tmp_path / "study", **choices)


@pytest.fixture(autouse=True)
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figure files empty, as rendering takes half of a comparison's time."""
    leave_figures_empty(monkeypatch)


@pytest.fixture
def rendered(unrendered: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the rendering that `unrendered` turns off, for tests that inspect figures."""
    monkeypatch.setattr(Figure, "savefig", RENDER)
