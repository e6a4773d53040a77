"""Recurring populations: sessions with largely the devices of an earlier one."""

import pandas as pd

from edgefl.analysis.measures.metrics import SESSION, SPELL, session_kinds, unpaired
from edgefl.analysis.runs.choices import OVERLAP


def population_kinds(
    rounds: pd.DataFrame, sessions: pd.DataFrame, *, overlap: float = OVERLAP
) -> pd.DataFrame:
    """Tell which sessions are pilots and in which a population recurs.

    The overlap of two sessions is the Jaccard index of their members at the start. A population recurs when a session
    overlaps by at least `overlap` with an earlier one that was no pilot. Populations may differ between the variants
    of a study, since their rounds differ in length; only sessions in which it recurs in every variant count, so that
    all variants are compared on the same ones.

    Returns:
        as `session_kinds`, with `recurring` for populations, and the columns overlap (with the most similar earlier
        session; NaN without one) and resembles (its number; the latest if several tie).

    Raises:
        ValueError: `overlap` is out of range.
    """
    if not 0 < overlap <= 1:
        raise ValueError(f"overlap is {overlap}: a share of devices, above 0 and at most 1, such as 0.5")
    kinds = session_kinds(rounds, sessions)
    devices = sessions.set_index(SESSION)["devices"]
    kinds["overlap"], kinds["resembles"] = float("nan"), pd.array([pd.NA] * len(kinds), dtype="Int64")
    for _, run in kinds.groupby(["variant", "seed", "cell"], sort=False):
        earlier: dict[int, frozenset[str]] = {}
        for row in run.itertuples():
            key = tuple(getattr(row, name) for name in SESSION)
            members = frozenset(str(devices.loc[key]).split())
            alike = {session: jaccard(members, others) for session, others in earlier.items()}
            if alike:
                most = max(alike, key=lambda session: (alike[session], session))
                kinds.loc[row.Index, ["overlap", "resembles"]] = alike[most], most
            if not row.pilot:
                earlier[int(str(row.session))] = members
    kinds["recurring"] = kinds["overlap"] >= overlap
    kinds["recurring"] = kinds.groupby(SPELL)["recurring"].transform("all")
    return kinds


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the size of the intersection over that of the union; 0 for two empty sets."""
    return len(one & other) / len(one | other) if one or other else 0.0


def notes_on(kinds: pd.DataFrame, sessions: pd.DataFrame, overlap: float) -> list[str]:
    """Return notes on the recurring populations, one sentence each.

    Args:
        kinds: of `population_kinds`.
    """
    back = kinds[kinds["recurring"]]
    notes = []
    alike = int((kinds["overlap"] >= overlap).sum())
    if alike > len(back):
        notes.append(
            f"{alike - len(back)} sessions are left out: their population came back in only some variants"
        )
    stayed = int((back["resembles"] == back["session"] - 1).sum())
    if stayed:
        notes.append(
            f"{stayed} of the {len(back)} sessions whose population came back are most like the session directly"
            " before: it stayed rather than came back"
        )
    if listed := unpaired(sessions, "devices"):
        notes.append(f"the variants have different devices in session {listed}: not a paired comparison")
    return notes
