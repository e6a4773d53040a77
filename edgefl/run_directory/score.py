"""Name the score's columns in tables: `accuracy`, or the name of the task's own score."""

ACCURACY = "accuracy"


def column_name(name: str, score: str) -> str:
    """Return a column's name in tables with a given score; with r2, `accuracy_std` becomes `r2_std`."""
    return score + name.removeprefix(ACCURACY) if name.startswith(ACCURACY) else name


def field_name(name: str, score: str) -> str:
    """Return the row's field for a column that is named after the score; the inverse of `column_name`."""
    return ACCURACY + name.removeprefix(score) if name == score or name.startswith(f"{score}_") else name
