"""Choose a setting of a grid for each variant by validation samples, and report its score on the test data."""

from typing import Annotated, Literal

import pandas as pd
import typer

from edgefl.analysis.measures.metrics import SESSION, VALIDATION, training_rounds
from edgefl.analysis.measures.settings import seeds_of
from edgefl.analysis.page.report import Report, noted
from edgefl.analysis.runs.choices import Names, Out, Partial
from edgefl.analysis.runs.load import Paths, Settings, given_runs, load_settings

By = Literal["validation", "test"]
COLUMN = {"validation": VALIDATION, "test": "accuracy"}


def report_choice(
    *runs: Paths | Settings,
    partial: Partial = False,
    names: Names = (),
    out: Out = None,
    key: Annotated[
        str | None, typer.Option(help="Axis of the grid to choose on, or its key. Default: the only axis.")
    ] = None,
    by: Annotated[By, typer.Option(help="Samples whose accuracy decides.")] = "validation",
) -> Report:
    """Choose a value of a grid's key for each variant, and write choice.csv and choice_values.csv.

    Raises:
        ValueError: no run is completed, the grid lacks the key, or the runs have no validation samples.
    """
    loaded = given_runs(runs, load_settings, names=names, partial=partial)
    axis, notes = _axis(loaded, key), loaded.said()
    values = _scores(loaded, axis, seeds_of(loaded, notes))
    if values.empty or values[COLUMN[by]].isna().all():
        raise ValueError(
            "the runs have no accuracy on validation samples: run them with learning.evaluation.validation: "
            "0.1, or use --by test to choose on the test data, on which the report measures, too"
        )
    made = _choice(values, by)
    return Report(
        loaded.first.folder(out),
        caption=f"{axis} chosen by accuracy on the {by} samples, mean over seeds",
        tables=[("", _chosen(made, axis))],
        sentences=[*_explained(by), *noted(notes)],
        look=[("All values", "choice_values.csv")],
        numbers={"choice.csv": made, "choice_values.csv": values},
    ).write()


def _scores(loaded: Settings, axis: str, seeds: list[int]) -> pd.DataFrame:
    """Return the accuracies at sessions' ends, a row per variant, other keys of the setting, and axis value.

    Only runs with the given `seeds` count.

    Returns:
        variant, rest (as text), value, seeds, accuracy_std (over seeds); accuracy, and accuracy_validation (NaN
        without validation data): after a session's last tested round, means over sessions, cells and then seeds.
    """
    rows = []
    for setting, runs in loaded.items():
        rest = " ".join(label for name, label in setting if name != axis)
        training = training_rounds(runs.rounds)
        training = training[training["accuracy"].notna() & training["seed"].isin(seeds)]
        if VALIDATION not in training:
            training = training.assign(**{VALIDATION: float("nan")})
        ends = training.sort_values("round").groupby(SESSION)[["accuracy", VALIDATION]].last()
        by_seed = ends.groupby(["variant", "seed"], sort=False).mean()
        for variant, own in by_seed.groupby("variant", sort=False):
            rows.append(
                {
                    "variant": variant,
                    "rest": rest,
                    "value": dict(setting)[axis],
                    "seeds": len(own),
                    "accuracy": own["accuracy"].mean(),
                    VALIDATION: own[VALIDATION].mean(skipna=False),
                    "accuracy_std": own["accuracy"].std(ddof=1),
                }
            )
    return pd.DataFrame(rows)


def _choice(values: pd.DataFrame, by: By) -> pd.DataFrame:
    """Choose the most accurate value for each variant in each setting of the other keys; ties go to the first.

    Returns:
        the chosen row of `_scores`, and best_value and best_accuracy: the value with the highest accuracy on the test
        data, and this accuracy.
    """
    rows = []
    for _, own in values.groupby(["variant", "rest"], sort=False):
        known = own.dropna(subset=COLUMN[by])
        if known.empty:
            continue
        best = own.loc[own["accuracy"].idxmax()]
        chosen = known.loc[known[COLUMN[by]].idxmax()]
        rows.append({**chosen, "best_value": best["value"], "best_accuracy": best["accuracy"]})
    return pd.DataFrame(rows)


def _axis(loaded: Settings, key: str | None) -> str:
    axes = list(dict.fromkeys(name for setting in loaded for name, _ in setting))
    if not axes:
        raise ValueError(
            "the runs belong to no grid: there is nothing to choose; run a study whose `grid` lists the key's values"
        )
    if key is None and len(axes) == 1:
        return axes[0]
    last = (key or "").rpartition(".")[2]
    for name in axes:
        if name in (key, last) or (last.startswith(f"{name}_")):
            return name
    raise ValueError(f"choose one of the grid's axes by key: {', '.join(axes)}")


def _chosen(made: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Write a sentence per variant on the chosen value and its score on the test data."""
    names = (made["variant"] + " " + made["rest"]).str.strip()
    return pd.DataFrame(
        {
            axis: made["value"].astype(str).to_list(),
            "validation": [_percent(value) for value in made[VALIDATION]],
            "test": [
                _percent(mean) + ("" if pd.isna(std) else f" ± {100 * std:.1f}")
                for mean, std in zip(made["accuracy"], made["accuracy_std"], strict=True)
            ],
            "choice by test data": [
                f"{value}: {_percent(accuracy)}"
                for value, accuracy in zip(made["best_value"], made["best_accuracy"], strict=True)
            ],
        },
        index=names.to_list(),
    )


def _explained(by: str) -> list[str]:
    """Return sentences that explain the table of chosen settings."""
    sentences = ["Accuracies are measured at the end of each session, and averaged over sessions and seeds."]
    if by == "test":
        sentences.append(
            "The setting was chosen on the test data, so its accuracy is biased upwards."
            " learning.evaluation.validation: 0.1 holds out samples for the choice."
        )
    return sentences


def _percent(value: float) -> str:
    return "—" if pd.isna(value) else f"{100 * value:.1f} %"
