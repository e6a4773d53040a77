"""What runs cost: where joules and seconds went, and the journal paper's cost analysis, stage by stage."""

from pathlib import Path
from typing import Any

import pandas as pd

from edgefl.analysis import tables
from edgefl.analysis.breakdown import breakdown
from edgefl.analysis.load import Paths, Runs
from edgefl.analysis.markup import bullets, latex_table, page, section
from edgefl.analysis.metrics import RUN, of_run
from edgefl.analysis.report import Report, noted
from edgefl.analysis.scenario_keys import keys_of
from edgefl.analysis.scope import variants_of

STAGES = {"pilot": "pilot", "probe": "gradient", "train": "training"}  # phase -> stage, J's words


def report_costs(runs: Paths | Runs, *, out: str | Path | None = None) -> Report:
    """Measure the costs of all runs, and write costs.csv, costs_stages.csv, costs.md and costs.tex.

    Raises:
        ValueError: no completed run, or a folder that cannot be written.
    """
    runs = Runs.of(runs)
    of_runs, stages = breakdown(runs), cost_analysis(runs)
    shown = tables.costs.tables(of_runs, stages, variants_of(runs.info, None))
    sentences = [*tables.costs.EXPLANATIONS, *noted(runs.said())]
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
    settings = keys_of(run.path, run.federation)
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
