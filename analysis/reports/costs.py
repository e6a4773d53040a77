"""What runs cost: where joules and seconds went, and the journal paper's cost analysis, stage by stage."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from edgefl.analysis.measures.averages import spread
from edgefl.analysis.measures.breakdown import breakdown
from edgefl.analysis.measures.metrics import RUN, of_run
from edgefl.analysis.measures.scope import variants_of
from edgefl.analysis.page.formatting import ENERGY_UNITS, NOTHING, TIME_UNITS, amount, unit_for, with_spread
from edgefl.analysis.page.markup import bullets, latex_table, page, section
from edgefl.analysis.page.report import Report, noted
from edgefl.analysis.runs.load import Paths, Runs
from edgefl.analysis.runs.scenario_keys import keys_of

STAGES = {"pilot": "pilot", "probe": "gradient", "train": "training"}  # phase -> stage, J's words


def report_costs(runs: Paths | Runs, *, out: str | Path | None = None) -> Report:
    """Measure the costs of all runs, and write costs.csv, costs_stages.csv, costs.md and costs.tex.

    Raises:
        ValueError: no completed run, or a folder that cannot be written.
    """
    runs = Runs.of(runs)
    of_runs, stages = breakdown(runs), cost_analysis(runs)
    shown = _tables(of_runs, stages, variants_of(runs.info, None))
    sentences = [*EXPLANATIONS, *noted(runs.said())]
    parts = [section(title, table, "") for title, table in shown.items()]
    latex = [latex_table(title, table, "") for title, table in shown.items()]
    return Report(
        runs.folder(out),
        tables=list(shown.items()),
        sentences=sentences,
        look=[("Tables", "costs.md")],
        numbers={"costs.csv": of_runs, "costs_stages.csv": stages},
        texts={"costs.md": page("Costs", *parts, bullets(sentences)), "costs.tex": "\n".join(latex)},
    ).write()


def cost_analysis(runs: Runs) -> pd.DataFrame:
    """Count computation, communication and storage, one row per run and stage.

    Stages are J's: pilot (the model that gradients start from), gradient (V rounds per session from it), training
    (the sessions themselves, which J's analysis leaves out as every scheme has them).

    Returns:
        variant, seed, stage; rounds = broadcasts (J: one per round); participations; uploads (that arrived;
        J counts |A| per round, all arrive there); iterations and epochs (of all participants; NaN where devices.csv
        has not all rounds, epochs too where the run counts steps); downlink_bits, uplink_bits, energy_j;
        of the whole run, repeated: model_bits (Z), stored_models (Z kept at the end), stored_temporarily.

    Source: J, section V.
    """
    rounds = runs.rounds.assign(stage=runs.rounds["phase"].map(STAGES))
    keys = [*RUN, "stage"]
    sums = {"participants": "participations", "completed": "uploads"}
    wanted = [name for name in (*sums, "downlink_bits", "uplink_bits", "energy_j") if name in rounds]
    by_stage = rounds.groupby(keys)[wanted].sum().rename(columns=sums)
    by_stage.insert(0, "rounds", rounds.groupby(keys).size())
    whole = runs.info.loc[runs.info["devices_recorded"] == "all", RUN]
    # no run may have recorded any: an empty column has no type to merge by
    devices = runs.devices.merge(whole, on=RUN) if len(runs.devices) else runs.devices
    devices = devices.assign(stage=devices["phase"].map(STAGES))
    for name in ("iterations", "epochs"):
        column = devices.groupby(keys)[name].sum(min_count=1) if name in devices else pd.Series(dtype=float)
        by_stage[name] = column.reindex(by_stage.index)
    stored = pd.DataFrame([{**_storage(run, runs.rounds)} for run in runs.info.itertuples()])
    return by_stage.reset_index().merge(stored, on=RUN, how="left")


def _storage(run: Any, rounds: pd.DataFrame) -> dict[str, Any]:
    """Count the models that the warm start of a run keeps, in multiples of Z, by the scenario's settings."""
    settings = keys_of(run.path)
    own = of_run(rounds, run)
    pilots = int(settings.get("learning.pilot_sessions", 1))
    later = max(0, own.groupby("cell")["session"].nunique().max() - pilots) if len(own) else 0
    kept = min(later, settings.get("learning.warm_start.history") or later)
    stored = {
        # w_pilot, and per session its last model and its gradient
        "similarity": 1 + 2 * kept,
        "average": kept,
        # the last model, on which the next session goes on
        "previous": 1,
        "continuous": 1,
    }.get(str(settings.get("learning.warm_start")), float("nan"))
    probes = bool((own["phase"] == "probe").any())
    return {
        **dict(zip(RUN, (run.variant, run.seed), strict=True)),
        "model_bits": run.payload_bits,
        "stored_models": stored,
        "stored_temporarily": pilots if probes else 0,
    }


ENERGY = {
    "receive_j": "receive",
    "transmit_j": "transmit",
    "compute_j": "compute",
    "tail_j": "tails of transfers",
    "energy_j": "energy, the sum",
    "probe_j": "of it in probe rounds",
    "wasted_j": "of it wasted",
    "excess_j": "of it above the least",
    "idle_j": "idle, besides",
    "total_j": "energy and idle",
    "server_j": "server, besides",
}
RUN_TIME = {
    "rounds_s": "training rounds",
    "probe_s": "probe rounds",
    "between_s": "between rounds",
    "simulated_s": "in all",
}
STEP_TIME = {
    f"{who}{step}_s": f"{words}: {step}"
    for who, words in (("", "mean device"), ("slowest_", "slowest device"))
    for step in ("downlink", "compute", "uplink", "waiting")
}
COUNTS = {
    "rounds": "rounds (broadcasts)",
    "participations": "participations",
    "uploads": "uploads",
    "epochs": "local epochs",
    "iterations": "local iterations",
}
EXPLANATIONS = (
    "Means over seeds, ± standard deviation. Energy: what learning causes in all devices, as everywhere; wasted: on"
    " updates that were not aggregated; idle: what devices draw that neither work nor have a tail.",
    "Above the least: what the rounds' completed devices have spent on computing and sending more than with the best"
    " shares, powers and clocks for the same work in the same time (record.energy_excess).",
    "Time of a participation: of completed ones in training rounds; waiting: queued between the steps. The slowest"
    " device's steps add up to the latency of a synchronous round.",
    "Stages (J, section V): pilot sessions; gradient, the V probe rounds of each later session; training. A"
    " broadcast is a round; uploads are those that arrived. Models kept: in all cells alike, each of the size of a"
    " transfer.",
)


def _tables(breakdown: pd.DataFrame, costs: pd.DataFrame, variants: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Write all tables, [quantities x variants] each, means over seeds: title -> table."""
    written = {}
    for title, words, units in (
        ("Energy of a run", ENERGY, ENERGY_UNITS),
        ("Simulated time of a run", RUN_TIME, TIME_UNITS),
        ("Time of a participation in a training round", STEP_TIME, TIME_UNITS),
    ):
        table, unit = _spreads(breakdown, words, variants, units)
        if len(table):
            written[f"{title} ({unit})"] = table
    written["Cost analysis (J, section V), means over seeds"] = _stages(costs, variants)
    return {title: table for title, table in written.items() if len(table)}


def _spreads(
    frame: pd.DataFrame, words: dict[str, str], variants: Sequence[str], units: tuple[tuple[str, float], ...]
) -> tuple[pd.DataFrame, str]:
    known = {name: title for name, title in words.items() if name in frame and frame[name].notna().any()}
    unit, size = unit_for(frame[list(known)].to_numpy().ravel() if known else [], units)
    columns = {}
    for variant in variants:
        rows = frame[frame["variant"] == variant]
        numbers = [spread("x", rows[name] / size) for name in known]
        columns[variant] = [with_spread(number["x_mean"], number["x_std"]) for number in numbers]
    return pd.DataFrame(columns, index=list(known.values())), unit


def _stages(costs: pd.DataFrame, variants: Sequence[str]) -> pd.DataFrame:
    columns: dict[str, dict[str, str]] = {}
    for variant in variants:
        rows, cells = costs[costs["variant"] == variant], {}
        for stage in ("pilot", "gradient", "training"):
            means = rows[rows["stage"] == stage][[name for name in COUNTS if name in rows]].mean()
            for name, value in means.items():
                cells[f"{stage}: {COUNTS[str(name)]}"] = amount(value, 0)
            bits = rows.loc[rows["stage"] == stage, ["uplink_bits", "downlink_bits"]].mean()
            for way in ("uplink", "downlink"):
                cells[f"{stage}: {way} (Mbit)"] = amount(bits[f"{way}_bits"] / 1e6)
        stored = rows[["stored_models", "stored_temporarily", "model_bits"]].astype(float).mean()
        size = stored["model_bits"] / 8e6
        for name, words in (("stored_models", "kept at the end"), ("stored_temporarily", "kept for a while")):
            count = stored[name]
            known = not math.isnan(count)
            cells[f"models {words}"] = amount(count, 0) if known else NOTHING
            if known and not math.isnan(size):
                cells[f"models {words}"] += f" ({amount(count * size)} MB)"
        columns[variant] = cells
    table = pd.DataFrame(columns).fillna(NOTHING)
    return table[(table != NOTHING).any(axis=1)]
