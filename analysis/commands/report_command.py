"""Commands that read run directories: they report errors, and take their options from a report's function."""

import inspect
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand

from edgefl.analysis.page.formatting import placed
from edgefl.analysis.page.words import complain
from edgefl.analysis.runs.choices import Explain, Folders, Json, Names, Out, Partial, Quiet


class ReadingCommand(TyperCommand):
    """A command that reports bad runs in one line on stderr, and takes `--names A B`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_each_named(args)))

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # runs left out are among the notes
                return self.call(ctx)
        except ValueError as error:
            program = ctx.find_root().command.name
            about = f"{f'{program}: ' if program else ''}error: {placed(error, ctx.params.get('runs') or ())}"
            complain(about)
            raise typer.Exit(2) from error

    def call(self, ctx: Any) -> Any:
        return super().invoke(ctx)


class _ReportCommand(ReadingCommand):
    """A command with the options of a report's function, which is imported on first use.

    Attributes:
        report: `MODULE.FUNCTION`, the function that measures runs and writes files.
        load: the function that reads the runs for it.
        explains: whether its report has more to explain on request.
    """

    report: ClassVar[str]
    load: ClassVar[str]
    explains: ClassVar[bool]

    @property
    def params(self) -> list[Any]:
        """The options."""
        return self._real.params

    @params.setter
    def params(self, none: list[Any]) -> None:
        """Ignore this assignment: the placeholder function has no options."""

    def call(self, ctx: Any) -> Any:
        return ctx.invoke(self._real.callback, **ctx.params)

    @cached_property
    def _real(self) -> Any:
        """The command with its options."""
        name, _, function = self.report.partition(".")
        module = import_module(f"edgefl.analysis.reports.{name}")
        measure = getattr(module, function)
        own = list(_options(measure))

        def command(
            runs: Folders,
            partial: Partial = False,
            names: Names = None,
            out: Out = None,
            json: Json = False,
            quiet: Quiet = False,
            *,
            explain: Explain = False,
            **options: Any,
        ) -> None:
            from edgefl.analysis.page.report import Report
            from edgefl.analysis.runs import load

            read = getattr(load, self.load)(runs, names=names or (), partial=partial)
            found = measure(read, out=out, **_given(own, options))
            report = found if isinstance(found, Report) else module.report(found)
            report.tell(self.name or name, as_json=json, quiet=quiet, explain=explain)

        *common, explain, _ = inspect.signature(command).parameters.values()
        of_report = [_read(option) for _, options in own for option in options]
        signature = inspect.Signature([*common, *of_report, *[explain] * self.explains])
        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {name: option.annotation for name, option in signature.parameters.items()}
        app = typer.Typer(add_completion=False)
        app.command()(command)
        return typer.main.get_command(app)


def command_for(report: str, load: str = "load_runs", *, explains: bool = False) -> type[_ReportCommand]:
    """Return the class of a command that prints the result of `reports.MODULE.FUNCTION`."""
    return type("ReportCommand", (_ReportCommand,), {"report": report, "load": load, "explains": explains})


Asked = tuple[
    inspect.Parameter, list[inspect.Parameter]
]  # of a report's function: a parameter and its options


def _options(measure: Any) -> Iterator[Asked]:
    """Yield each parameter of a report's function after the runs, with its option; a dataclass has one per field."""
    for one in list(inspect.signature(measure).parameters.values())[1:]:
        if is_dataclass(kind := one.annotation):
            yield one, [one.replace(name=f.name, default=f.default, annotation=f.type) for f in fields(kind)]
        elif one.name != "out":
            yield one, [one]


def _read(option: inspect.Parameter) -> inspect.Parameter:
    """Return an option as Typer reads it; a type that follows the help in its annotation replaces its own type."""
    words, *typed = option.annotation.__metadata__
    return option.replace(annotation=Annotated[typed[0], words], default=None) if typed else option


def _given(own: list[Asked], options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a report's function for the given options; others keep their defaults."""
    given = {name: value for name, value in options.items() if value not in (None, [])}
    for one, several in own:
        if several != [one]:  # a value of several options
            values = {option.name: given.pop(option.name) for option in several if option.name in given}
            given[one.name] = one.annotation(**values)
    return given


def _each_named(arguments: Sequence[str]) -> Iterator[str]:
    """Rewrite `--names A B` as `--names A --names B`, since click's options take a fixed number of values."""
    naming = False
    for number, argument in enumerate(arguments):
        naming = argument == "--names" or (naming and not argument.startswith("-"))
        if naming and argument != "--names" and arguments[number - 1] != "--names":
            yield "--names"
        yield argument
