"""What a command that reads runs has to say: tables, figures and sentences, written and printed in one way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgefl.analysis.page.markup import csv_text
from edgefl.analysis.page.score_words import ACCURACY, figure_said, said, table_said

GAP, EDGES = 3, 2  # blanks between the columns and around the table, as rich draws it


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
