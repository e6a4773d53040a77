"""Write data frames as Markdown, LaTeX and CSV."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from edgefl.analysis.page.formatting import NOTHING

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of a formula in a spreadsheet
LATEX_SPECIALS = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "±": r"$\pm$",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "—": "---",
    "–": "--",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    ">": "$>$",
    "<": "$<$",
}


def markdown_table(table: pd.DataFrame, corner: str) -> str:
    """Write a data frame of text as a Markdown table; `corner` heads the index."""
    lines = [[corner, *table.columns], ["---"] * (1 + table.shape[1])]
    lines += [[str(name), *row] for name, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
    return "\n".join("| " + " | ".join(_cell(str(cell)) for cell in line) + " |" for line in lines)


def markdown_escape(text: str) -> str:
    """Escape text, such as the name <img> of a run, so that Markdown reads no HTML in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def page(title: str, *parts: str) -> str:
    """Write a Markdown page from parts of text, without the empty ones."""
    return "\n\n".join([f"# {markdown_escape(title)}", *filter(None, parts)]) + "\n"


def section(title: str, table: pd.DataFrame, corner: str) -> str:
    """Write a Markdown table below its heading."""
    return f"## {markdown_escape(title)}\n\n{markdown_table(table, corner)}"


def bullets(lines: Iterable[str]) -> str:
    """Write a Markdown list."""
    return "\n".join(f"- {markdown_escape(line)}" for line in lines)


def picture(name: str) -> str:
    """Embed the figure NAME.png in Markdown."""
    return f"![{name}]({name}.png)"


def latex_table(caption: str, table: pd.DataFrame, corner: str) -> str:
    """Write a data frame of text as a LaTeX tabular; `corner` heads the index."""
    texts = table.reset_index(names=corner).map(latex_escape)
    head = [latex_escape(str(name)) for name in texts.columns]
    return latex_tabular(caption, "l" + "r" * table.shape[1], [head], texts)


def csv_text(frame: pd.DataFrame) -> str:
    """Write a data frame as CSV, without text that is a formula in a spreadsheet, such as a variant called =cmd|calc.

    Text that a spreadsheet would take for a formula gets an apostrophe in front, in cells and headings. Names that
    begin like formulas are not refused: they may come from --names, and the run is valid. Numbers like -20 stay
    unchanged.
    """
    safe = frame.map(_csv_cell).rename(columns=_csv_cell)
    return safe.to_csv(index=False)


def _csv_cell(value: Any) -> Any:
    """Put an apostrophe before text that begins like a formula and is not a number."""
    if not (isinstance(value, str) and value.startswith(FORMULA)):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def latex_tabular(caption: str, layout: str, head: Sequence[Sequence[str]], body: pd.DataFrame) -> str:
    """Write escaped cells as a LaTeX tabular, for the package booktabs."""
    above, below = ([" & ".join(row) + r" \\" for row in rows] for rows in (head, body.to_numpy().tolist()))
    lines = [
        f"% {caption}; needs \\usepackage{{booktabs}}",
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        *above,
        r"\midrule",
        *below,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def latex_escape(text: str) -> str:
    """Escape text for LaTeX."""
    return "".join(LATEX_SPECIALS.get(sign, sign) for sign in text)


def _cell(text: str) -> str:
    """Escape text for a cell of a Markdown table."""
    return markdown_escape(" ".join(text.splitlines())).replace("|", "\\|")


MOST_RUNS = 12  # a table with more runs side by side is hard to read
Quantity = tuple[str, str, float]  # words, the format of a number, and the factor to its unit


def quantities(table: pd.DataFrame, rows: Mapping[str, Quantity]) -> pd.DataFrame:
    """Turn a table of runs into rows of text [quantities x runs]; average many runs over seeds, by variant.

    The table has the columns variant and seed, and columns of numbers; `rows` maps such a column to its format.
    """
    if len(table) <= MOST_RUNS:
        named = table.set_index(table["variant"] + " seed " + table["seed"].astype(str))
    else:
        groups = table.drop(columns="seed").groupby("variant", sort=False)
        names = [f"{variant}, mean of {count}" for variant, count in groups.size().items()]
        named = groups.mean(numeric_only=True).set_axis(names)
    cells = {
        str(name): [
            NOTHING if pd.isna(row[column]) else form.format(factor * row[column])
            for column, (_, form, factor) in rows.items()
        ]
        for name, row in named.iterrows()
    }
    return pd.DataFrame(cells, index=[words for words, _, _ in rows.values()])
