"""Commands that read run directories, report errors on one line, and take their options from a report's function."""

import inspect
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand

from edgefl.analysis.page.formatting import placed
from edgefl.analysis.page.words import complain
from edgefl.analysis.runs.choices import Explain, Folders, Json, Quiet


class OneValueCommand(TyperCommand):
    """A command that refuses two values of an option that takes one, instead of using the last value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for option in self.params:
            values = [] if getattr(option, "is_flag", True) or option.multiple else _values(option.opts, args)
            if len(set(values)) > 1 and not ctx.resilient_parsing:  # completion parses without refusals
                given = " and ".join(values)
                raise typer.BadParameter(f"it takes one value, not {given}: leave one out.", ctx, option)
        return super().parse_args(ctx, args)


class ReadingCommand(OneValueCommand):
    """A command that reports bad runs in one line on stderr, and takes `--names A B`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_each_named(args)))

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the report's notes name the runs left out
                return self.call(ctx)
        except ValueError as error:
            program = ctx.find_root().command.name
            about = f"{f'{program}: ' if program else ''}error: {placed(error, ctx.params.get('runs') or ())}"
            complain(about)
            raise typer.Exit(2) from error

    def call(self, ctx: Any) -> Any:
        return super().invoke(ctx)


class _ReportCommand(ReadingCommand):
    """A command with the options of the function that makes a report, which is imported on first use.

    Attributes:
        report: `MODULE.FUNCTION`, the function that measures runs and writes files.
        explains: whether the command has `--explain`, which prints additional explanations.
    """

    report: ClassVar[str]
    explains: ClassVar[bool]

    @property
    def params(self) -> list[Any]:
        """The command's options, which are the arguments of the report's function."""
        return self._real.params

    @params.setter
    def params(self, none: list[Any]) -> None:
        """Ignore this assignment: the placeholder function has no options."""

    def call(self, ctx: Any) -> Any:
        return ctx.invoke(self._real.callback, **ctx.params)

    @cached_property
    def _real(self) -> Any:
        """The Typer command with the options of the report's function."""
        name, _, function = self.report.partition(".")
        module = import_module(f"edgefl.analysis.reports.{name}")
        measure = getattr(module, function)

        def command(
            runs: Folders,
            json: Json = False,
            quiet: Quiet = False,
            *,
            explain: Explain = False,
            **options: Any,
        ) -> None:
            from edgefl.analysis.page.report import Report

            found = measure(
                *runs, **{name: value for name, value in options.items() if value not in (None, [])}
            )
            report = found if isinstance(found, Report) else module.report(found)
            report.tell(self.name or name, as_json=json, quiet=quiet, explain=explain)

        folders, json, quiet, explain, _ = inspect.signature(command).parameters.values()
        partial, names, out, *own = map(_read, list(inspect.signature(measure).parameters.values())[1:])
        options = [folders, partial, names, out, json, quiet, *own, *[explain] * self.explains]
        command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        command.__annotations__ = {option.name: option.annotation for option in options}
        app = typer.Typer(add_completion=False)
        app.command()(command)
        return typer.main.get_command(app)


def command_for(report: str, *, explains: bool = False) -> type[_ReportCommand]:
    """Return the class of a command that prints the result of `reports.MODULE.FUNCTION`."""
    return type("ReportCommand", (_ReportCommand,), {"report": report, "explains": explains})


def _read(option: inspect.Parameter) -> inspect.Parameter:
    """Return an option as Typer reads it; a type after the help in the annotation replaces the option's type."""
    option = option.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    words, *typed = option.annotation.__metadata__
    return option.replace(annotation=Annotated[typed[0], words], default=None) if typed else option


def _values(names: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Return the values that the arguments give an option, as `--name VALUE` or `--name=VALUE`."""
    values = []
    for argument, following in pairwise([*arguments, ""]):
        name, sign, value = argument.partition("=")
        if name in names:
            values.append(value if sign else following)
    return values


def _each_named(arguments: Sequence[str]) -> Iterator[str]:
    """Rewrite `--names A B` as `--names A --names B`, since click's options take a fixed number of values."""
    naming = False
    for number, argument in enumerate(arguments):
        naming = argument == "--names" or (naming and not argument.startswith("-"))
        if naming and argument != "--names" and arguments[number - 1] != "--names":
            yield "--names"
        yield argument
