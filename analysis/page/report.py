"""Write and print the tables, figures and sentences of all commands that read runs."""

import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar

import pandas as pd
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgefl.analysis.page import inline
from edgefl.analysis.page.formatting import did_you_mean, named_seeds
from edgefl.analysis.page.machine import document
from edgefl.analysis.page.markup import bullets, csv_text, page, picture
from edgefl.analysis.page.own_files import WRITTEN_BY, file_to_write, signed
from edgefl.analysis.page.score_words import ACCURACY, figure_said, said, table_said
from edgefl.analysis.page.words import Words

HEADING = 9  # minimum number of characters in a line of a heading
GAP, EDGES = 2, 2  # spaces between the columns and around the table, as drawn by rich
Asked = ParamSpec("Asked")


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a comparison; subclasses add their own attributes.

    Attributes:
        table: the table in the first CSV file.
        reference: the variant that other variants are compared with, shown in bold; or None.
        seeds: the seeds that results are averaged over.
        own_seeds: the seeds of the runs themselves; they differ from `seeds` if runs of different seeds are compared
            as runs of one seed.
        out: the folder of all files.
        notes: remarks for the reader, one sentence each.
        score: name of the task's score in run.json.
    """

    name: ClassVar[str]  # stem of the comparison's file names
    written_by: ClassVar[Any]  # module that defines the comparison's `report` and `figures`
    table: pd.DataFrame = field(repr=False)
    reference: str | None
    seeds: tuple[int, ...]
    own_seeds: tuple[int, ...] = ()
    out: Path
    notes: tuple[str, ...]
    score: str = ACCURACY

    def named_seeds(self, interval: bool = False) -> str:
        """Describe the seeds for a title; instead of a single common seed, name the seeds of the runs themselves."""
        return named_seeds(self.seeds, interval, self.own_seeds)

    @property
    def figures(self) -> tuple[Path, ...]:
        """The PNG files shown on the Markdown page."""
        return (self.out / f"{self.name}.png",)

    @property
    def figure(self) -> Path:
        """The first PNG file of the comparison's figures."""
        return self.figures[0]

    def __repr__(self) -> str:
        seeds = f"{len(self.seeds)} seed{'s' * (len(self.seeds) != 1)}"
        return (
            f"{type(self).__name__}({len(self.table)} rows, {seeds}, {str(self.out / self.name) + '.md'!r})"
        )

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def plot(self, name: str | None = None) -> Figure:
        """Draw a figure, for a notebook or for changes of your own.

        Args:
            name: name of the figure, such as `comparison_pareto`, or None for the first figure.

        Raises:
            ValueError: no figure has this name.
        """
        drawn = self.written_by.figures(self)
        if name is not None and name not in drawn:
            raise ValueError(f"no figure '{name}'{did_you_mean(name, drawn)}")
        figure = drawn[name or next(iter(drawn))]
        figure_said(figure, self.score)
        return inline.shown(figure)

    def report(self, *, drawn: bool = True) -> "Report":
        """Return the report, by default with its figures; nothing is written."""
        report: Report = self.written_by.report(self)
        return replace(report, figures=self.written_by.figures(self)) if drawn else report

    def print(self, console: Console | None = None, *, explain: bool = False) -> None:
        """Print what the command prints, see `Report.print`."""
        self.report(drawn=False).print(console, explain=explain)


Kind = TypeVar("Kind", bound=Found)


@dataclass(frozen=True)
class Report:
    """Tables, figures and sentences about runs.

    Attributes:
        out: the folder of all files.
        verdicts: the answers, one sentence each; printed first.
        caption: what the tables show.
        tables: tables of text for the terminal, [rows x columns], each with a title, which may be empty.
        sentences: sentences on how to read the tables, and notes.
        further: tables that the terminal shows only on request.
        small_print: sentences that the terminal shows only on request.
        look: files for further reading, each with a word before it and remarks after it.
        emphasised: the column printed in bold.
        numbers: file name -> table that is written as CSV.
        texts: file name -> text in Markdown, LaTeX or JSON.
        figures: name -> figure, written as NAME.png, and also as NAME.pdf if `pdf`.
        inside: metadata of the first figure's PNG: name -> text.
        score: name of the runs' score; replaces the word accuracy everywhere except in `numbers` and `inside`.
    """

    out: Path
    verdicts: Sequence[str] = ()
    caption: str = ""
    tables: Sequence[tuple[str, pd.DataFrame]] = field(default=(), repr=False)
    sentences: Sequence[str] = ()
    further: Sequence[tuple[str, pd.DataFrame]] = field(default=(), repr=False)
    small_print: Sequence[str] = ()
    look: Sequence[tuple[str, ...]] = ()
    emphasised: str | None = None
    numbers: Mapping[str, pd.DataFrame] = field(default_factory=dict, repr=False)
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    figures: Mapping[str, Figure] = field(default_factory=dict, repr=False)
    pdf: bool = True
    inside: Mapping[str, str] = field(default_factory=dict, repr=False)
    score: str = ACCURACY

    def __post_init__(self) -> None:
        """Replace the word accuracy by the score's name in tables, sentences and figures."""
        score, put = self.score, partial(object.__setattr__, self)
        put("caption", said(self.caption, score))
        for name in ("verdicts", "sentences", "small_print"):
            put(name, [said(line, score) for line in getattr(self, name)])
        for name in ("tables", "further"):
            tables = getattr(self, name)
            put(name, [(said(title, score), table_said(table, score)) for title, table in tables])
        put("texts", {file: said(text, score) for file, text in self.texts.items()})
        for figure in self.figures.values():
            figure_said(figure, score)

    @classmethod
    def of(
        cls,
        found: Found,
        caption: str,
        *,
        above: Sequence[str],
        latex: str,
        below: Sequence[str] = (),
        further_numbers: Mapping[str, pd.DataFrame] | None = None,
        **more: Any,
    ) -> "Report":
        """Build the report of a comparison: CSV files, a Markdown page and a LaTeX page.

        Args:
            above: parts of the Markdown page that precede the sentences, such as tables.
            below: parts of the Markdown page that follow the sentences.
            further_numbers: suffix of a file name -> table, for further CSV files.
            more: attributes of the report; the comparison's notes are appended to `sentences`.
        """
        more["sentences"] = [*more.get("sentences", ()), *noted(found.notes)]
        lines = bullets([*more.get("small_print", ()), *more["sentences"]])
        pictures = [picture(figure.stem) for figure in found.figures]
        text = page(caption, bullets(more.get("verdicts", ())), *above, lines, *below, *pictures)
        numbers = {"": found.table, **(further_numbers or {})}
        return cls(
            found.out,
            score=found.score,
            caption=caption,
            numbers={f"{found.name}{ending}.csv": frame for ending, frame in numbers.items()},
            texts={f"{found.name}.md": text, f"{found.name}.tex": latex},
            **{"emphasised": found.reference, **more},
        )

    @property
    def figure(self) -> Path | None:
        """The PNG file of the report's first figure, or None without figures."""
        return next((self.out / f"{name}.png" for name in self.figures), None)

    def write(self) -> "Report":
        """Write all files; create the folder if needed, and replace only files of earlier reports.

        Raises:
            ValueError: the folder cannot be created or written, or a file in it is not of edgefl.
        """
        for file, frame in self.numbers.items():
            file_to_write(self.out / file, columns=list(frame.columns))
        drawn = [f"{name}{ending}" for name in self.figures for ending in (".png", ".pdf")[: 1 + self.pdf]]
        for file in (*self.texts, *drawn):
            file_to_write(self.out / file)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            for file, frame in self.numbers.items():
                (self.out / file).write_text(csv_text(frame), encoding="utf-8")
            for file, text in self.texts.items():
                mark = f"\n{WRITTEN_BY}\n" if file.endswith(".md") else ""
                (self.out / file).write_text(text + mark, encoding="utf-8")
            inside = dict(self.inside)
            for name, figure in self.figures.items():
                for ending in (".png", ".pdf")[: 1 + self.pdf]:
                    picture = self.out / f"{name}{ending}"
                    figure.savefig(picture, metadata=signed(picture) | inside)
                    inside = {}
        except OSError as error:
            raise ValueError(
                f"cannot write to {self.out} ({error.strerror or error}): choose another folder with --out"
            ) from error
        return self

    @property
    def rows(self) -> pd.DataFrame:
        """The report's first table of numbers, as its first CSV file holds them."""
        return next(iter(self.numbers.values()), pd.DataFrame())

    def __repr__(self) -> str:
        return f"Report({str(self.out)!r}: {len(self.tables)} tables; .print() shows them)"

    def tell(self, command: str, *, as_json: bool, quiet: bool, explain: bool = False) -> None:
        """Print the report, or only its verdicts, or the whole report as a JSON document."""
        if as_json:
            notes = [*self.sentences, *(self.small_print if explain else ())]
            print(document(command, out=self.out, answers=self.verdicts, notes=notes, table=self.rows))
        elif quiet:
            print("\n".join(self.verdicts) or self.out)
        else:
            self.print(explain=explain)

    def _repr_html_(self) -> str:
        drawn = [inline.picture(figure, self.caption) for figure in list(self.figures.values())[:1]]
        return inline.cell(
            inline.paragraphs(self.verdicts, "answer"),
            inline.paragraphs([self.caption] if self.caption else [], "soft"),
            *(inline.table(table, title) for title, table in self.tables),
            *drawn,
            inline.paragraphs(self.sentences, "soft"),
        )

    def print(self, console: Console | None = None, *, explain: bool = False) -> None:
        """Print verdicts, tables, sentences, and pages for further reading.

        Columns beyond the console's width continue in another table.

        Args:
            explain: whether to print the additional tables and the small print, too.
        """
        console = console or Words()
        for verdict in self.verdicts:
            console.print(Text(verdict, style="bold"))
        if self.caption:
            # below bold verdicts the caption is only the heading of the table
            above, style = ("\n", "") if self.verdicts else ("", "bold")
            console.print(Text(above + self.caption, style=style))
        for title, table in (*self.tables, *(self.further if explain else ())):
            if title:
                console.print(Text(title, style="bold"))
            _print_table(console, table, self.emphasised)
        for line in (*(self.small_print if explain else ()), *self.sentences):
            console.print(Text(line, style="dim"))
        for word, file, *more in self.look:
            more = [words for words in more if not (explain and "--explain" in words)]
            console.print(Text.assemble(f"{word}: ", (str(self.out / file), "bold"), *more), soft_wrap=True)


def reporting(measure: Callable[Asked, Kind]) -> Callable[Asked, Kind]:
    """Wrap a function that returns measurements so that it also writes its report's files, including figures."""

    measure.__annotations__["return"].written_by = sys.modules[measure.__module__]

    @wraps(measure)
    def measure_and_write(*args: Asked.args, **options: Asked.kwargs) -> Kind:
        found = measure(*args, **options)
        found.report().write()
        return found

    return measure_and_write


def noted(notes: Sequence[str]) -> list[str]:
    """Format notes, which may end with a full stop, as sentences that begin with "Note:"."""
    return [f"Note: {note.removesuffix('.')}." for note in notes]


def _print_table(console: Console, frame: pd.DataFrame, emphasised: str | None) -> None:
    for block in _blocks(frame, console.width):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        corner = Text("\n".join(_heading(block.index.name, block.index)))
        table.add_column(corner, header_style="dim", vertical="bottom")
        for name in block.columns:
            style = "bold" if name == emphasised else ""
            heading = Text("\n".join(_heading(name, frame[name])))
            table.add_column(heading, justify="right", style=style, header_style="bold", vertical="bottom")
        for index, row in zip(block.index, block.to_numpy().tolist(), strict=True):
            table.add_row(Text(index), *map(Text, row), style="bold" if index == emphasised else "")
        console.print(table)


def _heading(name: str | None, cells: Iterable[str]) -> list[str]:
    """Break a column's heading after spaces into lines about as wide as the column's cells."""
    return textwrap.wrap(name or "", max(HEADING, *map(len, cells)), break_long_words=False) or [""]


def _blocks(frame: pd.DataFrame, width: int) -> Iterator[pd.DataFrame]:
    """Split a table into blocks of columns that each fit the console's width."""
    first = EDGES + max(map(len, [*_heading(frame.index.name, frame.index), *frame.index]))
    taken = first
    names: list[str] = []
    for name in frame.columns:
        width_of_column = GAP + max(map(len, [*_heading(name, frame[name]), *frame[name]]))
        if names and taken + width_of_column > width:
            yield frame[names]
            taken, names = first, []
        taken, names = taken + width_of_column, [*names, name]
    yield frame[names]
