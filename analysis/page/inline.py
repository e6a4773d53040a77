"""Show reports as HTML in a notebook's cell, readable on light and dark pages: verdicts, tables and a figure."""

import base64
import html
import io
from collections.abc import Iterable
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

DPI = 144
WIDEST_INCH = 8.0  # maximum width of a figure in a cell; smaller figures keep their size
NARROW_INCH = 4.0  # wider figures keep their words readable on a phone, and scroll sideways
# colours follow the page, light or dark; figures have a white background, since their lines are dark
STYLE = """<style>
.edgefl {max-width: 60em; line-height: 1.45}
.edgefl p, .edgefl ul {margin: .4em 0}
.edgefl .answer {font-weight: 600}
.edgefl .soft {opacity: .75; font-size: .92em}
.edgefl .scroll {overflow-x: auto; margin: .6em 0}
.edgefl table {border-collapse: collapse; font-variant-numeric: tabular-nums}
.edgefl th, .edgefl td {padding: .2em .7em; text-align: right; white-space: nowrap; color: inherit;
  border: 0; border-bottom: 1px solid rgba(127, 127, 127, .35)}
.edgefl th:first-child {text-align: left; font-weight: inherit; white-space: normal; padding-left: 0}
.edgefl th[scope=col] {white-space: normal; vertical-align: bottom; min-width: 4em}
@media (max-width: 500px) {.edgefl table {font-size: .76em}
  .edgefl th, .edgefl td, .edgefl th[scope=col] {padding: .2em .25em; min-width: 0}
  .edgefl .scroll img {max-width: 36em}}
.edgefl .scroll:has(img) {margin: 0}
.edgefl img {box-sizing: content-box; max-width: calc(100% - 1.6em); height: auto; background: white;
  padding: .8em; border-radius: 6px; margin: .4em 0}
</style>"""


def cell(*parts: str) -> str:
    """Write the HTML of a notebook's cell."""
    return f'{STYLE}<div class="edgefl">{"".join(parts)}</div>'


def paragraphs(lines: Iterable[str], look: str = "") -> str:
    """Write a paragraph per line of text; `look` is the paragraphs' CSS class."""
    kind = f' class="{look}"' if look else ""
    return "".join(f"<p{kind}>{html.escape(line)}</p>" for line in lines)


def table(frame: pd.DataFrame, title: str = "") -> str:
    """Write a data frame of text as a table that scrolls sideways on its own."""
    heads = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in frame.columns)
    rows = (
        f'<tr><th scope="row">{html.escape(str(name))}</th>'
        + "".join(f"<td>{html.escape(str(text))}</td>" for text in row)
        for name, row in zip(frame.index, frame.to_numpy().tolist(), strict=True)
    )
    corner = html.escape(str(frame.index.name or ""))
    return (
        paragraphs([title] if title else [], "soft")
        + f'<div class="scroll"><table><thead><tr><th>{corner}</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def picture(figure: Figure, text: str) -> str:
    """Write a figure as a PNG inside the HTML; `text` describes it."""
    return image(_png(figure), text, min(WIDEST_INCH, float(figure.get_figwidth())))


def shown(figure: Figure) -> Figure:
    """Add to a figure drawn without pyplot the method that shows figures in notebooks; return the figure."""
    setattr(figure, "_repr_png_", partial(_png, figure))  # noqa: B010  # a name that IPython looks for
    return figure


def _png(figure: Figure) -> bytes:
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=DPI)
    return written.getvalue()


def image(data: bytes, text: str, width_inch: float = WIDEST_INCH) -> str:
    """Embed a picture in the HTML, at most as wide as the notebook's cell."""
    coded = base64.b64encode(data).decode()
    width = f"width: {96 * width_inch:.0f}px"
    shown = f'<img style="{width}" alt="{html.escape(text)}" src="data:image/png;base64,{coded}">'
    return f'<div class="scroll">{shown}</div>' if width_inch > NARROW_INCH else shown
