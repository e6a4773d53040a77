"""The commands `edgefl study` and `edgefl merge`: run a study, or merge parts of a study."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer
from rich.console import Console

from edgefl.analysis.page.words import complain
from edgefl.analysis.runs.choices import Explain, Json, Quiet
from edgefl.commands.shared import AllowCode, Override, SnapshotRounds, StudyFile, TorchDevice, console
from edgefl.commands.told import Told
from edgefl.errors import EdgeflError

if TYPE_CHECKING:
    from edgefl import studies
    from edgefl.analysis.page.report import Report
    from edgefl.engine.records import Round
    from edgefl.run.progress import ProgressDisplay
    from edgefl.studies.study_file import ChoiceSettings

ELSEWHERE = 3  # exit code if other processes are still executing some of the runs


def study(
    study: StudyFile,
    out: Annotated[
        Path | None, typer.Option(help=("Study directory: new, empty, or of this study. Default: in runs/."))
    ] = None,
    device: TorchDevice = "auto",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Parallel runs. Default: one per core; 1 on a GPU.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Run only this seed, listed or not; may be repeated.")
    ] = None,
    set_: Override = None,
    go_on: Annotated[
        bool,
        typer.Option("--continue/--anew", help="Continue the directory's study, or require a new directory."),
    ] = True,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat failed runs.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for runs of other processes, then compare.")
    ] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first run that fails, without comparing.")
    ] = False,
    shard: Annotated[
        str, typer.Option(metavar="I/N", help="Run the I-th of N parts, for the tasks of a job array.")
    ] = "1/1",
    alone: Annotated[
        bool, typer.Option("--alone", help="Train every run by itself, even if runs could share training.")
    ] = False,
    executor: Annotated[
        str, typer.Option(help="Where runs execute: local (processes), inline (this process) or ray.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="Ray cluster: auto, local (start one here) or HOST:PORT.")
    ] = None,
    gpus: Annotated[
        float | None, typer.Option(min=0, help="With ray: fraction of a GPU per run, such as 0.25.")
    ] = None,
    snapshot_rounds: SnapshotRounds = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs, those that would fail, and the remaining cost.")
    ] = False,
    explain: Explain = False,
    allow_code: AllowCode = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run every variant and seed of a study, then print a verdict on each variant and the comparison.

    --set changes the scenario of all variants; a variant's own keys take precedence.

    A directory that already holds part of the study is continued: complete runs are kept, and unfinished runs resume.
    Several processes may work in one directory at the same time.

    If a study has a `question`, seeds are added until the question is answered or its budget is spent; the answer is
    printed last. With --seed or --shard, only these seeds or this shard are run, and the question is not answered.

    A run that fails is reported immediately and at the end; the other runs continue and are compared. The exit code
    is then 2. The exit code is 3 if other processes are still executing some of the runs, so that the comparison is
    incomplete. With --wait, the command waits for the runs of other processes.

    Examples:

        edgefl study scenarios/studies/quickstart.yaml

        edgefl study scenarios/studies/quickstart.yaml --out runs/again --jobs 1

        edgefl study scenarios/studies/quickstart.yaml --set devices.count=20 --out runs/small

        edgefl study scenarios/studies/journal_table_x_mnist.yaml --seed 100 --fail-fast

        edgefl study scenarios/studies/quickstart.yaml --out runs/shared --shard 1/4

        edgefl study scenarios/studies/quickstart.yaml --executor ray --address auto
    """
    from edgefl import studies
    from edgefl.run_directory.snapshot import Every

    plan = studies.plan(study, seed or (), overrides=set_ or ())
    if seed and not quiet:
        _note_unlisted(study, seed)
    elsewhere, told = list[str](), Told("study", json=json, quiet=quiet)
    if dry_run:
        _print_plan(plan, out, device, told)
        return

    def noted(note: str) -> None:
        if told.plain:
            complain(f"note: {note}")

    options = studies.StudyOptions(
        device=device,
        jobs=jobs,
        executor=_executor(executor, address, gpus),
        noted=noted,
        elsewhere=elsewhere.extend,
        wait=wait,
        fail_fast=fail_fast,
        retry=retry,
        go_on=go_on,
        shard=_parts(shard),
        share=not alone,
        every=Every(rounds=snapshot_rounds),
    )
    try:
        path = _carry_out(plan, out, options, told)
    except studies.IncompleteStudy as error:
        if not fail_fast and len(error.failures) < len(plan.runs):
            with _reported():
                _print_study(plan, error.path, told, explain=explain)
                told.finish(error.path)
        raise _in_short(error, said=not fail_fast) from error
    if options.shard[1] > 1:
        done = "not complete yet" if elsewhere else "done"
        told.answer(f"part {shard} is {done} in {path}; compare the runs once all parts are done")
    else:
        with _reported() if elsewhere else nullcontext():
            _print_study(plan, path, told, explain=explain)
            if plan.choose is not None:
                _print_choice(path, plan.choose, told)
            if plan.question is not None:
                _print_answer(path, told)
    told.finish(path)
    if elsewhere:
        raise typer.Exit(ELSEWHERE)


def _note_unlisted(study: Path, seeds: Sequence[int]) -> None:
    """Note seeds that a study file does not list."""
    from edgefl.config.yaml_source import Source
    from edgefl.studies.study_file import Study

    if new := set(seeds).difference(Source(study).validate(Study).seeds):
        which = f"seed{'s' * (len(new) > 1)} {', '.join(map(str, sorted(new)))}"
        complain(f"note: not listed in {study}, but run all the same: {which}")


def _print_plan(plan: "studies.StudyPlan", out: Path | None, device: str, told: Told) -> None:
    """Print the runs of a study, those that would fail, and the remaining cost, without running any."""
    from edgefl.studies.dry_run import dry_run

    for line in dry_run(plan, out, device=device):
        told.answer(line)
    told.finish()


def _carry_out(
    plan: "studies.StudyPlan", out: Path | None, options: "studies.StudyOptions", told: Told
) -> Path:
    """Run a study with a progress display; Ctrl-C and SIGTERM end the command with exit code 130 or 143."""
    from edgefl import studies
    from edgefl.run_directory.interruption import Interrupted

    try:
        with closing(_Shown(told.console, quiet=options.fail_fast)) as shown:
            options = replace(options, begins=shown.begins, progress=shown.update, failed=shown.failed)
            return studies.run(plan, out, options)
    except Interrupted as error:
        complain("edgefl: interrupted; the same command continues it")
        raise typer.Exit(error.exit_code) from error


def _in_short(error: "studies.IncompleteStudy", *, said: bool) -> EdgeflError:
    """Return the error that ends the command; omit errors of runs that were already printed."""
    if not said:
        return error
    first, *_ = str(error).splitlines()
    runs = [f"  {one if one.earlier else one.label}" for one in error.failures]
    return EdgeflError("\n".join([first, *runs, "  once the cause is gone, --retry repeats them"]))


@contextmanager
def _reported() -> Iterator[None]:
    """Print an error without raising it, because the command already fails for another reason."""
    try:
        yield
    except EdgeflError as error:
        complain(f"edgefl: {error}")


class _Shown:
    """Progress displays in the terminal: one for the runs under way, and another for runs added later.

    Args:
        console: console on which progress is shown.
        quiet: whether a failed run is reported only at the end, by the error that ends the study.
    """

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self._console, self._quiet = console, quiet
        self._progress: ProgressDisplay | None = None

    def begins(self, plan: "studies.StudyPlan") -> None:
        from edgefl.run.progress import ProgressDisplay

        self.close()
        self._progress = ProgressDisplay(self._console, {run.label: run.scenario for run in plan.runs})

    def update(self, label: str, report: "Round | Path") -> None:
        from edgefl.commands.closing import of_study

        assert self._progress is not None
        self._progress.update(label, of_study(report))

    def failed(self, failure: "studies.Failed") -> None:
        assert self._progress is not None
        self._progress.failed(failure.label)
        print(failure.trace, end="", file=sys.stderr)
        if not self._quiet:
            complain(f"edgefl: failed: {failure}")

    def close(self) -> None:
        if self._progress is not None:
            self._progress.__exit__()


def _executor(
    name: str, address: str | None, gpus: float | None
) -> Literal["local", "inline"] | Callable[..., None]:
    if name == "ray":
        from edgefl.studies.on_ray import OnRay

        return OnRay(address or "auto", gpus or 0.0)
    for option, value in (("address", address), ("gpus", gpus)):
        if value is not None:
            raise EdgeflError(f"--{option}: needs --executor ray")
    if name in ("local", "inline"):
        return cast('Literal["local", "inline"]', name)
    raise EdgeflError(f"--executor {name}: choose local, inline or ray")


def _parts(text: str) -> tuple[int, int]:
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal()):
        raise EdgeflError(f"--shard {text}: write I/N, e.g. --shard 1/8")
    return int(number), int(count)


def _print_study(plan: "studies.StudyPlan", path: Path, told: Told, *, explain: bool) -> None:
    """Compare the complete runs of a study, separately for each of several federations."""
    for name in dict.fromkeys(name for run in plan.runs for name in run.scenario.by_federation):
        if name:
            if told.plain:
                console.print(f"Federation {name}:")
            parts = (path / run.path / name for run in plan.runs)
            there = [part for part in parts if part.is_dir()]
            _print_comparison(there, path / name, partial(told.report, federation=name, explain=explain))
        else:
            _print_comparison(path, path, partial(told.report, explain=explain))


def _print_comparison(path: "Path | list[Path]", out: Path, show: "Callable[[Report], None]") -> None:
    """Print the comparison of runs and, if the study's grid sweeps one number, the costs at each of its values."""
    from edgefl.analysis.page.formatting import placed
    from edgefl.analysis.reports.study import answers

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the report's notes name the omitted runs too
            found, *others = answers(path, out=out)
            report = found.report(drawn=False)
            if others:
                more = ("Settings", "settings.md", ": the variants in each setting")
                report = replace(report, look=[*report.look, more])
            # leave out failed runs, which were already reported when they failed
            said = [one for one in report.sentences if ": it failed (" not in one]
            show(replace(report, sentences=said))
    except ValueError as error:
        raise EdgeflError(f"not compared: {placed(error, path)}") from error


def _print_choice(path: Path, choose: "ChoiceSettings", told: Told) -> None:
    from edgefl.analysis.page.formatting import placed
    from edgefl.analysis.reports.choosing import report_choice

    try:
        told.report(report_choice(path, key=choose.key, by=choose.by))
    except ValueError as error:
        raise EdgeflError(f"nothing is chosen: {placed(error, path)}") from error


def _print_answer(path: Path, told: Told) -> None:
    from edgefl.run.results import StudyResults

    answer = StudyResults(path).answer
    assert answer is not None
    told.answer(answer.sentence)
    told.add(notes=answer.notes)
    if told.plain:
        for note in answer.notes:
            console.print(f"Note: {note}.", soft_wrap=True)
        console.print(f"Answer: {path / 'question.md'}", soft_wrap=True)


def merge(
    parts: Annotated[list[Path], typer.Argument(help="Directories of one study, computed separately.")],
    out: Annotated[Path, typer.Option(help="Directory of the merged study; new, or of this study.")],
) -> None:
    """Merge directories of one study that were computed on different machines.

    If several directories contain the same run, the most advanced copy is used. `edgefl study` executes the missing
    runs in the new directory.

    Examples:

        edgefl merge node1/quickstart node2/quickstart --out runs/quickstart
    """
    from edgefl.studies.merging import merge as merged

    states = merged(parts, out)
    counted = ", ".join(f"{count} {state}" for state, count in states.items())
    console.print(f"{out}: {counted or 'no runs'}", soft_wrap=True)
