"""A component's meaning in one line: the first sentence of its docstring."""

import inspect
import re


def meaning(component: type) -> str:
    """Return the first sentence of a component's own docstring; empty: it has none."""
    text = inspect.cleandoc(component.__doc__ or "").partition("\n\n")[0]
    return re.split(r"(?<=[a-z0-9)%^][a-z0-9)%^])\.(?=\s+[A-Z]|$)", " ".join(text.split()))[0].rstrip(".")
