"""What a command that reads runs has to say: tables, figures and sentences, written and printed in one way."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar

import pandas as pd
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgefl.analysis.page.markup import bullets, csv_text, page, picture
from edgefl.analysis.page.score_words import ACCURACY, figure_said, said, table_said

GAP, EDGES = 3, 2  # blanks between the columns and around the table, as rich draws it
Asked = ParamSpec("Asked")


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a comparison finds, whatever it compares; each kind adds what is its own.

    Attributes:
        table: the numbers, as its first CSV file has them.
        reference: the variant that others are measured against, and that stands out; None: none is.
        seeds: those that are averaged over.
        out: the folder of all files.
        notes: what a reader has to know, one sentence each.
        score: which the runs' accuracy is: their task's, by its name in run.json.
    """

    name: ClassVar[str]  # of its files
    table: pd.DataFrame = field(repr=False)
    reference: str | None
    seeds: tuple[int, ...]
    out: Path
    notes: tuple[str, ...]
    score: str = ACCURACY

    @property
    def figures(self) -> tuple[Path, ...]:
        """The PNG files that the Markdown page shows."""
        return (self.out / f"{self.name}.png",)

    @property
    def figure(self) -> Path:
        """The first PNG."""
        return self.figures[0]


Kind = TypeVar("Kind", bound=Found)


@dataclass(frozen=True)
class Report:
    """Tables, figures and sentences about runs.

    Attributes:
        out: the folder of all files.
        verdicts: the answer, one sentence each; they stand first.
        caption: what the tables show.
        tables: text for the terminal, [rows x columns], each below its title, if it has one.
        sentences: how to read them, and what else a reader has to know.
        further: tables that the terminal shows on request only.
        small_print: sentences that it shows on request only.
        look: in which files to look further: a word, the file, and what else there is to say.
        emphasised: the column of a table that stands in bold.
        numbers: file -> table, written as CSV.
        texts: file -> Markdown, LaTeX or JSON.
        figures: name -> figure, written as NAME.png, and as NAME.pdf beside it if `pdf`.
        inside: texts that the PNG of the first figure carries along: name -> text.
        score: of the runs. All but `numbers` and `inside` is given with the word accuracy, and says this one.
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
        """Tell of what was found, by the name of its kind: CSV files, and one page of Markdown and of LaTeX.

        Args:
            above, below: what the page has before and behind the sentences.
            further_numbers: of the CSV files beside the first one, by the ends of their names.
            more: see the attributes; notes follow `sentences`.
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
        """The PNG of the first figure; None: there is no figure."""
        return next((self.out / f"{name}.png" for name in self.figures), None)

    def write(self) -> "Report":
        """Write all files; make their folder where there is none.

        Raises:
            ValueError: the folder cannot be made, or not be written to.
        """
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            for file, frame in self.numbers.items():
                (self.out / file).write_text(csv_text(frame), encoding="utf-8")
            for file, text in self.texts.items():
                (self.out / file).write_text(said(text, self.score), encoding="utf-8")
            inside = self.inside
            for name, figure in self.figures.items():
                figure_said(figure, self.score)
                figure.savefig(self.out / f"{name}.png", metadata=inside)
                if self.pdf:
                    figure.savefig(self.out / f"{name}.pdf", metadata={"CreationDate": None})
                inside = {}
        except OSError as error:
            raise ValueError(
                f"cannot write to {self.out} ({error.strerror or error}): choose another folder with --out"
            ) from error
        return self

    def print(self, console: Console | None = None, *, explain: bool = False) -> None:
        """Print verdicts, tables, sentences, and where to look further.

        Columns that do not fit the console's width continue in a further table.

        Args:
            explain: also the further tables and the small print.
        """
        console = console or Console(highlight=False, markup=False, emoji=False)
        for verdict in self.verdicts:
            console.print(Text(said(verdict, self.score), style="bold"))
        if self.caption:
            # beside verdicts in bold, it is a heading of the table alone
            console.print(
                Text(
                    ("\n" if self.verdicts else "") + said(self.caption, self.score),
                    style="" if self.verdicts else "bold",
                )
            )
        for title, table in (*self.tables, *(self.further if explain else ())):
            if title:
                console.print(Text(said(title, self.score), style="bold"))
            if table.index.name is not None:
                console.print(Text(str(table.index.name), style="dim"))
            _print_table(console, table_said(table, self.score), self.emphasised)
        for line in (*(self.small_print if explain else ()), *self.sentences):
            console.print(Text(said(line, self.score), style="dim"))
        for word, file, *more in self.look:
            console.print(Text.assemble(f"{word}: ", (str(self.out / file), "bold"), *more), soft_wrap=True)


def reporting(measure: Callable[Asked, Kind]) -> Callable[Asked, Kind]:
    """Make a function that measures write the files of its module's `report` too, and its `figures`."""

    @wraps(measure)
    def measure_and_write(*args: Asked.args, **options: Asked.kwargs) -> Kind:
        found, module = measure(*args, **options), sys.modules[measure.__module__]
        replace(module.report(found), figures=module.figures(found)).write()
        return found

    return measure_and_write


def noted(notes: Sequence[str]) -> list[str]:
    """Write notes as sentences that say what they are."""
    return [f"Note: {note}." for note in notes]


def _print_table(console: Console, frame: pd.DataFrame, emphasised: str | None) -> None:
    for block in _blocks(frame, console.width):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("")
        for name in block.columns:
            style = "bold" if name == emphasised else ""
            table.add_column(Text(name), justify="right", style=style, header_style="bold")
        for index, row in zip(block.index, block.to_numpy().tolist(), strict=True):
            table.add_row(Text(index), *map(Text, row))
        console.print(table)


def _blocks(frame: pd.DataFrame, width: int) -> Iterator[pd.DataFrame]:
    """Cut the frame into pieces whose columns fit side by side."""
    first = EDGES + max(map(len, frame.index))
    taken = first
    names: list[str] = []
    for name in frame.columns:
        width_of_column = GAP + max(len(name), *map(len, frame[name]))
        if names and taken + width_of_column > width:
            yield frame[names]
            taken, names = first, []
        taken, names = taken + width_of_column, [*names, name]
    yield frame[names]
