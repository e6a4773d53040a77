"""Wrap long lines on a terminal, but not in pipes and files, so that grep finds them."""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator

COLUMN = re.compile(r" *\S+ {2,}")  # a name, and the spaces before its description
POINT = "  "  # indentation of a bullet point's continuation lines
NAMED = (" ", "- ")  # beginnings of lines outside a paragraph
DEEPEST = 24  # maximum column of a description; otherwise it starts below its name


def tell(lines: Iterable[str]) -> None:
    """Print lines, wrapped to the terminal's width."""
    if sys.stdout.isatty():
        lines = folded(lines, shutil.get_terminal_size().columns)
    print("\n".join(lines))


def folded(lines: Iterable[str], width: int) -> Iterator[str]:
    """Wrap lines to a width: refill paragraphs, and align a description with the column where it begins."""
    paragraph: list[str] = []
    for line in [*"\n".join(lines).split("\n"), None]:
        below = bool(paragraph) and paragraph[0].startswith("- ")  # true within a bullet point
        if line and line.startswith(POINT if below else NAMED) is below and not COLUMN.match(line):
            paragraph.append(line)
            continue
        if paragraph:
            text = " ".join(map(str.strip, paragraph))
            yield from _wrap(text, POINT if text.startswith("- ") else "", width)
            paragraph = []
        if line is not None and line.startswith("- "):
            paragraph.append(line)
        elif line is not None:
            yield from [line] if len(line) <= width else _item(line, width)


def _item(line: str, width: int) -> list[str]:
    column = COLUMN.match(line)
    text_at = column.end() if column else 0
    if text_at > DEEPEST:
        below = " " * (len(line) - len(line.lstrip()) + 4)
        return [line[:text_at].rstrip(), *_wrap(below + line[text_at:], below, width)]
    return _wrap(line, " " * (text_at or len(line) - len(line.lstrip()) + 4), width)


def _wrap(line: str, below: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, subsequent_indent=below, break_on_hyphens=False)
