"""A choice among settings in words and rounded numbers."""

import pandas as pd

from edgefl.analysis.metrics import VALIDATION


def chosen(made: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Write what was chosen for each variant, and what it scores."""
    names = (made["variant"] + " " + made["rest"]).str.strip()
    return pd.DataFrame(
        {
            axis: made["value"].astype(str).to_list(),
            "validation": [_percent(value) for value in made[VALIDATION]],
            "test": [
                _percent(mean) + ("" if pd.isna(std) else f" ± {100 * std:.1f}")
                for mean, std in zip(made["accuracy"], made["accuracy_std"], strict=True)
            ],
            "the test data's choice": [
                f"{value}: {_percent(accuracy)}"
                for value, accuracy in zip(made["best_value"], made["best_accuracy"], strict=True)
            ],
        },
        index=names.to_list(),
    )


def explained(by: str) -> list[str]:
    """Say how to read it."""
    sentences = ["Accuracies are those after the last round of a session, means over sessions and seeds."]
    if by == "test":
        sentences.append(
            "Chosen on the test data themselves, the accuracy is the best of several: too high by what the values"
            " differ by chance. learning.validation: 0.1 keeps samples apart to choose on."
        )
    return sentences


def _percent(value: float) -> str:
    return "—" if pd.isna(value) else f"{100 * value:.1f} %"
