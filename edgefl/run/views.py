"""Show a text, a page or a picture, as lines in a terminal or rendered in a notebook."""

import html
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    PathView = Path
else:
    PathView = type(Path())  # before Python 3.12, Path itself cannot be subclassed

KINDS = {".png": "png", ".svg": "svg+xml", ".webp": "webp"}
FRAME_PX = 800
ALONE = "<style>header, footer, main > :not(#{}) {{display: none !important}}</style>"


class Page(PathView):
    """An HTML file, which a notebook shows in a frame.

    Attributes:
        only: id of the section that the frame shows; empty for the whole page.
    """

    only = ""

    def _repr_html_(self) -> str:
        text = self.read_text(encoding="utf-8") + (ALONE.format(self.only) if self.only else "")
        look = f"width: 100%; height: {FRAME_PX}px; border: 0"
        return f'<iframe title="{self.name}" style="{look}" srcdoc="{html.escape(text)}"></iframe>'


class Picture(PathView):
    """A picture's file; a notebook shows the picture below its text.

    Attributes:
        text: what the picture shows, in lines.
    """

    text: "Lines"

    @classmethod
    def of(cls, path: Path, lines: Sequence[str]) -> "Picture":
        """Return a picture from its file and the lines of text that describe it."""
        made = cls(path)
        made.text = Lines("\n".join(lines))
        return made

    def _repr_html_(self) -> str:
        kind = KINDS.get(self.suffix)
        if kind is None:  # a PDF, which notebooks cannot show
            return self.text._repr_html_() + f"<p>{html.escape(str(self))}</p>"
        coded = b64encode(self.read_bytes()).decode()
        look = "max-width: 100%; width: 900px; background: white; border-radius: 4px"
        source = f"data:image/{kind};base64,{coded}"
        return f'{self.text._repr_html_()}<img style="{look}" alt="{html.escape(self.name)}" src="{source}">'


class Lines(str):
    """A multi-line string that Python and notebooks show verbatim, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap">{html.escape(self)}</pre>'
