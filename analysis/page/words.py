"""A console that prints sentences."""

import re
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

COLUMN = re.compile(r".{1,22}? {2,}")  # a name and the spaces that separate it from its description
QUANTITY = r"\(?[\d,.]+ (?:[mk]?s|min|h|[mkM]?J|%)(?!\w)\S*"  # a number and its unit stay together


class Words(Console):
    """A console that breaks long lines between words in a terminal, and leaves them whole in a pipe or file.

    Text is printed literally: a folder may be called [red] or :car:. A path that is too long stays whole.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **how)

    def print(self, *objects: Any, soft_wrap: bool | None = None, **how: Any) -> None:
        """Print objects as rich does, `soft_wrap` included, but in a terminal break sentences between words."""
        if soft_wrap and self.is_terminal:
            objects = tuple(line for each in objects for line in _broken(each, self.width))
            how["sep"] = "\n"
        super().print(*objects, soft_wrap=soft_wrap, **how)


def _broken(sentence: str | Text, width: int) -> Iterator[Text]:
    """Yield a sentence's lines, broken between words; if it begins with a name, indent lines to its description."""
    for line in (Text(sentence) if isinstance(sentence, str) else sentence).split("\n", allow_blank=True):
        column = COLUMN.match(line.plain)
        below = column.end() if column else 0
        begin, breaks = 0, []
        for word in re.finditer(rf"\s*({QUANTITY}|\S+)", line.plain if not line.no_wrap else ""):
            start = word.start(1)
            if word.end() - begin > width and start > max(begin, below):
                begin = start - below
                breaks.append(start)
        for number, part in enumerate(line.divide(breaks)):
            part.rstrip()
            yield Text(" " * below if number else "") + part


def complain(text: str) -> None:
    """Print a line to standard error."""
    if sys.stderr is not None:
        Words(file=sys.stderr).print(Text(text), soft_wrap=True)
