"""Notes for readers of compared runs: the runs' own, further columns, and what makes runs unlike or all alike."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from edgefl.analysis.measures.metrics import (
    SESSION,
    SPELL,
    rounds_of_all,
    tested_by_all,
    training_rounds,
    unpaired,
)
from edgefl.analysis.measures.scope import MOST_LISTED, left_out
from edgefl.analysis.page.formatting import amount, count_of, first_rounds_named, joined
from edgefl.analysis.runs.choices import FIRST_ROUNDS
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.reading import REQUIRED_COLUMNS, forms
from edgefl.analysis.runs.scenario_keys import differing, of_points

BAND, POWER = "radio.bandwidth_hz", "radio.budget.server_power_dbm"
# table, column, how its rows are summarised, sentence
FURTHER = (
    ("rounds", "staleness_mean", "mean", "Devices' updates were on average {} models old (staleness)."),
    ("info", "epsilon", "max", "The largest privacy loss epsilon of a device is {}."),
)
NUMBER = re.compile(r"\d[\d.]*")


def own_notes(info: pd.DataFrame) -> list[str]:
    """Return the runs' notes, each with its number of runs; after `MOST_LISTED` only a count.

    Notes that differ only in their numbers are told once, with the numbers of the first run.
    """
    runs_with = dict[tuple[str, int], list[tuple[Any, str]]]()
    for path, notes in zip(info["path"], info["notes"], strict=True):
        kinds = Counter[str]()  # a run's own notes of one kind, such as on two cells, stay apart
        for note in dict.fromkeys(notes):
            kind = NUMBER.sub("", note)
            runs_with.setdefault((kind, kinds[kind]), []).append((path, note))
            kinds[kind] += 1
    said = [_of_runs(found, len(info)) for found in runs_with.values()]
    more = len(said) - MOST_LISTED
    return (
        said if more <= 0 else [*said[:MOST_LISTED], f"{count_of(more, 'more note')} in the runs' run.json"]
    )


def _of_runs(found: Sequence[tuple[Any, str]], runs: int) -> str:
    """Return a note with the number of runs that have it; `found` has each run's path and wording."""
    path, note = found[0]
    if runs == 1:
        return note
    if any(other != note for _, other in found):
        return f"{len(found)} of {runs} runs, for example {path}: {note}"
    return f"{len(found)} of {runs} runs ({path}{' first' * (len(found) > 1)}): {note}"


def on_power(points: Iterable[Mapping[str, Any]]) -> list[str]:
    """Note that sites send with different power in different bands, as they do unless the power is set."""
    found = {(keys.get(BAND), keys.get(POWER)) for keys in points}
    numbers = sorted(
        (hz, dbm) for hz, dbm in found if isinstance(hz, int | float) and isinstance(dbm, int | float)
    )
    if len(dict(numbers)) < len(numbers) or len({dbm for _, dbm in numbers}) < 2:
        return []
    told = [f"{dbm:.3g} dBm at {hz / 1e6:g} MHz" for hz, dbm in numbers]
    told = told if len(told) <= MOST_LISTED else [told[0], "…", told[-1]]
    return [f"sites send with {joined(told)}: {POWER} follows {BAND} unless it is set"]


def further(runs: Runs, variant: str, seed: int | None = None) -> Iterator[tuple[str, str, str]]:
    """Yield heading, number and sentence for each further column with values in a variant's runs or one seed."""
    for name, column, how, sentence in FURTHER:
        table = getattr(runs, name)
        rows = table[(table["variant"] == variant) & (seed is None or table["seed"] == seed)]
        if column in rows and rows[column].notna().any():
            number = amount(getattr(rows[column], how)())
            yield f"{column.replace('_mean', '')}, {how}", number, sentence.format(number)


def unlike(detail: pd.DataFrame, rounds: pd.DataFrame, *, target: bool, by_rounds: bool) -> list[str]:
    """Return notes on trained runs, given the sessions in `detail`; see `verdicts` for `by_rounds`."""
    notes = left_out(detail)
    if listed := unpaired(detail, "labels"):
        what = f"the variants had different labels in session {listed} of one seed"
        notes.append(f"{what}: this is not a paired comparison")
    if not by_rounds:
        return notes
    training = compared_rounds(rounds, detail)
    return notes + _fewer_rounds(training) + (_other_tests(training) if target else [])


def compared_rounds(rounds: pd.DataFrame, detail: pd.DataFrame) -> pd.DataFrame:
    """Keep the training rounds of the sessions of `detail` that are compared."""
    return training_rounds(rounds).merge(detail.loc[detail["in_scope"], SESSION], on=SESSION)


def first_rounds_of(training: pd.DataFrame) -> int:
    """Return the number of first rounds that are averaged, fewer than usual if all variants have fewer rounds."""
    return min(FIRST_ROUNDS, int(rounds_of_all(training).max()))


def identical(rounds: pd.DataFrame, info: pd.DataFrame) -> list[str]:
    """Return a note for each group of variants that wrote the same tables, to the last digit.

    Args:
        rounds: the compared rounds.
        info: the runs, as in `Runs.info`.
    """

    def of_tables(variant: str) -> bytes:
        mine = info[(info["variant"] == variant) & info["seed"].isin(rounds["seed"])]
        tables = [
            form for path in mine["path"] for name in REQUIRED_COLUMNS for form in forms(Path(path), name)
        ]
        files = [file for form in tables for file in (sorted(form.iterdir()) if form.is_dir() else [form])]
        digests = [sha256(file.read_bytes()).digest() for file in files]
        return b"".join([repr(list(mine["simulated_s"])).encode(), *digests])

    def of_rounds(variant: str) -> bytes:
        mine = rounds[rounds["variant"] == variant].drop(columns="variant")
        return bytes(pd.util.hash_pandas_object(mine, index=False).to_numpy().tobytes())

    points, notes = of_points(info), []
    for variants in _alike(list(rounds["variant"].unique()), of_rounds):  # only their other tables are read
        for group in _alike(variants, of_tables):
            by_setting: dict[Any, list[dict[str, Any]]] = {}
            for (setting, variant), keys in points.items():
                by_setting.setdefault(setting, []).extend([keys] * (variant in group))
            differ = any(differing(own) for own in by_setting.values())
            why = (
                "the settings in which they differ had no effect" if differ else "their settings are the same"
            )
            notes.append(f"variants {joined(group)} gave identical results: {why}")
    return notes


def _alike(variants: list[str], content: Callable[[str], bytes]) -> list[list[str]]:
    """Return the groups of several variants with equal content."""
    groups: dict[bytes, list[str]] = {}
    for variant in variants:
        groups.setdefault(content(variant), []).append(variant)
    return [group for group in groups.values() if len(group) > 1]


def _fewer_rounds(training: pd.DataFrame) -> list[str]:
    """Return a note if variants have tested different rounds, so that fewer count than `verdicts.first_of` names."""
    of_all = tested_by_all(training)
    early = training["round"] <= FIRST_ROUNDS
    if not (early & training["accuracy"].notna() & ~of_all).any():
        return []
    least = (
        training["round"].where(early & of_all).groupby([training[name] for name in SPELL]).nunique().min()
    )
    most = first_rounds_of(training)
    fewer = f", in one session only {least}" if least < most else ""
    which = f"{first_rounds_named(most)} are over the rounds that all variants tested in a session"
    return [f"accuracies of the {which}{fewer}"]


def _other_tests(training: pd.DataFrame) -> list[str]:
    """Return a note if variants test their models in different rounds of the same session."""
    shared = training["accuracy"].notna() & (training["round"] <= rounds_of_all(training))
    if not (shared & ~tested_by_all(training)).any():
        return []
    return [
        "variants test their models in different rounds, and only a tested model can reach a target, so the costs of"
        " a target compare only roughly"
    ]
