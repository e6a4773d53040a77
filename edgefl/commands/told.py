"""Print a command's output immediately, or collect it for a program."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from edgefl.commands.shared import console

if TYPE_CHECKING:
    from edgefl.analysis.page.report import Report


class Told:
    """A command's answers, notes and numbers, printed immediately for people or at the end for a program.

    Args:
        command: name of the command. json, quiet: the command's options with these names.

    Attributes:
        plain: whether the output is for people, not for a program.
        console: console on which progress is printed; silent if the output is for a program.
    """

    def __init__(self, command: str, *, json: bool = False, quiet: bool = False) -> None:
        self._command, self._json = command, json
        self.plain = not (json or quiet)
        self.console = console if self.plain else Console(quiet=True)
        self._answers, self._notes = list[str](), list[str]()
        self._table = list[Mapping[str, Any]]()

    def answer(self, *sentences: str) -> None:
        """Print answers, one sentence each, or collect them for a program."""
        self._answers += sentences
        for sentence in sentences if self.plain else ():
            console.print(sentence, soft_wrap=True)

    def add(self, *, notes: Sequence[str] = (), table: Sequence[Mapping[str, Any]] = ()) -> None:
        """Collect notes and table rows that are only in the JSON document."""
        self._notes += notes
        self._table += table

    def report(self, report: "Report", federation: str = "", *, explain: bool = False) -> None:
        """Print a report, or collect it for a program; `federation` names one of several federations."""
        if self.plain:
            report.print(console, explain=explain)
        of = {"federation": federation} if federation else {}
        self._answers += [f"{federation}: {one}" if federation else one for one in report.verdicts]
        self.add(
            notes=[one.removeprefix("Note: ") for one in report.sentences],
            table=[{**of, **row} for row in report.rows.to_dict("records")],
        )

    def finish(self, out: Path | None = None) -> None:
        """Print the collected output for a program: a JSON document or, with --quiet, the directory's path."""
        if self._json:
            from edgefl.analysis.page.machine import document

            of = {"answers": self._answers, "notes": self._notes, "table": self._table}
            print(document(self._command, out=out, **of))  # type: ignore[arg-type]
        elif out and not self.plain:
            print(out)
