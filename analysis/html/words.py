"""Describe runs in sentences, and make the report's tables."""

import html
import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from edgefl.analysis.html.series import label_of
from edgefl.analysis.html.setting import seeds_of, setting
from edgefl.analysis.measures.metrics import of_run, training_rounds
from edgefl.analysis.measures.notes import further
from edgefl.analysis.measures.verdicts import stops
from edgefl.analysis.page import inline
from edgefl.analysis.page.formatting import (
    ENERGY_UNITS,
    NOTHING,
    TIME_UNITS,
    Units,
    compact_labels,
    count_of,
    with_unit,
)
from edgefl.analysis.page.score_words import ACCURACY, named, said, table_said
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.vocabulary import (
    COMPLETED,
    HANDOVER,
    PING_PONG,
    PING_PONG_S,
    cause_of,
    split_outcome,
)

NO_BREAK = "\u00a0"  # blank between a number and its unit
SHOWN = 0.0005  # smallest share that is not written as 0.0 %
MOST_SESSIONS = 200  # number of rows in the table of sessions


def summary(runs: Runs) -> list[str]:
    """Describe the runs of a folder in a few sentences."""
    sentences = [setting(runs)]
    if len(runs.info) == 1:
        sentences += _one(runs, next(runs.info.itertuples()))
    else:
        variants = list(dict.fromkeys(runs.info["variant"]))
        sentences.append(f"{len(runs.info)} runs: {seeds_of(runs.info)}.")
        if len(variants) == 1:  # with several variants, the answer describes how runs ended
            sentences += stops(runs.info, runs.rounds, variants)
    return sentences


def in_short(runs: Runs) -> str:
    """Describe a run on one line, with rounds, simulated time, joules and last accuracy."""
    rounds = runs.rounds
    last = _last_accuracy(rounds)
    parts = [
        count_of(len(training_rounds(rounds)), "round"),
        f"{time_text(float(runs.info['simulated_s'].iloc[0]))} simulated",
        energy_text(rounds["energy_j"].sum()),
        *([] if pd.isna(last) else [f"{named(runs.score)} {_percent(last)}"]),
    ]
    return ", ".join(parts).replace(NO_BREAK, " ")


def in_cell(runs: Runs, figure: Figure) -> str:
    """Write a run's HTML for a notebook: sentences, a table, a figure and the notes."""
    first = next(runs.info.itertuples())
    shown = comparison(runs).set_index("run").T
    return inline.cell(
        inline.paragraphs(summary(runs)),
        inline.table(table_said(shown, runs.score)),
        inline.picture(figure, f"{first.name}: accuracy over time and energy"),
        inline.paragraphs([f"Note: {note}" for note in first.notes], "soft"),
    )


def _accuracy(rounds: pd.DataFrame, score: str) -> str:
    """Describe in a sentence the accuracy of a run's last models, and of the best model that a round made."""
    known = rounds.dropna(subset=["accuracy"]).sort_values("end_s")
    several = known["cell"].nunique() > 1
    last, top = _percent(_last_accuracy(known)), known.loc[known["accuracy"].idxmax()]
    best = _percent(top["accuracy"])
    models = "last models" if several else "last model"
    if score != ACCURACY:  # not a share of samples
        have, mean = ("have", ", averaged over the cells with equal weights") if several else ("has", "")
        text = f"The {models} {have} an accuracy of {last} on the test samples{mean}"
        return said(f"{text}; the best after a round has {best}.", score)
    places = [f"{name}{NO_BREAK}{int(top[name])}" for name in ("cell", "session", "round")]
    where = ", ".join(places if several else places[1:])
    classify = "classify" if several else "classifies"
    mean = ", averaged over the cells with equal weights" if several else ""
    return (
        f"The {models} {classify} {last} of the test samples correctly{mean}; the best after a round is {best},"
        f" in {where}."
    )


def _last_accuracy(rounds: pd.DataFrame) -> float:
    """Average the accuracy of the cells' last tested models; NaN without one."""
    known = rounds.dropna(subset=["accuracy"]).sort_values("end_s")
    return float(known.groupby("cell")["accuracy"].last().mean())


def comparison(runs: Runs) -> pd.DataFrame:
    """Make a table of accuracy, time and energy, with a row per run."""
    rows = []
    for run in runs.info.itertuples():
        rounds, sessions = of_run(runs.rounds, run), of_run(runs.sessions, run)
        training = training_rounds(rounds)
        rows.append(
            {
                "run": label_of(run, runs),
                "sessions": str(len(sessions)),
                "rounds": f"{len(training):,}",
                "simulated time": time_text(run.simulated_s),
                "median round time": time_text(training["latency_s"].median()),
                "energy of all devices": energy_text(rounds["energy_j"].sum()),
                "wasted": _percent(_wasted(rounds)),
                "mean opening accuracy": _percent(sessions["accuracy_start"].mean()),
                "last accuracy": _percent(_last_accuracy(rounds)),
                "best accuracy": _percent(rounds["accuracy"].max()),
                **{heading: text for heading, text, _ in further(runs, run.variant, run.seed)},
            }
        )
    return pd.DataFrame(rows).fillna(NOTHING)


def session_table(runs: Runs, run: Any) -> pd.DataFrame:
    """Make a table with a row per session of one run."""
    rounds, sessions = of_run(runs.rounds, run), of_run(runs.sessions, run)
    grouped = dict(list(rounds.groupby(["cell", "session"])))
    rows = []
    for row in sessions.sort_values(["start_s", "cell"]).head(MOST_SESSIONS).itertuples():
        mine = grouped.get((row.cell, row.session), rounds.iloc[:0])
        known = mine.dropna(subset=["accuracy"])
        rows.append(
            {
                "cell": str(int(row.cell)),
                "session": str(row.session),
                "start": time_text(row.start_s),
                "reason": str(row.reason),
                "devices": str(len(str(row.devices).split())),
                "labels": compact_labels(str(row.labels)),
                "warm start": str(row.warm_start) or NOTHING,
                "accuracy at start": _percent(row.accuracy_start),
                "accuracy at end": _percent(known["accuracy"].iloc[-1] if len(known) else float("nan")),
                "rounds": str(len(training_rounds(mine))),
                "energy": energy_text(mine["energy_j"].sum()),
            }
        )
    table = pd.DataFrame(rows)
    return table.drop(columns=["cell"]) if len(table) and table["cell"].nunique() == 1 else table


def outcome_table(runs: Runs, run: Any) -> pd.DataFrame:
    """Make a table with a row per outcome of participations, and a column with the outcome's meaning."""
    devices = of_run(runs.devices, run)
    rows = []
    overlaps = devices["dispatch"].notna() if "dispatch" in devices else pd.Series(False, devices.index)
    for (word, _), group in devices.groupby(["outcome", overlaps], sort=False):
        cut = split_outcome(str(word))
        dispatch = group["dispatch"].iloc[0] if "dispatch" in group else None
        why = "the update arrived" if cut is None else f"{cause_of(cut, dispatch)}, in the {cut.stage} step"
        rows.append(
            {
                "outcome": str(word),
                "meaning": why,
                "participations": f"{len(group):,}",
                "share": _percent(len(group) / len(devices)),
                "energy": energy_text(group["energy_j"].sum()),
            }
        )
    return pd.DataFrame(sorted(rows, key=lambda row: -int(row["participations"].replace(",", ""))))


def table_html(frame: pd.DataFrame, caption: str, name: str) -> str:
    """Write a data frame of text as an HTML table that scrolls on its own and can be downloaded."""
    if not len(frame):
        return f"<p>{html.escape(caption)}: none.</p>"
    rows = frame.astype(str).to_numpy().tolist()
    looks = [
        "" if all(cell[:1].isdigit() or cell == NOTHING for cell in cells) else ' class="t"'
        for cells in zip(*rows, strict=True)
    ]
    head = "".join(
        f'<th scope="col"{look}>{html.escape(str(column))}</th>'
        for column, look in zip(frame.columns, looks, strict=True)
    )
    body = "".join(
        f'<tr><th scope="row">{html.escape(row[0])}</th>'
        + "".join(
            f"<td{look}>{html.escape(cell)}</td>" for cell, look in zip(row[1:], looks[1:], strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<figure class="table"><figcaption>{html.escape(caption)} <button type="button" class="download" '
        f'data-table="{name}">CSV</button></figcaption><div class="scroll" tabindex="0"><table '
        f'id="table-{name}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></figure>'
    )


def time_text(seconds: float) -> str:
    """Write a time with its unit, such as `42.5 ms`."""
    return _with_unit(seconds, TIME_UNITS)


def energy_text(joules: float) -> str:
    """Write an energy with its unit, such as `42.5 mJ`."""
    return _with_unit(joules, ENERGY_UNITS)


def _with_unit(value: float, units: Units) -> str:
    return NOTHING if pd.isna(value) else with_unit(value, units, NO_BREAK) if value else "0"


def _one(runs: Runs, run: Any) -> list[str]:
    rounds, devices = runs.rounds, runs.devices
    training = training_rounds(rounds)
    cells, pilots = runs.sessions["cell"].nunique(), int((training["phase"] == "pilot").sum())
    kind = "training round" if runs.trained else "round"
    among = f", {pilots:,} of them in pilot sessions," if pilots else ""
    sentences = [
        f"{count_of(len(runs.sessions), 'session')}{f' in {cells} cells' * (cells > 1)} with"
        f" {count_of(len(training), kind)}{among} took {time_text(run.simulated_s)} of simulated time and"
        f" {energy_text(rounds['energy_j'].sum())} of the devices' energy; the median round takes"
        f" {time_text(training['latency_s'].median())}.",
        *([f"How it ended: {run.stopped}."] if run.stopped else []),
    ]
    if training["accuracy"].notna().any():
        sentences.append(_accuracy(training, runs.score))
        opened = runs.sessions.loc[runs.sessions["session"] > 1, "accuracy_start"].dropna()
        if len(opened):
            span = " to ".join(dict.fromkeys([_percent(opened.min()), _percent(opened.max())]))
            sentences.append(f"Sessions after the first open with models of {span} accuracy.")
    if len(devices):
        lost = devices[devices["outcome"] != COMPLETED]
        share = f"{len(devices) - len(lost):,} of {len(devices):,} participations completed"
        waste = _wasted(rounds)
        into = f"; {_percent(waste)} of the energy went into updates that were not used"
        sentences.append(f"{share}{into if waste >= SHOWN else ''}.")
    out = training.get("out_of_coverage", pd.Series(dtype=float))
    if out.any():
        sentences.append(
            f"In {int((out > 0).sum()):,} of {count_of(len(training), kind)} some devices had no coverage"
            f" and did not take part, at most {count_of(int(out.max()), 'device')} in a round."
        )
    sentences += [sentence for _, _, sentence in further(runs, run.variant, run.seed)]
    handovers = runs.events[runs.events["event"] == HANDOVER]
    if len(handovers):
        back = int((handovers["detail"] == PING_PONG).sum())
        sentences.append(
            f"{back} of {count_of(len(handovers), 'handover')} went back to the previous cell within"
            f" {PING_PONG_S:g}{NO_BREAK}s (ping-pong)."
        )
    return sentences


def _wasted(rounds: pd.DataFrame) -> float:
    """Return the share of the joules that was spent on updates that were not used; NaN if unknown."""
    joules = rounds["energy_j"].sum()
    return (
        float(rounds["energy_wasted_j"].sum() / joules)
        if "energy_wasted_j" in rounds and joules
        else math.nan
    )


def _percent(share: float) -> str:
    return NOTHING if pd.isna(share) else f"{100 * share:.1f}{NO_BREAK}%"
