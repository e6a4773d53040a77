"""Replace the word "accuracy" in reports if runs have a different score, such as R2."""

import re
from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text

ACCURACY = "accuracy"
WORDS: Mapping[str, str] = {"r2": "R2", "f1": "mean F1"}
VOWEL_FIRST = ("R2",)  # names of scores that begin with a vowel when spoken
FOUND = re.compile(r"\b(?:(?P<article>[Aa])n )?(?P<word>[Aa]ccurac(?:y|ies))\b")


def named(score: str) -> str:
    """Return a score's name in sentences: a fixed word, or the score's key with spaces for underscores."""
    return WORDS.get(score, score.replace("_", " "))


def said(text: str, score: str) -> str:
    """Replace the word accuracy in a text; names with an underscore, such as column names, stay unchanged."""
    if score == ACCURACY:
        return text
    word = named(score)

    def of_score(found: re.Match[str]) -> str:
        own = word[0].upper() + word[1:] if found["word"][0] == "A" else word
        own += " values" if found["word"].endswith("ies") else ""
        vowel = word in VOWEL_FIRST or word[0] in "aeiou"
        return f"{found['article']}{'n' if vowel else ''} {own}" if found["article"] else own

    return FOUND.sub(of_score, text)


def table_said(table: pd.DataFrame, score: str) -> pd.DataFrame:
    """Replace the word accuracy in a table's headings and row names; cells stay unchanged."""
    if score == ACCURACY:
        return table
    renamed = table.rename(
        columns=lambda name: said(str(name), score), index=lambda name: said(str(name), score)
    )
    renamed.index.name = table.index.name
    return renamed


def figure_said(figure: Figure, score: str) -> None:
    """Replace the word accuracy in a figure's titles, labels and legends, in place."""
    if score != ACCURACY:
        for text in figure.findobj(Text):
            assert isinstance(text, Text)
            text.set_text(said(text.get_text(), score))
