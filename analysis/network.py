"""Key figures of the moving network: handovers, ping-pong, time of stay, and what broken work has cost."""

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from analysis.load import Runs
from analysis.metrics import RUN
from analysis.vocabulary import COMPLETED, CONDITIONS, EVENTS, GONE, HANDOVER, check_known, split_outcome


def handover_figures(runs: Runs) -> pd.DataFrame:
    """Count handovers, their interruptions and what broken work has cost, one row per run.

    Returns:
        variant, seed;
        handovers; handovers_per_device_hour (over the time that devices are in the area of the cells,
        switched on and charged);
        ping_pongs and ping_pong_share (handovers back to the last cell within the scenario's
        min_time_of_stay_s); time_of_stay_s (mean time connected to a cell before a handover; NaN: none);
        interruption_s (time without a cell after handovers, of all devices, within the simulated time) and
        interruption_share of that time;
        broken (participations cut off by leaving the cell: handover, cell edge, switch or battery);
        wasted_bits (moved in participations that did not complete) and wasted_j, their energy;
        wasted_share of all joules. Broken and wasted are NaN where devices.csv does not have all rounds.

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
    seen = {*devices["device"].dropna().astype(int), *events["device"].dropna().astype(int)}
    whole = run.devices_recorded == "all"
    if not whole:  # the ledger has them all
        ledger = runs.ledger
        seen = {*ledger.loc[(ledger["variant"] == run.variant) & (ledger["seed"] == run.seed), "device"]}
    # a run without devices or time has no share of them
    service_s = _service_s(events, len(seen), run.simulated_s) or math.nan
    # the last ones may outlast the simulation
    left_s = run.simulated_s - handovers["time_s"]
    interruption_s = float(handovers["interruption_s"].clip(upper=left_s).sum())
    cuts = {word: split_outcome(word, f"{run.path}/devices.csv") for word in devices["outcome"].unique()}
    gone = [outcome for outcome, cut in cuts.items() if cut and cut.cause in GONE]
    failed = devices[devices["outcome"] != COMPLETED]
    energy_j = devices["energy_j"].sum()
    lost: dict[str, float] = {
        "broken": int(devices["outcome"].isin(gone).sum()),
        "wasted_bits": int(failed[["downlink_bits", "uplink_bits"]].to_numpy().sum()),
        "wasted_j": float(failed["energy_j"].sum()),
        "wasted_share": float(failed["energy_j"].sum() / energy_j) if energy_j else 0.0,
    }
    return {
        **dict(zip(RUN, (run.variant, run.seed), strict=True)),
        "handovers": len(handovers),
        "handovers_per_device_hour": len(handovers) / (service_s / 3600),
        "ping_pongs": int((handovers["detail"] == "ping_pong").sum()),
        "ping_pong_share": float((handovers["detail"] == "ping_pong").mean()),
        "time_of_stay_s": float(handovers["stay_s"].mean()),
        "interruption_s": interruption_s,
        "interruption_share": interruption_s / service_s,
        **(lost if whole else dict.fromkeys(lost, math.nan)),
    }


def _service_s(events: pd.DataFrame, devices: int, simulated_s: float) -> float:
    """Add up the time in which a number of devices could be served."""
    changes = events[events["event"].isin(CONDITIONS)]
    missing_s = sum(
        _missing_s(zip(rows["time_s"], rows["event"], strict=True), simulated_s)
        for _, rows in changes.groupby("device")
    )
    return devices * simulated_s - missing_s


def _missing_s(changes: Iterable[tuple[float, str]], until_s: float) -> float:
    """Time in which one device lacked a condition of service, by its events (time, name) in order of time."""
    lacks: dict[str, float] = {}  # condition -> since when
    known: set[str] = set()
    gaps: list[tuple[float, float]] = []
    for time_s, event in changes:
        condition, fulfilled = CONDITIONS[event]
        if fulfilled:
            # who comes first of all was away from the start
            gaps.append((lacks.pop(condition, 0.0 if condition not in known else time_s), time_s))
        else:
            lacks[condition] = time_s
        known.add(condition)
    gaps += [(since_s, until_s) for since_s in lacks.values()]
    total_s = covered_s = 0.0
    for since_s, end_s in sorted(gaps):
        total_s += max(0.0, end_s - max(since_s, covered_s))
        covered_s = max(covered_s, end_s)
    return total_s
