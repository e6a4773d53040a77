"""Compare the costs at a swept key's last value with those at its first value, in sentences."""

from collections.abc import Sequence

import pandas as pd

from edgefl.analysis.measures.results import OF_ROUND, TO_TARGET, Sweep
from edgefl.analysis.measures.verdicts import LOWER_TARGET, ratio_of, unknown, versus
from edgefl.analysis.page.units import bare, written


def verdicts(sweep: Sweep) -> list[str]:
    """Compare each series' last value with its first, paired by seed."""
    time, energy = TO_TARGET if sweep.target else OF_ROUND
    if len(sweep.keys) > 1 or f"{time}_ratio" not in sweep.table:
        return []
    task = f"to {sweep.target.short}" if sweep.target else "for a round"
    key, sentences = sweep.keys[0], []
    for series, rows in sweep.table.groupby("series", sort=False):
        if len(rows) < 2:
            continue
        first, *_, last = values = written(key, rows[key].tolist())
        row, not_reached = rows.iloc[-1], rows["not_reached"].tolist()
        of_time, of_energy = (ratio_of(row, cost) for cost in (time, energy))
        name = key.rpartition(".")[2] if first.replace(".", "").isdigit() else bare(key)
        words = name.replace("_", " ")
        lead = "" if series == "all" else f"{series}: "
        missed = _missed(rows, values, words)
        if of_time.pairs:
            said = versus(f"{words} {last}", first, of_time, of_energy, task)
            said += f" {sweep.target.short} is {missed}." if sweep.target and missed else ""
        elif sweep.target and (not_reached[0] or not_reached[-1]):
            said = f"{sweep.target.short} is {missed}: {LOWER_TARGET}."
        elif sweep.target and not all(rows["targets"]):
            none = [value for value, of in zip(values, rows["targets"], strict=True) if not of]
            said = unknown(f"{words} {', '.join(none)}", sweep.target)
        else:
            said = f"{words} {first} and {last} have no seed in common, so there is no ratio."
        sentences.append(lead + said if lead else said[0].upper() + said[1:])
    return sentences


def _missed(rows: pd.DataFrame, values: Sequence[str], words: str) -> str:
    """Name the values at which no session reaches the target, and those at which some sessions miss it."""
    counts = list(zip(values, rows["not_reached"], rows["targets"], strict=True))
    never = [value for value, missed, of in counts if 0 < missed == of]
    some = [value for value, missed, of in counts if 0 < missed < of]
    told = []
    for named, how, every in ((never, "never reached", "any"), (some, "missed in some sessions", "every")):
        where = f"{words} {', '.join(named)}" if len(named) < len(values) else f"{every} {words}"
        told += [f"{how} at {where}"] if named else []
    return " and ".join(told)
