"""Compare runs of the shipped `journal_table_...` studies with the numbers printed in the papers.

The papers' numbers are in `analysis/papers`, one file per table: journal_table_x.csv holds Table X, for the studies
journal_table_x_fashion_mnist (following the paper) and journal_table_x_fashion_mnist_as_run (as the authors ran it).
A Markdown file with the study's name, next to the table's file, explains known reasons for differences.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import pandas as pd

from edgefl.analysis.measures import metrics
from edgefl.analysis.page.formatting import named_seeds
from edgefl.analysis.page.markup import markdown_table
from edgefl.analysis.runs.choices import FIRST_ROUNDS
from edgefl.analysis.runs.load import Runs, load_settings
from edgefl.analysis.runs.reading import EXACT

PAPERS = Path(__file__).parents[1] / "papers"
AS_RUN = "_as_run"
PERCENT = 100
# Studies with a setting fitted to the paper's own numbers: a small difference means less for these studies.
FITTED = {"journal_table_x_mnist_as_run": "rate fitted to the paper"}


@dataclass(frozen=True)
class Reproduction:
    """A study's results next to a table of a paper.

    Attributes:
        study: name of the study or scenario.
        source: what the paper's table shows, in words.
        table: one row per setting, variant and session (or metric): the axes' labels, variant, session or metric,
            ours, ours_std (over seeds, NaN with one seed), seeds (how many), paper, paper_std, difference; accuracies
            are in percent.
            The column ours is NaN without a completed run.
        axes: the columns that identify a setting.
        by: the column `session` or `metric`, by which rows are named.
        seeds: the seeds of all runs.
    """

    study: str
    source: str
    table: pd.DataFrame = field(repr=False)
    axes: tuple[str, ...]
    by: str
    seeds: tuple[int, ...]

    @property
    def variants(self) -> list[str]:
        """The variants, in the paper's order."""
        return list(self.table["variant"].unique())

    @property
    def present(self) -> pd.DataFrame:
        """The rows of the paper's table for which runs exist."""
        return self.table[self.table["ours"].notna()]

    def distance(self) -> float:
        """Return the mean absolute difference from the paper's numbers, in percentage points of accuracy."""
        return float(self.present["difference"].abs().mean())

    def by_algorithm(self) -> list["Reproduction"]:
        """Split a paper's table by algorithm, in the paper's order; omit algorithms without runs."""
        if "algorithm" not in self.axes:
            return [self]
        parts = [part for _, part in self.table.groupby("algorithm", sort=False)]
        return [replace(self, table=part) for part in parts if part["ours"].notna().any()]

    def orders(self) -> pd.DataFrame:
        """Compare the order of the variants in each setting and session in which all variants have a run.

        Returns:
            the axes' labels, session, ours and paper (variants, best first, joined by >), same (whether they agree).
        """
        rows = []
        for key, cell in self.table.groupby([*self.axes, self.by], sort=False):
            if cell["ours"].isna().any() or len(cell) < 2:
                continue
            ours, paper = (
                " > ".join(cell.sort_values(column, ascending=False, kind="stable")["variant"])
                for column in ("ours", "paper")
            )
            rows.append([*key, ours, paper, ours == paper])
        return pd.DataFrame(rows, columns=[*self.axes, self.by, "ours", "paper", "same"])

    def pairs(self) -> tuple[int, int]:
        """Count the pairs of variants in one setting and session that are in the paper's order, and all pairs."""
        agreeing = count = 0
        for _, cell in self.table.groupby([*self.axes, self.by], sort=False):
            values = cell.dropna(subset=["ours"])[["ours", "paper"]].to_numpy().tolist()
            for (ours, paper), (other, papers_other) in combinations(values, 2):
                agreeing += (ours - other) * (paper - papers_other) > 0
                count += 1
        return agreeing, count


def reproduce(path: str | Path) -> Reproduction:
    """Compare the runs of a study with the paper's table of the same name.

    Args:
        path: folder of the study, or of a single run of a scenario.

    Raises:
        ValueError: no run is completed, no table or no row of a table matches the runs, or there are several studies.
    """
    by_setting = load_settings(path)
    names = {_study(run) for runs in by_setting.values() for run in runs.info["path"]}
    if len(names) > 1:
        raise ValueError(f"{path} holds runs of {', '.join(sorted(names))}: give the folder of one study")
    study = names.pop()
    paper, source = papers_table(study)
    by = "metric" if "metric" in paper else "session"
    axes = tuple(column for column in paper if column not in ("variant", by, "mean", "std"))
    of_settings = [
        _ours(runs, paper, by).assign(**{axis: dict(setting).get(axis) for axis in axes})
        for setting, runs in by_setting.items()
    ]
    ours = pd.concat(of_settings, ignore_index=True)
    table = paper.rename(columns={"mean": "paper", "std": "paper_std"})
    table = table.merge(ours, on=[*axes, "variant", by], how="left")
    if table["ours"].isna().all():
        raise ValueError(f"{path} has no run for any row of {source!r}: use the shipped variants and axes")
    table["difference"] = table["ours"] - table["paper"]
    seeds = sorted({int(seed) for runs in by_setting.values() for seed in runs.info["seed"]})
    columns = [*axes, "variant", by, "ours", "ours_std", "seeds", "paper", "paper_std", "difference"]
    return Reproduction(study, source, table[columns], axes, by, tuple(seeds))


def papers_table(study: str) -> tuple[pd.DataFrame, str]:
    """Read a study's paper table and its source; keep only rows of the data set at the end of the study's name.

    Raises:
        ValueError: no table has this name; the error lists the names.
    """
    name, rest = study.removesuffix(AS_RUN), ""
    while not (PAPERS / f"{name}.csv").is_file():
        name, _, last = name.rpartition("_")
        rest = f"{last}_{rest}".rstrip("_")
        if not name:
            known = ", ".join(sorted(file.stem for file in PAPERS.glob("*.csv")))
            raise ValueError(f"no table of a paper matches the study '{study}'; known tables: {known}")
    file = PAPERS / f"{name}.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    source = " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
    measured = {"mean": float, "std": float, "session": int}
    columns = pd.read_csv(file, comment="#", nrows=0).columns
    types = {column: measured.get(column, str) for column in columns}
    table = pd.read_csv(file, comment="#", dtype=types, **EXACT)
    for column in ("case", "dataset"):
        if rest and column in table and rest in set(table[column]):
            table = table[table[column] == rest]
            # a study of one data set need not name it as an axis
            table = table.drop(columns=column).reset_index(drop=True)
    if "std" not in table:
        table["std"] = float("nan")
    return table, source


def _study(path: Path) -> str:
    run = json.loads((Path(path) / "run.json").read_text(encoding="utf-8"))
    return str(run.get("study") or run.get("name"))


def _ours(runs: Runs, paper: pd.DataFrame, by: str) -> pd.DataFrame:
    """Measure our numbers for a setting: columns variant, session or metric, ours, ours_std, seeds."""
    if by == "metric":
        training = metrics.training_rounds(runs.rounds)
        wanted = [name for name in paper["metric"].unique() if name in training]
        long = training.melt(["variant", "seed"], wanted, var_name=by, value_name="value")
        scale = 1
    else:
        long = metrics.accuracy_first_rounds(runs.rounds, FIRST_ROUNDS).rename(
            columns={"accuracy_first": "value"}
        )
        scale = PERCENT
    spread = metrics.over_seeds(long, ["variant", by], "value") * scale
    spread["seeds"] = long.groupby(["variant", by])["seed"].nunique()
    return spread.rename(columns={"mean": "ours", "std": "ours_std"}).reset_index()


# ---- the page


def page(reproductions: Sequence[Reproduction]) -> str:
    """Write docs/reproduction.md with a section per study, and in it a table for each of the study's folders."""
    parts = [(PAPERS / "preface.md").read_text(encoding="utf-8").rstrip(), _overview(reproductions)]
    for study in dict.fromkeys(one.study for one in reproductions):
        folders = [one for one in reproductions if one.study == study]
        parts += [f"## {study}", folders[0].source]
        for one in folders:
            parts += [_summary(one), _table(one)]
        reasons = PAPERS / f"{study}.md"
        if reasons.is_file():
            parts.append(reasons.read_text(encoding="utf-8").rstrip())
    return "\n\n".join(part for part in parts if part) + "\n"


def _overview(reproductions: Sequence[Reproduction]) -> str:
    """Tabulate the distance to the paper by study and algorithm, since an overall mean would hide the worst cases."""
    names, rows = [], []
    for one in (part for whole in reproductions for part in whole.by_algorithm()):
        orders = one.orders()
        agreeing, pairs = one.pairs()
        names.append(f"`{one.study}`" + (f" ({FITTED[one.study]})" if one.study in FITTED else ""))
        rows.append(
            {
                "algorithm": str(one.table["algorithm"].iloc[0]) if "algorithm" in one.axes else "",
                "numbers": f"{len(one.present)} of {len(one.table)}",
                "seeds": named_seeds(one.seeds),
                "mean absolute difference, points": f"{one.distance():.2f}" if one.by == "session" else "",
                "cells in the paper's order": f"{orders['same'].sum()} of {len(orders)}"
                if len(orders)
                else "",
                "pairs in the paper's order": f"{agreeing} of {pairs}" if pairs else "",
            }
        )
    return markdown_table(pd.DataFrame(rows, index=names), "study")


def _summary(one: Reproduction) -> str:
    if one.by == "metric":
        return "Each value is our number / the paper's number; our numbers are means over a run's rounds."
    agreeing, pairs = one.pairs()
    orders = one.orders()
    lines = [
        f"Each value is our number / the paper's number ({named_seeds(one.seeds)}). The mean absolute difference is"
        f" {one.distance():.2f} points; {agreeing} of {pairs} pairs of variants are in the paper's order."
    ]
    if len(one.present) < len(one.table):
        lines[0] += f" These runs give {len(one.present)} of the table's {len(one.table)} numbers."
    for axis in ("algorithm", "variant"):
        if axis in one.present and one.present[axis].nunique() > 1:
            by_name = one.present.groupby(axis, sort=False)["difference"]
            each = "; ".join(f"{name} {part.mean():+.2f} ({part.abs().mean():.2f})" for name, part in by_name)
            lines.append(f"Mean difference (and mean absolute difference) by {axis}: {each}.")
    for row in orders[~orders["same"]].to_dict("records"):
        where = ", ".join(f"{axis} {row[axis]}" for axis in (*one.axes, one.by))
        lines.append(f"At {where}, our order is {row['ours']}; the paper's order is {row['paper']}.")
    return "\n".join(f"- {line}" for line in lines)


def _table(one: Reproduction) -> str:
    """Tabulate "our number / the paper's", with settings and sessions as rows and variants as columns."""
    rows = {}
    for key, cell in one.present.groupby([*one.axes, one.by], sort=False):
        texts = {row.variant: f"{_number(row.ours)} / {_number(row.paper)}" for row in cell.itertuples()}
        rows[" ".join(map(str, key))] = [texts.get(variant, "") for variant in one.variants]
    shown = pd.DataFrame.from_dict(rows, orient="index", columns=one.variants)
    return markdown_table(shown, ", ".join([*one.axes, one.by]))


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 1000 else f"{value:.0f}"
