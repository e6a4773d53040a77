"""Lines over training rounds, with shaded sessions and a label at the end of each line."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from edgefl.analysis.figures.style import EDGE, INK, SOFT, Styles, note, plain
from edgefl.analysis.measures import metrics
from edgefl.analysis.measures.results import DIFFER
from edgefl.analysis.page.formatting import compact_labels

BAND, PILOT = "#f0f2f4", "#fcf3df"
MOST_SESSIONS_WITH_LABELS = 6
KIND_WORDS = {"pilot": "pilot", "new": "new since pilot", "recurring": "labels seen before"}
KIND_WORDS["returning"] = "same devices again"
LINE = 15  # maximum length of one line of a label
MOST_LINES = 4  # of a label; a longer name ends with an ellipsis
LABEL_INCH = 0.19  # height of a label of one line, and of a line of full size


def with_elapsed(rounds: pd.DataFrame, sessions: pd.DataFrame) -> pd.DataFrame:
    """Return the training rounds with a column `elapsed_s`, the time from a session's start to the round's end."""
    starts = sessions.drop_duplicates(metrics.SESSION)[[*metrics.SESSION, "start_s"]]
    known = metrics.training_rounds(rounds).drop(columns="start_s").merge(starts, on=metrics.SESSION)
    return known.assign(elapsed_s=known["end_s"] - known["start_s"])


def curve_of(rounds: pd.DataFrame, variant: str, column: str, starts: pd.Series) -> pd.DataFrame:
    """Average a column over seeds, by session and training round; column x holds the positions on the axis.

    Args:
        starts: position of the start of each session.
    """
    training = metrics.training_rounds(rounds)
    points = metrics.over_seeds(training[training["variant"] == variant], ["session", "round"], column)
    points = points.reset_index()
    return points.assign(x=points["round"] + points["session"].map(starts))


def curve_over_time(tests: pd.DataFrame, starts: pd.Series) -> pd.DataFrame:
    """Average a variant's accuracy over seeds, at equal times since a session's start.

    An accuracy changes evenly between two tests, and stays after the last one. A session's curve begins when each
    cell of each seed has an accuracy, and ends after the mean length of the seeds' sessions. Cells are averaged
    within a seed first.

    Args:
        tests: seed, cell, session, elapsed (position after the start of the session) and accuracy.
        starts: position of the start of each session.

    Returns:
        session, x (position on the axis), mean and std (NaN with one seed).
    """
    spells = [pd.DataFrame(columns=["session", "x", "mean", "std"], dtype=float)]
    known = tests.dropna(subset="accuracy").sort_values("elapsed")
    for session, of_session in known.groupby("session"):
        begin = of_session.groupby(["seed", "cell"])["elapsed"].min().max()
        end = max(begin, of_session.groupby("seed")["elapsed"].max().mean())
        elapsed = of_session["elapsed"].unique()
        elapsed = np.append(elapsed[(begin <= elapsed) & (elapsed < end)], end)
        cells = {
            key: np.interp(elapsed, cell["elapsed"], cell["accuracy"])
            for key, cell in of_session.groupby(["seed", "cell"])
        }
        by_seed = pd.DataFrame(cells).T.groupby(level=0).mean()
        values = {"mean": by_seed.mean(), "std": by_seed.std()}
        spells.append(pd.DataFrame({"session": session, "x": starts[session] + elapsed, **values}))
    return pd.concat(spells[1:] or spells)


def draw_lines(ax: Axes, curves: dict[str, pd.DataFrame], styles: Styles) -> None:
    """Draw one line per session; thin lines join consecutive sessions, so that jumps do not dominate the curves."""
    for name, curve in curves.items():
        style = styles[name]
        thin = style | {"linewidth": 0.8, "alpha": 0.6, "zorder": 3}
        spells = [spell for _, spell in curve.groupby("session")]
        for spell in spells:
            ax.plot(spell["x"], spell["mean"], solid_capstyle="round", **style)
            if spell["std"].notna().any():
                low, high = spell["mean"] - spell["std"], spell["mean"] + spell["std"]
                ax.fill_between(spell["x"], low, high, color=style["color"], alpha=0.2, linewidth=0, zorder=2)
        for here, there in pairwise(spells):
            (x, y), (next_x, next_y) = here[["x", "mean"]].iloc[-1], there[["x", "mean"]].iloc[0]
            ax.plot([x, next_x, next_x], [y, y, next_y], **thin)
        for last in spells[-1:]:  # a variant may have no accuracy
            (x, y), right = last[["x", "mean"]].iloc[-1], ax.get_xlim()[1]
            if x < right:
                ax.plot([x, right], [y, y], **thin)


def session_bands(ax: Axes, per_session: pd.DataFrame, lengths: pd.Series, *, pilots: bool) -> pd.Series:
    """Shade sessions of given lengths on the axis, label them above it, and return each session's position."""
    ends = lengths.cumsum()
    starts = ends - lengths
    plain(ax)
    ax.set_xlim(0, ends.iloc[-1])
    sessions = per_session.drop_duplicates("session").set_index("session")
    detailed = len(starts) <= MOST_SESSIONS_WITH_LABELS
    every = math.ceil(len(starts) / 40)
    for number, (session, start) in enumerate(starts.items()):
        end, about = ends[session], sessions.loc[session]
        pilot = pilots and about["kind"] == "pilot"
        colour = PILOT if pilot else BAND if number % 2 else "white"
        ax.axvspan(start, end, color=colour, linewidth=0, zorder=0)
        if number:
            ax.axvline(start, color=EDGE, linewidth=0.8, zorder=1)
        words = [f"session {session}"] if detailed else [f"{session}", "pilot" if pilot else ""]
        if detailed:
            kind = about["kind"] if pilot or about["kind"] != "pilot" else "new"
            labels = compact_labels(about["labels"])
            again = {"recurring": "again", "returning": "same devices again", "pilot": "pilot"}.get(kind, "")
            known = labels and labels != DIFFER
            # without labels, the kind `new labels` is not written
            words += (
                [f"labels {labels}", again] if known else ["", KIND_WORDS[kind] if labels or again else ""]
            )
        if number % every == 0:
            write_above(ax, (start + end) / 2, words)
    return starts


def pilots_matter(sessions: pd.DataFrame) -> bool:
    """Return whether any session opens with a model from pilot sessions instead of the previous session's model."""
    known = sessions[sessions["weights"].fillna("") != ""]
    past = known["weights"].astype(str).str.replace(r":\S+", "", regex=True)
    return bool((past != (known["session"] - 1).astype(str)).any())


def write_above(ax: Axes, x: float, words: Sequence[str]) -> None:
    """Write lines of text above the axes at x, the first line in bold, the last line small and grey."""
    for line, word in enumerate(reversed(words)):
        look: dict[str, Any] = {"fontsize": 8, "fontweight": "bold"} if line == len(words) - 1 else {}
        note(ax, word, (x, 1), (0, 4 + 11 * line), top=True, ha="center", color=INK if line else SOFT, **look)


def in_lines(name: str) -> list[str]:
    """Break a long name into lines, after spaces, underscores, hyphens and commas; a very long one is cut."""
    lines = [""]
    for word in re.findall(r"[^\s_,-]+[\s_,-]*|[\s_,-]+", name):
        if lines[-1] and len(lines[-1]) + len(word.rstrip()) > LINE:
            lines.append("")
        lines[-1] += word
    lines = [line.strip() for line in lines]
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], f"{lines[MOST_LINES - 1]} …"]


def label_lines(ax: Axes, curves: dict[str, pd.DataFrame], styles: Styles) -> None:
    """Label each line at its right end in its colour; move labels apart where they would overlap."""
    low, high = ax.get_ylim()
    height_inch = ax.get_position().height * ax.figure.get_figheight()  # type: ignore[union-attr]
    known = {name: curve["mean"].dropna() for name, curve in curves.items()}
    ends = {name: float(means.iloc[-1]) for name, means in known.items() if len(means)}
    names = sorted(ends, key=lambda name: ends[name])
    texts = [in_lines(name) for name in names]
    sizes = [min(10, 16 / len(lines) ** 0.5) for lines in texts]
    heights = np.array(
        [LABEL_INCH * size / 10 * len(lines) for lines, size in zip(texts, sizes, strict=True)]
    )
    gaps = (heights[1:] + heights[:-1]) / 2 / height_inch * (high - low)
    places = np.array([ends[name] for name in names])
    for _ in range(50):  # push overlapping neighbours apart
        for i, gap in enumerate(gaps):
            overlap = gap - (places[i + 1] - places[i])
            if overlap > 0:
                places[i] -= overlap / 2
                places[i + 1] += overlap / 2
    if len(places):
        places -= max(places[-1] - high, 0)
        places += max(low - places[0], 0)
    beside = ax.get_yaxis_transform()  # x as a share of the axis
    for name, place, lines, size in zip(names, places, texts, sizes, strict=True):
        colour, heavy = styles[name]["color"], styles[name]["linewidth"] > 2
        ax.plot([1, 1.013], [ends[name], place], transform=beside, color=colour, linewidth=0.8, clip_on=False)
        text = ax.text(
            1.017,
            place,
            "\n".join(lines),
            transform=beside,
            va="center",
            linespacing=1.0,
            fontsize=size,
            fontweight="bold" if heavy else "normal",
            color=colour,
        )
        box = text.get_window_extent()
        # capitals and bold letters may need more; hinting rounds a smaller font's letters to whole pixels
        room = ax.figure.bbox.width - box.x0 - 4
        text.set_fontsize(size * min(1.0, room / box.width))
