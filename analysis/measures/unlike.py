"""Notes on what makes compared runs unlike: sessions, labels, rounds; or on variants that are all alike."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pandas as pd

from edgefl.analysis.measures.metrics import (
    SESSION,
    SPELL,
    rounds_of_all,
    tested_by_all,
    training_rounds,
    unpaired,
)
from edgefl.analysis.measures.scope import left_out
from edgefl.analysis.page.formatting import first_rounds_named
from edgefl.analysis.runs.choices import FIRST_ROUNDS
from edgefl.analysis.runs.reading import REQUIRED_COLUMNS, forms


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
        info: the runs, rows of `Runs.info`.
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

    same_rounds = _alike(list(rounds["variant"].unique()), of_rounds)
    return [
        f"variants {', '.join(group[:-1])} and {group[-1]} gave identical results: the settings in which they differ"
        " had no effect"
        for variants in same_rounds  # only their other tables are read
        for group in _alike(variants, of_tables)
    ]


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
