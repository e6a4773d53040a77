"""Count computation, communication and storage as J does, by stage."""

from typing import Any

import pandas as pd

from edgefl.analysis.measures.metrics import RUN, of_run
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.scenario_keys import keys_of

PHASES = {"pilot": "pilot", "probe": "gradient", "train": "training"}  # phase -> stage in J's words


def cost_analysis(runs: Runs) -> pd.DataFrame:
    """Count computation, communication and storage, one row per run and stage.

    Stages, from J: pilot (the model that gradients start from), gradient (V rounds per session from that model),
    training (the rounds of the sessions themselves, omitted in J's analysis, since every scheme has them).

    Returns:
        variant, seed, stage; rounds = broadcasts (J: one per round); participations; uncovered (without a link, over
        all rounds); uploads (those that arrived; J counts |A| per round, since all arrive in J); iterations and
        epochs (NaN if devices.csv lacks rounds, or a run counts steps); downlink_bits, uplink_bits, energy_j;
        the same in all rows of a run: model_bits (Z), stored_models (how many Z are kept) and stored_temporarily.

    Source: J, section V.
    """
    rounds = runs.rounds.assign(stage=runs.rounds["phase"].map(PHASES))
    keys = [*RUN, "stage"]
    sums = {"participants": "participations", "completed": "uploads", "out_of_coverage": "uncovered"}
    wanted = [name for name in (*sums, "downlink_bits", "uplink_bits", "energy_j") if name in rounds]
    by_stage = rounds.groupby(keys)[wanted].sum().rename(columns=sums)
    by_stage.insert(0, "rounds", rounds.groupby(keys).size())
    whole = runs.info.loc[runs.info["devices_recorded"] == "all", RUN]
    # if no run has recorded any, an empty column has no type to merge by
    devices = runs.devices.merge(whole, on=RUN) if len(runs.devices) else runs.devices
    devices = devices.assign(stage=devices["phase"].map(PHASES))
    for name in ("iterations", "epochs"):
        column = devices.groupby(keys)[name].sum(min_count=1) if name in devices else pd.Series(dtype=float)
        by_stage[name] = column.reindex(by_stage.index)
    stored = pd.DataFrame([_storage(run, runs.rounds) for run in runs.info.itertuples()])
    return by_stage.reset_index().merge(stored, on=RUN, how="left")


def _storage(run: Any, rounds: pd.DataFrame) -> dict[str, Any]:
    """Count the models that a run's warm start keeps by its settings, in multiples of Z (the model's bits)."""
    settings = keys_of(run.path)
    own = of_run(rounds, run)
    pilots = int(settings.get("learning.pilot_sessions", 1))
    later = max(0, own.groupby("cell")["session"].nunique().max() - pilots) if len(own) else 0
    kept = min(later, settings.get("learning.warm_start.history") or later)
    stored = {
        # similarity keeps w_pilot, and the last model and gradient of each session
        "similarity": 1 + 2 * kept,
        "average": kept,
        # previous and continuous keep the last model, with which the next session continues
        "previous": 1,
        "continuous": 1,
    }.get(str(settings.get("learning.warm_start")), float("nan"))
    return {
        "variant": run.variant,
        "seed": run.seed,
        "model_bits": run.payload_bits,
        "stored_models": stored,
        "stored_temporarily": pilots if (own["phase"] == "probe").any() else 0,
    }
