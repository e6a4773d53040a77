"""A console for sentences."""

import sys
from typing import Any

from rich.console import Console
from rich.text import Text


class Words(Console):
    """A console that breaks long lines between words in a terminal, and leaves them whole in a pipe or file.

    Text is printed literally: a folder may be called [red] or :car:. A path that is too long stays whole.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **how)

    def print(self, *objects: Any, soft_wrap: bool | None = None, **how: Any) -> None:
        """Print objects; `soft_wrap` as in rich, but in a terminal lines break between words."""
        if soft_wrap and self.is_terminal:
            super().print(*objects, overflow="ignore", crop=False, **how)
        else:
            super().print(*objects, soft_wrap=soft_wrap, **how)


def complain(text: str) -> None:
    """Print a line to standard error."""
    if sys.stderr is not None:
        Words(file=sys.stderr).print(Text(text), soft_wrap=True)
