"""Where a run's joules and simulated seconds went."""

import math
from typing import Any

import pandas as pd

from edgefl.analysis.measures.metrics import RUN, training_rounds
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.vocabulary import COMPLETED

ROUND = [*RUN, "cell", "session", "phase", "round"]
ENERGIES = {
    "receive": "energy_rx_j",
    "transmit": "energy_tx_j",
    "compute": "energy_compute_j",
    "tail": "energy_tail_j",
}
ROUNDING = 1e-9  # of a run's time: less between rounds is a sum's last digits
STEPS = ("downlink", "compute", "uplink")


def breakdown(runs: Runs) -> pd.DataFrame:
    """Divide energy by what it was spent on, and time by what was waited for, one row per run.

    Returns:
        variant, seed; of all devices receive_j, transmit_j, compute_j, tail_j (of radios after transfers), and
        energy_j, their sum; of it probe_j (in probe rounds), wasted_j (on updates that were not aggregated) and
        excess_j (above the least of the same rounds, NaN: not recorded); idle_j (NaN: no ledger), and total_j, energy
        and idle; server_j, apart from all these;
        simulated_s, and of it rounds_s (training), probe_s, between_s (no round going on), means over cells;
        of the training rounds' completed participations the mean downlink_s, compute_s, uplink_s and waiting_s
        (queued between them, or for the next slot), and of each round's slowest one slowest_downlink_s, ...: these
        add up to what a synchronous round waits for. NaN where devices.csv has no rows.
    """
    rounds = runs.rounds
    by_run = rounds.groupby(RUN)
    parts = by_run[list(ENERGIES.values())].sum().set_axis([f"{name}_j" for name in ENERGIES], axis=1)
    parts["energy_j"] = parts.sum(axis=1)
    idle = _from_ledger(runs, "idle_j")
    parts["idle_j"] = idle.reindex(parts.index) if idle is not None else math.nan
    parts["total_j"] = parts["energy_j"] + parts["idle_j"]
    probes = rounds[rounds["phase"] == "probe"]
    parts["probe_j"] = probes.groupby(RUN)["energy_j"].sum().reindex(parts.index).fillna(0.0)
    for name in ("wasted", "server", "excess"):
        column = f"energy_{name}_j"
        parts[f"{name}_j"] = by_run[column].sum(min_count=1) if column in rounds else math.nan
    simulated = runs.info.set_index(RUN)["simulated_s"].astype(float)
    parts["simulated_s"] = simulated.reindex(parts.index).fillna(by_run["end_s"].max())
    cells = by_run["cell"].nunique()
    lasting = rounds.assign(lasts_s=rounds["end_s"] - rounds["start_s"])
    for name, some in (
        ("rounds_s", training_rounds(lasting)),
        ("probe_s", lasting[lasting["phase"] == "probe"]),
    ):
        parts[name] = some.groupby(RUN)["lasts_s"].sum().reindex(parts.index).fillna(0.0) / cells
    between = parts["simulated_s"] - parts["rounds_s"] - parts["probe_s"]
    parts["between_s"] = between.where(between > ROUNDING * parts["simulated_s"], 0.0)
    return parts.join(_participations(runs.devices, rounds)).reset_index()


def _from_ledger(runs: Runs, column: str) -> Any:
    try:
        ledger = runs.ledger
    except ValueError:  # runs of an older release have none
        return None
    return ledger.groupby(RUN)[column].sum(min_count=1) if column in ledger else None


def _participations(devices: pd.DataFrame, rounds: pd.DataFrame) -> pd.DataFrame:
    """Average the steps of completed participations, and those of the slowest of each round."""
    columns = [f"{step}_{end}_s" for step in STEPS for end in ("start", "end")]
    if devices.empty or not set(columns) <= set(devices):
        return pd.DataFrame(index=rounds.groupby(RUN).size().index)
    training = training_rounds(devices)
    done = training[training["outcome"] == COMPLETED].merge(
        rounds[[*ROUND, "start_s"]], on=ROUND, how="inner"
    )
    lasts = {f"{step}_s": done[f"{step}_end_s"] - done[f"{step}_start_s"] for step in STEPS}
    done = done.assign(**lasts)
    done["waiting_s"] = done["uplink_end_s"] - done["start_s"] - done[list(lasts)].sum(axis=1)
    names = [*lasts, "waiting_s"]
    slowest = done.loc[done.groupby(ROUND)["uplink_end_s"].idxmax()]
    return done.groupby(RUN)[names].mean().join(slowest.groupby(RUN)[names].mean().add_prefix("slowest_"))
