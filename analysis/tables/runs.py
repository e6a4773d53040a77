"""Tables with a column per run; of many runs, one per variant."""

import pandas as pd

MOST_RUNS = 12  # more side by side are not read


def named_runs(table: pd.DataFrame) -> pd.DataFrame:
    """Name the rows of a table by variant and seed; of many runs, average over seeds: a row per variant.

    Args:
        table: variant, seed, and numbers.
    """
    if len(table) <= MOST_RUNS:
        return table.set_index(table["variant"] + " seed " + table["seed"].astype(str))
    groups = table.drop(columns="seed").groupby("variant", sort=False)
    names = [f"{variant}, mean of {count}" for variant, count in groups.size().items()]
    return groups.mean(numeric_only=True).set_axis(names)
