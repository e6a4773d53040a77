"""Frames of text as Markdown and LaTeX."""

from collections.abc import Sequence

import pandas as pd

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
    """Write a frame of text as a Markdown table; `corner` stands above the index."""
    lines = [[corner, *table.columns], ["---"] * (1 + table.shape[1])]
    lines += [[str(name), *row] for name, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


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
    """Write text so that LaTeX prints it as it is."""
    return "".join(LATEX_SPECIALS.get(sign, sign) for sign in text)
