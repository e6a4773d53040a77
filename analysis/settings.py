"""The variants of a study side by side in every setting of its grid, as the papers' large tables print them."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from analysis import metrics
from analysis.figures.settings import settings_figure
from analysis.load import Runs, Setting, load_settings
from analysis.results import SettingsTable
from analysis.scope import FIRST_ROUNDS, common_seeds, have_rounds, reference_of, scope_of
from analysis.tables.settings import latex, markdown


def compare_settings(
    path: str | Path,
    *,
    out: str | Path | None = None,
    reference: str | None = None,
    sessions: Sequence[int] | None = None,
    first_rounds: int = FIRST_ROUNDS,
) -> SettingsTable:
    """Compare the variants in every setting and write settings.csv, .md, .tex and .png.

    Args:
        path: folder of a study with a grid.
        out: where to write, by default that folder.
        reference: the variant whose lead is counted, by default the one that the runs name.
        sessions: these; None: those whose labels were seen before.
        first_rounds: training rounds of a session to average over (J, Table X: 10).

    Raises:
        ValueError: no completed run, no grid, other variants or seeds in some settings, no such reference or session,
            no round or accuracy, or a folder that cannot be written.
    """
    by_setting = load_settings(path)
    axes = tuple(axis for axis, _ in next(iter(by_setting)))
    if not axes:
        raise ValueError(f"the runs in {path} are of no grid: use `python -m analysis compare`")
    info = pd.concat([runs.info for runs in by_setting.values()], ignore_index=True)
    notes = list(dict.fromkeys(note for runs in by_setting.values() for note in runs.left_out))
    seeds = _seeds(by_setting, notes)
    reference = reference_of(info, reference, notes)
    variants = sorted(info["variant"].unique(), key=lambda name: (name != reference, name))
    parts = []
    for setting, runs in by_setting.items():
        if tuple(axis for axis, _ in setting) != axes or set(runs.info["variant"]) != set(variants):
            raise ValueError(f"{runs.path} has other axes or variants than the rest: give one study's folder")
        part = _of_setting(runs, seeds, variants, sessions, first_rounds)
        for place, (axis, label) in enumerate(setting):
            part.insert(place, axis, label)
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    means = table[[f"{name}_mean" for name in variants]].set_axis(variants, axis=1)
    table["best"] = means.idxmax(axis=1)
    others = [name for name in variants if name != reference]
    table["lead"] = means[reference] - means[others].max(axis=1) if reference and others else float("nan")
    folder = Path(out) if out is not None else Path(path)
    settings = SettingsTable(
        table=table,
        axes=axes,
        variants=tuple(variants),
        reference=reference,
        seeds=tuple(seeds),
        sessions=tuple(sorted(int(session) for session in table["session"].unique())),
        first_rounds=first_rounds,
        figure=folder / "settings.png",
        notes=tuple(notes),
    )
    _write(settings, folder)
    return settings


def _seeds(by_setting: dict[Setting, Runs], notes: list[str]) -> list[int]:
    """List the seeds that all variants of all settings have."""
    by_itself = [common_seeds(runs.info, []) for runs in by_setting.values()]
    common = sorted(set.intersection(*map(set, by_itself)))
    if not common:
        raise ValueError("no seed that all settings have: run the missing ones")
    if any(seeds != common for seeds in by_itself):
        notes.append(f"compared on the seeds that all settings have: {', '.join(map(str, common))}")
    return common


def _of_setting(
    runs: Runs, seeds: list[int], variants: list[str], wanted: Sequence[int] | None, first_rounds: int
) -> pd.DataFrame:
    for path in runs.info.loc[~have_rounds(runs.info, runs.rounds), "path"]:
        raise ValueError(f"{path} has no rounds: simulate at least one session in every setting")
    rounds = runs.rounds[runs.rounds["seed"].isin(seeds)]
    if not rounds["accuracy"].notna().any():
        raise ValueError(f"the runs in {runs.path} have no accuracy: settings compare what was learnt")
    detail = metrics.session_kinds(rounds, runs.sessions[runs.sessions["seed"].isin(seeds)])
    if wanted is None:
        scope_of(detail, [])
        wanted = sorted(detail.loc[detail["in_scope"], "session"].unique())
    missing = set(wanted) - set(detail["session"])
    if missing:
        raise ValueError(f"{runs.path} has no session {', '.join(map(str, sorted(missing)))}")
    first = metrics.accuracy_first_rounds(rounds, first_rounds)
    accuracy = metrics.over_seeds(first, ["session", "variant"], "accuracy_first").unstack("variant")
    columns = {
        f"{variant}_{kind}": accuracy[kind, variant] for variant in variants for kind in ("mean", "std")
    }
    return pd.DataFrame(columns).reindex([int(session) for session in wanted]).reset_index(names="session")


def _write(settings: SettingsTable, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        settings.table.to_csv(folder / "settings.csv", index=False)
        (folder / "settings.md").write_text(markdown(settings), encoding="utf-8")
        (folder / "settings.tex").write_text(latex(settings), encoding="utf-8")
        settings_figure(settings).savefig(settings.figure)
    except OSError as error:
        raise ValueError(
            f"cannot write to {folder} ({error.strerror or error}): choose another folder with --out"
        ) from error
