"""Compute accuracies or costs of every setting of a grid, with a column per variant."""

from collections.abc import Iterator, Sequence

import pandas as pd

from edgefl.analysis.measures import metrics
from edgefl.analysis.measures.averages import PER_RUN, Costs
from edgefl.analysis.measures.notes import identical
from edgefl.analysis.measures.scope import left_out, roundless, scope_of
from edgefl.analysis.page.formatting import first_rounds_named, numbered
from edgefl.analysis.runs.load import Runs, Settings, named
from edgefl.analysis.runs.scenario_keys import several_servers


def seeds_of(by_setting: Settings, notes: list[str]) -> list[int]:
    """List the seeds that all variants have in all settings, ignoring a variant without any run in a setting."""
    cells = [set(group["seed"]) for runs in by_setting.values() for _, group in runs.info.groupby("variant")]
    common = sorted(set.intersection(*cells))
    if not common:
        raise ValueError("no seed is common to all settings and variants: run the missing seeds")
    if any(cell != set(common) for cell in cells):
        notes.append(f"only the seeds that all settings have are compared: {', '.join(map(str, common))}")
    return common


def rounds_of(
    by_setting: Settings, seeds: list[int], wanted: Sequence[int] | None, notes: list[str]
) -> Iterator[pd.DataFrame]:
    """Yield each setting's rounds of given seeds, and of given sessions or, after training, of a headline's sessions.

    A session of one setting's headline is compared in all settings in which the variants have it.
    """
    some = []
    for runs in by_setting.values():
        for path in roundless(runs):
            raise ValueError(f"{path} has no rounds: simulate at least one session in every setting")
        some.append(runs.rounds[runs.rounds["seed"].isin(seeds)])
        if missing := set(wanted or ()) - set(some[-1]["session"]):
            raise ValueError(f"{runs.path} has no {numbered('session', missing)}")
    if wanted is not None:
        yield from (rounds[rounds["session"].isin(wanted)] for rounds in some)
    elif by_setting.trained:
        yield from _compared(by_setting, some, notes)
    else:
        yield from some


def _compared(by_setting: Settings, some: list[pd.DataFrame], notes: list[str]) -> Iterator[pd.DataFrame]:
    """Yield those of each setting's rounds that are compared; note the sessions that are left out."""
    details = []
    for runs, rounds in zip(by_setting.values(), some, strict=True):
        own = runs.sessions[runs.sessions["seed"].isin(rounds["seed"])]
        details.append(metrics.session_kinds(rounds, own))
        scope_of(details[-1], [])
    every = {session for one in details for session in one.loc[one["in_scope"], "session"]}
    for setting, one, rounds in zip(by_setting, details, some, strict=True):
        others = every - set(one.loc[one["in_scope"], "session"])
        compared = one["in_scope"] | (one["shared"] & one["session"].isin(others))
        told = left_out(one.assign(left_out=one["left_out"] & ~compared))
        notes += [f"{named(setting)}: {note}" for note in told]
        yield rounds.merge(one.loc[compared, metrics.SESSION], on=metrics.SESSION)


def accuracies(
    runs: Runs,
    rounds: pd.DataFrame,
    variants: list[str],
    first_rounds: int,
    reference: str | None,
) -> pd.DataFrame:
    """Average a setting's accuracy over the first rounds of each session; one row per session, with its lead.

    No variant is best or leads if the variants have different servers, whose rounds mean different things.
    """
    if not rounds["accuracy"].notna().any():
        raise ValueError(f"the runs in {runs.path} have no accuracy, but the runs in other settings have one")
    first = Costs.of(metrics.accuracy_first_rounds(rounds, first_rounds), ["accuracy_first"], ["session"])
    table = first.wide({"accuracy_first": ""}, variants, ("mean", "std"))
    counts = first.table([], variants).groupby("session")["seeds"].min()
    table = table.assign(averaged_rounds=metrics.fewest_first_rounds(rounds, first_rounds), seeds=counts)
    table = table.reindex(sorted(rounds["session"].unique())).reset_index(names="session")
    several = several_servers(runs.info)
    _add_leads(table, first, variants, None if several else reference)
    return table.assign(best="") if several else table


def costs(rounds: pd.DataFrame, variants: list[str]) -> pd.DataFrame:
    """Average a setting's latency and energy over seeds, in one row."""
    all_rounds = Costs(metrics.totals(rounds).assign(session="all"), ("session",))
    names = [*PER_RUN[2:], *PER_RUN[:2]]
    table = all_rounds.wide(dict(zip(names, names, strict=True)), variants, ("mean", "std"))
    return table.reset_index(drop=True)


def _add_leads(table: pd.DataFrame, first: Costs, variants: list[str], reference: str | None) -> None:
    """Add to each row the best variant and, if all variants have a run, the reference's lead over the best other."""
    means = table[[f"{name}_mean" for name in variants]].set_axis(variants, axis=1)
    table["best"] = [row.idxmax() if row.notna().any() else "" for _, row in means.iterrows()]
    others = [name for name in variants if name != reference]
    table["lead"], table["lead_clear"] = float("nan"), False
    if reference and others:
        lead = means[reference] - means[others].max(axis=1)
        table["lead"] = lead.where(means.notna().all(axis=1))
        for place in table.index[table["lead"].notna()]:
            one, other = (
                {"variant": name, "session": table.at[place, "session"]}
                for name in (reference, means.loc[place, others].idxmax())
            )
            table.at[place, "lead_clear"] = first.difference("accuracy_first", one, other).decided


def on_servers(info: pd.DataFrame) -> list[str]:
    """Return a note if the runs have different servers."""
    several = several_servers(info)
    return [f"{several}: compare seconds and joules in one setting with `edgefl compare`"] if several else []


def on_fewer(table: pd.DataFrame, axes: Sequence[str], most: int, seeds: int) -> Iterator[str]:
    """Note rows that average fewer seeds than others, and settings that average fewer rounds."""
    if each := _fewer(table, [*axes, "session"], "seeds", seeds):
        yield f"some numbers are of fewer than {seeds} seeds, those with such a session: {each}"
    if each := _fewer(table, axes, "averaged_rounds", most):
        yield (
            f"some settings average fewer than the {first_rounds_named(most)}, those that all their variants tested,"
            f" and so may seem less accurate than other settings: {each}"
        )


def _fewer(table: pd.DataFrame, keys: Sequence[str], count: str, most: int) -> str:
    """List the keys of rows with a smaller count, each with its smallest count."""
    fewer = table[table[count] < most].groupby(list(keys), sort=False)[count].min()
    return "; ".join(
        f"{named(zip(keys, key if isinstance(key, tuple) else (key,), strict=True))}: {least:.0f}"
        for key, least in fewer.items()
    )


def note_alike(by_setting: Settings, seeds: list[int], notes: list[str]) -> None:
    """Note which settings trained the same models, with equal accuracies and losses, and which variants are equal."""
    every = pd.concat([runs.rounds for runs in by_setting.values()])
    notes += identical(every[every["seed"].isin(seeds)], by_setting.info)
    alike: dict[str, list[str]] = {}
    for setting, runs in by_setting.items():
        rounds = runs.rounds[runs.rounds["seed"].isin(seeds)].sort_values([*metrics.SESSION, "round"])
        scores = rounds.reindex(columns=[*metrics.SESSION, "round", "accuracy", "loss"])
        alike.setdefault(scores.to_csv(index=False), []).append(named(setting))
    if several := [" = ".join(group) for group in alike.values() if len(group) > 1]:
        notes.append(f"these settings trained the same models and are not independent: {'; '.join(several)}")
