"""Compute a paper's numbers again with its script, a module of examples/papers.

A script prints a table of comma-separated values: setting, variant, ours, ours_std, seeds. The paper's numbers are in
`analysis/papers`, in a file with the script's name, with columns setting, variant, unit, theirs. If the script prints
a row for which the paper has no number, the row is left out.
"""

import io
import subprocess
import sys
from collections.abc import Iterator

import pandas as pd

from edgefl.analysis.reports.papers import COLUMNS, JUDGED, OURS, SCRIPTS, agrees, paper, papers
from edgefl.analysis.reports.reproduction import PAPERS
from edgefl.analysis.runs.reading import EXACT

CHEAP = "cheap"  # stands for all results with a script
ALIKE = 1e-5  # relative difference up to which a number equals the recorded one


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
