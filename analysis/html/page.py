"""Write a report as one HTML file with text, tables, charts, a replay, the scenario and its origin."""

import html
import json
import string
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from edgefl.analysis.html import series, words
from edgefl.analysis.html.answer import answer
from edgefl.analysis.html.energy import energy
from edgefl.analysis.html.replay import replay_of
from edgefl.analysis.html.setting import MOST_NAMED
from edgefl.analysis.page.formatting import ending_in
from edgefl.analysis.page.own_files import file_to_write
from edgefl.analysis.page.score_words import ACCURACY, named, table_said
from edgefl.analysis.runs.clock import own_clock
from edgefl.analysis.runs.load import Runs, load_runs

ASSETS = resources.files("edgefl.analysis.html") / "assets"
SCRIPTS = ("unpack.js", "charts.js", "world.js", "device.js", "replay.js", "page.js")
FILE = "report.html"
MOST_REPLAYS = 6  # number of replays in one page


def write_report(path: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a run, or of a study's runs, and return its path.

    Args:
        path: folder of a run or of a study.
        out: the file to write, .html or .htm, by default report.html in the folder.

    Raises:
        ValueError: no run is completed, the file's name has a wrong ending, the file exists and is not a report, or
            it cannot be written.
    """
    given = None if out is None else page_to_write(out)
    runs = load_runs(path, partial=None)
    target = given or page_to_write((runs.home or Path(path)) / FILE)
    try:
        if out is None:
            target.parent.mkdir(exist_ok=True)
        target.write_text(report(runs), encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot write {target} ({error.strerror}): choose another --out") from error
    return target


def page_to_write(out: str | Path) -> Path:
    """Return the path of a report to write; refuse other endings, and existing files that are not reports."""
    return file_to_write(ending_in(out, ".html", ".htm"))


def report(runs: Runs) -> str:
    """Write the HTML text of the report."""
    shown = list(runs.info.itertuples())[:MOST_REPLAYS]
    replays = [replay_of(runs, run, len(shown)) for run in shown]
    first = next(runs.info.itertuples())
    if len(runs.info) > 1:
        title = f"{runs.path.resolve().name}: {len(runs.info)} runs"
    else:
        title = ", ".join(dict.fromkeys((str(first.name), str(first.variant))))
    notes = [*runs.left_out, *runs.notes, *_notes(runs)]
    if len(runs.info) > len(shown):
        notes.append(
            f"The replay, and the tables of sessions and participations, show the first {len(shown)} of"
            f" {len(runs.info)} runs; to see another run, make a report of that run alone."
        )
    scenario = (Path(str(first.path)) / "scenario.yaml").read_text(encoding="utf-8")
    provenance = (Path(str(first.path)) / "run.json").read_text(encoding="utf-8").strip()
    charts = series.charts(runs)
    thinned = [line["every"] for chart in charts for view in chart["views"] for line in view["series"]]
    if max(thinned, default=1) > 1:
        notes.append(
            f"Long lines in charts are thinned, the longest to one point in {max(thinned)}; tables have all points."
        )
    # the clocks of all runs, since the charts show more runs than the replays
    clocks = {own_clock(str(path)) for path in runs.info["path"]}
    clock = replays[0]["clock"] if len(clocks) == 1 else None
    listed = "".join(f"<li>{html.escape(note)}</li>" for note in dict.fromkeys(notes))
    data = {"title": title, "charts": charts, "clock": clock, "replays": replays}
    if runs.score != ACCURACY:
        data["score"] = named(runs.score)
    return string.Template(_asset("page.html")).substitute(
        title=html.escape(title),
        style=_asset("uPlot.min.css") + _asset("style.css"),
        about=html.escape(_about(runs)),
        summary="".join(f"<p>{html.escape(sentence)}</p>" for sentence in words.summary(runs)),
        answer=answer(runs),
        energy=energy(runs),
        notes=f'<ul class="notes">{listed}</ul>' if notes else "",
        tables=_tables(runs),
        scenario=html.escape(scenario),
        provenance=html.escape(provenance),
        which=html.escape(f"Shown for the run {series.label_of(first, runs)}." if len(runs.info) > 1 else ""),
        data=json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        uplot=_asset("uPlot.iife.min.js"),
        script="\n".join(_asset(name) for name in SCRIPTS),
    )


def _notes(runs: Runs) -> Iterator[str]:
    """Yield the notes of the runs, each once, after the names of its runs unless all runs have the note."""
    named: dict[str, list[str]] = {}
    for run in runs.info.itertuples():
        for note in dict.fromkeys(run.notes):
            named.setdefault(note, []).append(series.label_of(run, runs))
    for note, names in named.items():
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        of = f"{'; '.join(names[:MOST_NAMED])}{more}: "
        yield note if len(names) == len(runs.info) else of + note


def _tables(runs: Runs) -> str:
    parts = [words.table_html(table_said(words.comparison(runs), runs.score), "Runs", "runs")]
    for number, run in enumerate(list(runs.info.itertuples())[:MOST_REPLAYS]):
        inner = "".join(
            words.table_html(table_said(table(runs, run), runs.score), caption, f"{name}-{number}")
            for table, caption, name in (
                (words.session_table, f"Sessions (at most {words.MOST_SESSIONS})", "sessions"),
                (words.outcome_table, "How participations ended", "outcomes"),
            )
        )
        if len(runs.info) > 1:
            label = html.escape(series.label_of(run, runs))
            inner = f"<details{' open' * (number == 0)}><summary>{label}</summary>{inner}</details>"
        parts.append(inner)
    return "".join(parts)


def _about(runs: Runs) -> str:
    seeds = sorted(runs.info["own_seed"].unique())
    named = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    wall_s = runs.info["wall_s"].sum()
    simulated_s = runs.info["simulated_s"].sum()
    return f"{named} · {words.time_text(simulated_s)} simulated in {words.time_text(wall_s)}"


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
