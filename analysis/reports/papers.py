"""List the results that papers report, the results that edgefl has reproduced, and every number that was compared.

The facts of each paper are in `analysis/papers/facts`: one file per paper, one entry per table and figure. The
numbers that were compared are in `analysis/papers/ours`: one file per study, written by `edgefl papers --record`. A
script, a module of `edgefl.examples.papers`, prints a table of comma-separated values: setting, variant, ours,
ours_std, seeds. The paper's numbers are then in `analysis/papers`, in a file with the script's name, with columns
setting, variant, unit, theirs; a row for which the paper has no number is left out.
"""

import io
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import pandas as pd
import yaml
from rich import box
from rich.console import Console
from rich.table import Table

from edgefl.analysis.page.markup import markdown_table
from edgefl.analysis.reports.reproduction import PAPERS, Reproduction, reproduce
from edgefl.analysis.runs.reading import EXACT

FACTS, OURS = PAPERS / "facts", PAPERS / "ours"
SCRIPTS = "edgefl.examples.papers"
CHEAP = "cheap"  # stands for all results with a script
ALIKE = 1e-5  # relative difference up to which a number equals the recorded one
# A number agrees with the paper's number if it is within these bands: accuracies within two points or two standard
# errors of the difference, all other quantities within 15 %.
POINTS, SHARE, ERRORS = 2.0, 0.15, 2.0
SEEDS_OF_PAPERS = 3  # number of seeds behind a standard deviation that a paper prints
COLUMNS = ["setting", "variant", "unit", "theirs", "theirs_std", "ours", "ours_std", "seeds"]
JUDGED = COLUMNS[2:]
State = Literal["ran", "ready", "closed", "same"]


@dataclass(frozen=True)
class Result:
    """A table or figure of a paper.

    Attributes:
        paper: the paper's short name.
        name: name of the table or figure in the paper, such as `table X`.
        shows: what the table or figure reports.
        state: ran (edgefl has computed numbers), ready (a scenario or study is shipped), closed (no run can reproduce
            the result), or same (another paper has the result).
        same: paper and name of the same result in another paper, if there is one.
        study, scenario, script: the shipped study or scenario, or the module of examples/papers, that computes the
            result's numbers; all three are empty if none does.
        minutes: time that the command takes on one core; 0 if the command takes hours, or has not been timed.
        needs: data, time or hardware that the command needs.
        why: the reason for the state, or for a difference between edgefl's and the paper's numbers.
        recorded: names of the result's files in `analysis/papers/ours`.
        fitted: whether these numbers served to choose a setting; the audit then shows but does not count them.
    """

    paper: str
    name: str
    shows: str = ""
    state: State = "same"
    same: str = ""
    study: str = ""
    scenario: str = ""
    script: str = ""
    minutes: float = 0
    needs: str = ""
    why: str = ""
    recorded: tuple[str, ...] = ()
    fitted: bool = False

    @property
    def command(self) -> str:
        """The command that computes the result; empty if there is none."""
        verbs = {
            "edgefl study ": self.study,
            "edgefl run ": self.scenario,
            f"python -m {SCRIPTS}.": self.script,
        }
        return next((verb + name for verb, name in verbs.items() if name), "")


@dataclass(frozen=True)
class Paper:
    """A paper and its results, in the paper's order."""

    name: str
    title: str
    authors: str
    results: tuple[Result, ...]

    def result(self, name: str) -> Result:
        """Return a paper's result by its name, such as `table X` or only `X`.

        An unknown name raises a ValueError with the known names.
        """
        wanted = name.casefold()
        for one in self.results:
            if wanted in (one.name.casefold(), one.name.partition(" ")[2].casefold()):
                return one
        known = ", ".join(one.name for one in self.results)
        raise ValueError(f"{self.name} has no '{name}': it has {known}")


def papers() -> list[Paper]:
    """Read the facts of all papers, in the order of their files."""
    return [_paper(file) for file in sorted(FACTS.glob("*.yaml"))]


def paper(name: str) -> Paper:
    """Return the facts of one paper, or raise a ValueError with the known names."""
    file = FACTS / f"{name}.yaml"
    if not file.is_file():
        known = ", ".join(sorted(one.stem for one in FACTS.glob("*.yaml")))
        raise ValueError(f"no paper '{name}'; known: {known}")
    return _paper(file)


def _paper(file: Path) -> Paper:
    facts = yaml.safe_load(file.read_text(encoding="utf-8"))
    results = [
        Result(file.stem, name, **entry | {"recorded": tuple(entry.get("recorded", ()))})
        for name, entry in facts["results"].items()
    ]
    return Paper(file.stem, facts["title"], facts["authors"], tuple(results))


# ---- numbers


def record(one: Reproduction) -> Path:
    """Write a study's numbers next to the paper's numbers, as a file in the folder `ours`.

    The file leaves out rows for which there is no run; accuracies are in percent.
    """
    units = {"latency_mean_s": "seconds", "energy_j": "joules"}
    rows = [
        [
            " ".join([*(str(getattr(row, axis)) for axis in one.axes), f"{one.by} {getattr(row, one.by)}"]),
            row.variant,
            units.get(str(getattr(row, one.by)), "points"),
            row.paper,
            row.paper_std,
            row.ours,
            row.ours_std,
            int(row.seeds),
        ]
        for row in one.present.itertuples()
    ]
    file = OURS / f"{one.study}.csv"
    table = pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False, float_format="%.4g", lineterminator="\n")
    file.write_text(f"# {one.source}\n{table}", encoding="utf-8")
    return file


def compared(result: Result) -> pd.DataFrame:
    """Read a result's numbers in the columns `COLUMNS`, and in `agrees` whether our number is within the band."""
    files = [pd.read_csv(OURS / f"{name}.csv", comment="#", **EXACT) for name in result.recorded]
    table = pd.concat(files, ignore_index=True) if files else pd.DataFrame(columns=COLUMNS)
    rows = table[JUDGED].itertuples(index=False, name=None)
    return table.assign(agrees=[agrees(*row) for row in rows])


def agrees(unit: str, theirs: float, theirs_std: float, ours: float, ours_std: float, seeds: int) -> bool:
    """Return whether our number is within the band around the paper's number."""
    if unit != "points":
        return abs(ours - theirs) <= SHARE * abs(theirs)
    ours_error = ours_std**2 / seeds if ours_std == ours_std else 0.0
    theirs_error = theirs_std**2 / SEEDS_OF_PAPERS if theirs_std == theirs_std else 0.0
    band = max(POINTS, ERRORS * (ours_error + theirs_error) ** 0.5)
    return abs(ours - theirs) <= band


def computed(script: str) -> pd.DataFrame:
    """Run a script; return its numbers beside the paper's numbers, in the columns `COLUMNS` and the paper's order.

    Raises:
        ValueError: the script fails, or does not compute one of the paper's numbers.
    """
    ran = subprocess.run([sys.executable, "-m", f"{SCRIPTS}.{script}"], capture_output=True, text=True)
    if ran.returncode:
        raise ValueError(f"{SCRIPTS}.{script} failed: {ran.stderr.strip().splitlines()[-1]}")
    theirs, keys = pd.read_csv(PAPERS / f"{script}.csv", comment="#", **EXACT), ["setting", "variant"]
    both = theirs.merge(pd.read_csv(io.StringIO(ran.stdout), **EXACT), how="left", on=keys)
    if (lost := both["ours"].isna()).any():
        names = "; ".join(both[lost][keys].agg(", ".join, axis=1))
        raise ValueError(f"{SCRIPTS}.{script} lacks a number for {names}: use the names in the paper's file")
    return both.assign(theirs_std=both.get("theirs_std", float("nan")))[COLUMNS]


def rerun(which: str, keep: bool = False) -> Iterator[str]:
    """Run the scripts of a paper, or of all papers (`cheap`), again; yield a line for each result.

    With `keep`, the computed numbers are written to `analysis/papers/ours`.
    """
    for one in papers() if which == CHEAP else [paper(which)]:
        for result in (each for each in one.results if each.script and each.recorded):
            numbers, file = computed(result.script), OURS / f"{result.script}.csv"
            if keep:
                source = (PAPERS / file.name).read_text(encoding="utf-8").partition("setting,")[0]
                text = numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n")
                file.write_text(source + text, encoding="utf-8")
            recorded = pd.read_csv(file, comment="#", **EXACT)["ours"]
            same = int(((numbers["ours"] - recorded).abs() <= ALIKE * recorded.abs()).sum())
            within = sum(agrees(*row) for row in numbers[JUDGED].itertuples(index=False, name=None))
            yield (
                f"{one.name}, {result.name}: {within} of {len(numbers)} numbers within the band,"
                f" {same} as recorded"
            )


# ---- words


def _overview(known: Sequence[Paper]) -> pd.DataFrame:
    """Count the results of each paper by state; a result that two papers print is counted under the first."""
    rows = {}
    for one in known:
        states = [result.state for result in one.results]
        counts = {state: str(states.count(state)) for state in get_args(State)}
        rows[one.name] = counts | {"title": one.title}
    return pd.DataFrame.from_dict(rows, orient="index").rename(columns={"same": "elsewhere"})


def show(name: str | None = None, result: str | None = None, console: Console | None = None) -> None:
    """Print all papers, the results of one paper, or one result with its numbers."""
    console = console or Console(highlight=False, markup=False, emoji=False)
    if name is None:
        _print(console, "paper", _overview(papers()))
        console.print("ran: has our numbers; ready: needs data or a GPU; closed: cannot be run;")
        console.print("elsewhere: another paper prints it, too")
        console.print("For details: edgefl papers NAME [TABLE]")
    elif result is None:
        one = paper(name)
        console.print(f"{one.authors}: {one.title}", style="bold")
        _print(console, "result", _contents(one))
    else:
        found = paper(name).result(result)
        for line in sentences(found):
            console.print(line)
        if len(numbers := compared(found)):
            _print(console, "setting", _numbers_table(numbers))


def _print(console: Console, corner: str, frame: pd.DataFrame) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in (corner, *frame.columns):
        table.add_column(column, overflow="fold")
    for index, row in zip(frame.index, frame.to_numpy().tolist(), strict=True):
        table.add_row(str(index), *map(str, row))
    console.print(table)


def _contents(one: Paper) -> pd.DataFrame:
    """List a paper's results, each with its state."""
    rows = {result.name: [result.state, result.shows or f"{result.same} has it"] for result in one.results}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["state", "shows"])


def sentences(result: Result) -> list[str]:
    """Describe a paper's result: what it shows, its state, what a run needs, and how well our numbers agree."""
    if result.state == "same":
        return [f"{result.paper}, {result.name}: the same as {result.same}."]
    lines = [f"{result.paper}, {result.name}: {result.shows}.", f"State: {result.state}."]
    lines += [f"Run it with `{result.command}`."] * bool(result.command)
    lines += [f"It takes about {result.minutes:g} minutes on one core."] * bool(result.minutes)
    lines += [f"Needs: {result.needs}."] * bool(result.needs)
    lines += [f"Remark: {result.why}."] * bool(result.why)
    numbers = compared(result)
    if len(numbers):
        lines.append(f"{numbers['agrees'].sum()} of {len(numbers)} numbers are within the band.")
        lines += ["A setting was chosen by these numbers, so the audit does not count them."] * result.fitted
    return lines


def _numbers_table(numbers: pd.DataFrame) -> pd.DataFrame:
    """Write numbers as text: the paper's number, our number, and whether our number is within the band."""
    rows = [
        {
            "variant": row.variant,
            "unit": row.unit,
            "theirs": _spread(row.theirs, row.theirs_std),
            "ours": _spread(row.ours, row.ours_std),
            "our seeds": str(row.seeds),
            "within": "yes" if row.agrees else "no",
        }
        for row in numbers.itertuples()
    ]
    return pd.DataFrame(rows, index=list(numbers["setting"]))


def _spread(value: float, std: float) -> str:
    return f"{value:.4g}" + (f" ± {std:.2g}" if std == std else "")


def audit(known: Sequence[Paper]) -> str:
    """Write every published number that was compared, by paper and result, to docs/audit.md."""
    parts = [(PAPERS / "audit.md").read_text(encoding="utf-8").rstrip()]
    found = {
        (one, result): numbers for one in known for result in one.results if len(numbers := compared(result))
    }
    rows = {
        f"{one.name}, {result.name}": {
            "shows": result.shows,
            "numbers": str(len(numbers)),
            "within the band": f"{numbers['agrees'].sum()}{' (fitted, not counted)' * result.fitted}",
            "remarks": result.why,
        }
        for (one, result), numbers in found.items()
    }
    parts.append(markdown_table(pd.DataFrame.from_dict(rows, orient="index"), "result"))
    judged = pd.concat([numbers["agrees"] for (_, result), numbers in found.items() if not result.fitted])
    parts.append(
        f"{judged.sum()} of {len(judged)} numbers are within the band ({100 * judged.mean():.0f} %)."
    )
    for (one, result), numbers in found.items():
        parts += [f"## {one.name}, {result.name}", markdown_table(_numbers_table(numbers), "setting")]
    return "\n\n".join(parts) + "\n"


def record_studies(folders: Sequence[Path]) -> list[str]:
    """Record the numbers of finished studies; return a line for each."""
    return [f"{len(one.present)} numbers of {one.study}: {record(one)}" for one in map(reproduce, folders)]
