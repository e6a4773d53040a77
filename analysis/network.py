"""Key figures of the moving network: handovers, ping-pong, time of stay, and what broken work has cost."""

import math
from typing import Any

import pandas as pd

from analysis.load import Runs
from analysis.metrics import RUN
from analysis.vocabulary import COMPLETED, EVENTS, GONE, HANDOVER, check_known, split_outcome


def handover_figures(runs: Runs) -> pd.DataFrame:
    """Count handovers, their interruptions and what broken work has cost, one row per run.

    Returns:
        variant, seed;
        handovers; handovers_per_device_hour (over all devices and the whole simulated time);
        ping_pongs and ping_pong_share (handovers back to the last cell within the scenario's
        min_time_of_stay_s); time_of_stay_s (mean time connected to a cell before a handover; NaN: none);
        interruption_s (time without a cell after handovers, of all devices, within the simulated time) and
        interruption_share of all their time;
        broken (participations cut off by leaving the cell: handover, cell edge, switch or battery);
        wasted_bits (moved in participations that did not complete) and wasted_j, their energy;
        wasted_share of all joules.

    Raises:
        ValueError: the runs were made before handovers were recorded, or have an event or outcome that is unknown.
    """
    if "interruption_s" not in runs.events:
        raise ValueError(f"the runs in {runs.path} are older than the handover figures: run them again")
    return pd.DataFrame([_figures_of(run, runs) for run in runs.info.itertuples()])


def _figures_of(run: Any, runs: Runs) -> dict[str, Any]:
    events, devices = (
        table[(table["variant"] == run.variant) & (table["seed"] == run.seed)]
        for table in (runs.events, runs.devices)
    )
    check_known(events["event"].unique(), EVENTS, f"{run.path}/events.csv")
    handovers = events[events["event"] == HANDOVER]
    # a run without devices or time has no share of them
    count = _device_count(events, devices) or math.nan
    simulated_s = run.simulated_s or math.nan
    hours = simulated_s / 3600
    # the last ones may outlast the simulation
    left_s = run.simulated_s - handovers["time_s"]
    interruption_s = float(handovers["interruption_s"].clip(upper=left_s).sum())
    cuts = {word: split_outcome(word, f"{run.path}/devices.csv") for word in devices["outcome"].unique()}
    gone = [outcome for outcome, cut in cuts.items() if cut and cut.cause in GONE]
    failed = devices[devices["outcome"] != COMPLETED]
    energy_j = devices["energy_j"].sum()
    return {
        **dict(zip(RUN, (run.variant, run.seed), strict=True)),
        "handovers": len(handovers),
        "handovers_per_device_hour": len(handovers) / count / hours,
        "ping_pongs": int((handovers["detail"] == "ping_pong").sum()),
        "ping_pong_share": float((handovers["detail"] == "ping_pong").mean()),
        "time_of_stay_s": float(handovers["stay_s"].mean()),
        "interruption_s": interruption_s,
        "interruption_share": interruption_s / count / simulated_s,
        "broken": int(devices["outcome"].isin(gone).sum()),
        "wasted_bits": int(failed[["downlink_bits", "uplink_bits"]].to_numpy().sum()),
        "wasted_j": float(failed["energy_j"].sum()),
        "wasted_share": float(failed["energy_j"].sum() / energy_j) if energy_j else 0.0,
    }


def _device_count(events: pd.DataFrame, devices: pd.DataFrame) -> int:
    """Count the devices that a run has seen: in a round, or in an event."""
    return len({*devices["device"].dropna().astype(int), *events["device"].dropna().astype(int)})
