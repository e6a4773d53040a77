"""What adaptation costs beyond training: the journal paper's cost analysis, stage by stage."""

from typing import Any

import pandas as pd

from analysis.load import Runs
from analysis.metrics import RUN
from analysis.scenario_keys import keys_of

STAGES = {"pilot": "pilot", "probe": "gradient", "train": "training"}  # phase -> stage, J's words


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
    found = rounds.groupby(keys)[wanted].sum().rename(columns=sums)
    found.insert(0, "rounds", rounds.groupby(keys).size())
    whole = runs.info.loc[runs.info["devices_recorded"] == "all", RUN]
    devices = runs.devices.merge(whole, on=RUN)
    devices = devices.assign(stage=devices["phase"].map(STAGES))
    for name in ("iterations", "epochs"):
        column = devices.groupby(keys)[name].sum(min_count=1) if name in devices else pd.Series(dtype=float)
        found[name] = column.reindex(found.index)
    stored = pd.DataFrame([{**_storage(run, runs.rounds)} for run in runs.info.itertuples()])
    return found.reset_index().merge(stored, on=RUN, how="left")


def _storage(run: Any, rounds: pd.DataFrame) -> dict[str, Any]:
    """Count the models that the warm start of a run keeps, in multiples of Z, by the scenario's settings."""
    settings = keys_of(run.path)
    own = rounds[(rounds["variant"] == run.variant) & (rounds["seed"] == run.seed)]
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
