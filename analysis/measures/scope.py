"""Choose the seeds, the reference and the sessions that a comparison covers."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd

from edgefl.analysis.measures.metrics import RUN, SESSION, SPELL, session_kinds, training_rounds, unpaired
from edgefl.analysis.measures.results import AFTER_PILOT, ALL, PILOTS, RECURRING, RETURNING
from edgefl.analysis.page.formatting import count_of, did_you_mean, numbered, ranges
from edgefl.analysis.runs.choices import OVERLAP
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.run_folders import UNKNOWN

MOST_LISTED = 6  # number of different notes, powers or lists of sessions that are shown


def _have_rounds(info: pd.DataFrame, rounds: pd.DataFrame) -> pd.Series:
    """Mark the runs with at least one training round; probe rounds alone cannot be compared."""
    some = set(training_rounds(rounds)[RUN].itertuples(index=False, name=None))
    return pd.Series([run in some for run in info[RUN].itertuples(index=False, name=None)], index=info.index)


class SideBySide(NamedTuple):
    """The runs with seeds that all variants have; `reference` is the variant that sets targets."""

    info: pd.DataFrame
    rounds: pd.DataFrame
    sessions: pd.DataFrame
    seeds: list[int]
    reference: str | None
    variants: list[str]

    @classmethod
    def of(cls, runs: Runs, reference: str | None, notes: list[str]) -> "SideBySide":
        """Select runs that have a round, with seeds that all variants have; append notes on omissions to `notes`."""
        info = runs.info[_have_rounds(runs.info, runs.rounds)]
        seeds = _common_seeds(info, notes)
        rounds, sessions = (table[table["seed"].isin(seeds)] for table in (runs.rounds, runs.sessions))
        reference = reference_of(info, reference, notes)
        return cls(info, rounds, sessions, seeds, reference, variants_of(info, reference))


def own_seeds(info: pd.DataFrame, seeds: Iterable[int]) -> tuple[int, ...]:
    """List the own seeds of the runs that are compared with given seeds."""
    return tuple(sorted(info.loc[info["seed"].isin(list(seeds)), "own_seed"].astype(int).unique()))


def roundless(runs: Runs) -> list[str]:
    """List the folders of runs without a training round.

    Raises:
        ValueError: no run has a training round.
    """
    have = _have_rounds(runs.info, runs.rounds)
    if not have.any():
        raise ValueError(f"the runs in {runs.path} have no rounds: simulate at least one session")
    return [str(path) for path in runs.info.loc[~have, "path"]]


def _common_seeds(info: pd.DataFrame, notes: list[str]) -> list[int]:
    """List the seeds that all variants have; add a note if some have more."""
    by_variant = {str(variant): set(group["seed"]) for variant, group in info.groupby("variant", sort=False)}
    common = set.intersection(*by_variant.values())
    listed = "; ".join(
        f"{variant} {', '.join(str(seed) for seed in sorted(seeds))}" for variant, seeds in by_variant.items()
    )
    if not common:
        raise ValueError(
            f"no seed is common to all variants ({listed}): run the missing ones or compare fewer variants"
        )
    if any(seeds != common for seeds in by_variant.values()):
        kept = ", ".join(str(seed) for seed in sorted(common))
        notes.append(
            f"the variants have different seeds ({listed}): only the common ones, {kept}, are compared"
        )
    return sorted(common)


def reference_of(info: pd.DataFrame, wanted: str | None, notes: list[str]) -> str | None:
    """Return the variant that sets targets: `wanted`, or the reference that the runs name."""
    known = sorted(info["variant"].unique())
    if wanted is not None:
        if wanted not in known:
            raise ValueError(f"no variant '{wanted}' to compare with{did_you_mean(wanted, known)}")
        return wanted
    named = sorted(info["reference"].dropna().unique())
    if len(named) > 1:
        raise ValueError(
            f"the runs name different references ({', '.join(named)}): choose one with --reference"
        )
    if named and named[0] not in known:
        notes.append(f"the reference '{named[0]}' has no completed run: nothing is compared with it")
        return None
    return named[0] if named else None


def variants_of(info: pd.DataFrame, reference: str | None) -> list[str]:
    """List variants in the order of the study's file or of the given folders, or, without either, reference first."""
    places: dict[str, Any] = {}
    for variant, place in zip(info["variant"], info["place"], strict=True):
        places[variant] = min(place, places.get(variant, place))
    names = sorted(places, key=lambda name: places[name])
    known = all(index != UNKNOWN for _, _, index, _ in places.values())
    if known or len({folder for _, folder, _, _ in places.values()}) > 1:
        return names
    return sorted(names, key=lambda name: name != reference)


def scope_of(detail: pd.DataFrame, notes: list[str], recurring: str = "labels") -> str:
    """Mark sessions in the new columns `in_scope`, those of a headline, `shared` and `left_out`; describe the scope.

    Only sessions that all variants have with the same seed are compared (column `measured` of `session_kinds`). Of
    these, a headline averages the recurring sessions, or else the sessions after the pilot, or else the pilot: the
    first kind that every seed has. A recurring session has the labels, or the population, of an earlier session.

    Raises:
        ValueError: with one of the seeds, the variants have no session in common.
    """
    pilot, back = detail["pilot"], detail["recurring"] & ~detail["pilot"]
    kinds = [
        (RECURRING if recurring == "labels" else RETURNING, back),
        (AFTER_PILOT if pilot.any() else ALL, ~pilot),
        (ALL if pilot.all() else PILOTS, pilot),
        (ALL, pilot | ~pilot),
    ]
    seeds = set(detail.loc[detail["measured"], "seed"])
    shared = [_shared(detail, some) for _, some in kinds]
    complete = [set(detail.loc[own, "seed"]) == seeds for own in shared]
    if not any(complete):
        raise ValueError(_nothing_shared(detail, min(seeds - set(detail.loc[shared[-1], "seed"]))))
    chosen = complete.index(True)
    scope, detail["in_scope"], detail["shared"] = kinds[chosen][0], shared[chosen], shared[-1]
    usual = pd.concat([some for _, some in kinds[: chosen + 1]], axis=1).any(axis=1)
    if scope != kinds[0][0] and not pilot.all():
        what = "repeats the labels" if recurring == "labels" else "has the population"
        which = "session that all runs have" if back.any() else "session"
        no_pilot = " that is not a pilot" * bool(pilot.any())
        notes.append(f"no {which} {what} of an earlier session{no_pilot}: averages are over {scope}")
    detail["left_out"] = usual & detail["measured"] & ~detail["in_scope"]
    return scope


def left_out(detail: pd.DataFrame) -> list[str]:
    """Name in one note the sessions that some variants lack, which are therefore not compared (see `scope_of`)."""
    seeds = set(detail.loc[detail["measured"], "seed"])
    by_variant = detail[detail["left_out"]].groupby("variant", sort=False)
    told = " and ".join(_listed(own, name, seeds) for name, own in by_variant)
    return [f"only sessions that all runs have are compared; left out: {told}"] if told else []


def _shared(detail: pd.DataFrame, some: pd.Series) -> pd.Series:
    """Mark those of some sessions that all variants have with the same seed."""
    measured = detail[detail["measured"]]
    variants = measured.groupby("seed")["variant"].nunique()
    have = measured[some.loc[measured.index]].groupby(SPELL)["variant"].transform("nunique")
    return have.reindex(detail.index).eq(detail["seed"].map(variants))


def _nothing_shared(detail: pd.DataFrame, seed: int) -> str:
    """Return the error for a seed with which the variants have no session in common."""
    fewest = detail.loc[detail["measured"] & (detail["seed"] == seed), "variant"].value_counts().idxmin()
    return (
        f"'{fewest}' has no session in common with the other variants (seed {seed}): simulate it for longer, or "
        "compare the others without it"
    )


def _listed(own: pd.DataFrame, name: object, seeds: set[Any]) -> str:
    """Name a variant's sessions, with their seeds if these differ; for many seeds or cells, only count them."""
    by_sessions: dict[str, list[int]] = {}
    for seed, of_seed in own.groupby("seed"):
        by_sessions.setdefault(ranges(of_seed["session"]), []).append(int(str(seed)))
    if own["cell"].nunique() > 1 or len(by_sessions) > MOST_LISTED:
        return f"{count_of(len(own), 'session')} of {name}"
    told = [
        f"session{'s' * (not sessions.isdigit())} {sessions}"
        + f" ({numbered('seed', own_seeds)})" * (set(own_seeds) != seeds)
        for sessions, own_seeds in by_sessions.items()
    ]
    return f"{', '.join(told)} of {name}"


def check_overlap(overlap: float) -> None:
    """Raise an error if a smallest overlap of populations is outside (0, 1]."""
    if not 0 < overlap <= 1:
        raise ValueError(
            f"overlap is {overlap}: must be a share of devices above 0 and at most 1, such as 0.5"
        )


def population_kinds(
    rounds: pd.DataFrame, sessions: pd.DataFrame, *, overlap: float = OVERLAP
) -> pd.DataFrame:
    """Determine which sessions are pilots, and in which sessions a population comes back.

    The similarity of two sessions is the number of devices in both sessions divided by the number in either (the
    Jaccard index of the members at the sessions' starts). A population comes back in a session if the session's
    similarity to an earlier session, other than a pilot, is at least `overlap`. Rounds take different times in
    different variants, so populations may differ. To compare variants on the same sessions, a session counts only if
    its population comes back in every variant.

    Returns:
        the columns of `session_kinds`, with `recurring` for populations, and two more columns: overlap (the
        similarity to the most similar earlier session; NaN without an earlier session) and resembles (the number of
        that session; of equally similar sessions, the last).

    Raises:
        ValueError: the overlap is outside (0, 1].
    """
    check_overlap(overlap)
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
    """Return the size of two sets' intersection divided by the size of their union; 0 for two empty sets."""
    return len(one & other) / len(one | other) if one or other else 0.0


def notes_on(kinds: pd.DataFrame, sessions: pd.DataFrame, overlap: float) -> list[str]:
    """Return notes on the populations that recur by `population_kinds`, one sentence each."""
    back = kinds[kinds["recurring"]]
    notes = []
    alike = int((kinds["overlap"] >= overlap).sum())
    if alike > len(back):
        notes.append(
            f"{count_of(alike - len(back), 'session')} left out: the population came back in only some variants"
        )
    stayed = int((back["resembles"] == back["session"] - 1).sum())
    if stayed:
        notes.append(
            f"{stayed} of the {len(back)} sessions whose population came back are most similar to the session "
            "directly before: the population stayed rather than came back"
        )
    if listed := unpaired(sessions, "devices"):
        notes.append(
            f"the variants have different devices in session {listed}: this is not a paired comparison"
        )
    return notes
