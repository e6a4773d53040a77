"""Execute the remaining runs of a study, alone or together with other processes in the same directory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from edgefl.errors import EdgeflError
from edgefl.learners.building import available_cores, may_have_gpu, torch_device
from edgefl.run.results import StudyResults
from edgefl.run_directory import files
from edgefl.run_directory.interruption import interruptible
from edgefl.run_directory.reading import FILE as ABOUT
from edgefl.scenario.data_loading import Loaded
from edgefl.studies.adding_seeds import answered, ask
from edgefl.studies.directory import FILE, check_same, describe_again, make, place
from edgefl.studies.one_run import work
from edgefl.studies.options import StudyOptions
from edgefl.studies.planning import Run, StudyPlan
from edgefl.studies.run_locks import FOLDER
from edgefl.studies.scheduler import RunScheduler
from edgefl.studies.states import state_of
from edgefl.studies.training_reuse import ReusePlan, plan_reuse
from edgefl.studies.validation import check_builds
from edgefl.studies.workers import side_by_side

DEFAULT = StudyOptions()
# Modules that every run imports, and modules that runs with training import
RUNS = ("edgefl.commands.cli", "edgefl.run.resuming", "edgefl.run.simulation")
TRAINS = ("edgefl.learning.federation.learner", "scipy.signal", "scipy.special")


def run(plan: StudyPlan, out: str | Path | None = None, options: StudyOptions = DEFAULT) -> StudyResults:
    """Execute the remaining runs of a study. A run that fails does not stop the others.

    If a study has a question, seeds are added until the question is answered or its budget is spent. If only a shard
    is run, or the plan covers only some seeds, no seeds are added and the question stays open.

    Args:
        out: new or empty directory, or a directory with part of this study; by default `runs/NAME` in the current
            folder, with a number added if that name is taken.

    Returns:
        The study directory, with the answer to the study's question.

    Raises:
        IncompleteStudy: runs have failed.
        EdgeflError: the directory contains something other than this study; the message names the difference.
        Interrupted: Ctrl-C or SIGTERM ended the study; runs under way are marked `interrupted`.
    """
    load = Loaded(download=True)
    if options.go_on:
        check_same(out, plan.name, [each.path for each in plan.runs])
    with interruptible():
        directory = _carry_out(plan, out, options, load)
        if plan.question is not None and options.shard[1] == 1:
            # added runs are written to the same directory
            add = partial(_carry_out, out=directory, options=replace(options, go_on=True), load=load)
            ask(plan, directory, add, partial(answered, plan))
        return StudyResults(directory)


def _carry_out(plan: StudyPlan, out: str | Path | None, options: StudyOptions, load: Loaded) -> Path:
    if options.jobs is not None and options.jobs < 1:
        raise EdgeflError(f"jobs is {options.jobs}: it must be at least 1")
    options.begins(plan)
    prepared = plan.prepared(load)
    directory, records = place(plan.name, out, prepared, go_on=options.go_on)
    make(directory, go_on=options.go_on, only_check=True)  # fail early, before the slow builds below
    states = {path: state_of(directory, path, records.get(path, {})) for path in prepared}
    alone = {path: ReusePlan() for path in states}
    reuse = plan_reuse(prepared, states) if options.share else alone
    cluster = options.executor if callable(options.executor) else None
    # other machines do not know this machine's current folder, so they need an absolute path
    there = directory.resolve() if cluster else directory
    scheduler = RunScheduler(there, _shard_of(plan.runs, reuse, *options.shard), reuse, states, options)
    # check all new runs before writing anything, so that every shard of a study has the same runs
    device = "auto" if cluster else options.device  # on a cluster, another machine has the device
    check_builds(plan.first_runs(scheduler.new), device, load)
    make(directory, go_on=options.go_on)
    with files.writing(directory / FILE):
        files.replace(directory / FILE, plan.file.read_text(encoding="utf-8"))
    describe_again(directory, plan.runs)
    for each in scheduler.completed:
        options.progress(each.label, directory / each.path)
    _execute(scheduler, plan, options)
    scheduler.tidy()
    options.elsewhere([each.label for each in scheduler.to_do])
    if scheduler.to_do:
        _note_others(directory, scheduler.to_do, options.noted)
    scheduler.conclude(plan.runs)
    return directory


def _execute(scheduler: RunScheduler, plan: StudyPlan, options: StudyOptions) -> None:
    """Execute the scheduled runs on a cluster, in worker processes, or in this process."""
    if callable(options.executor):
        options.executor(scheduler, options.jobs)
        return
    at_once = options.jobs or (1 if _on_gpu(plan, options.device) else available_cores())
    workers = 1 if options.executor == "inline" else min(len(scheduler.to_do), at_once)
    if workers <= 1:
        scheduler.here()
        return
    scheduler.cores = at_once
    side_by_side(
        scheduler,
        work,
        workers,
        reported=scheduler.reported,
        ended=scheduler.ended,
        modules=(*RUNS, *TRAINS) if any(each.scenario.trains for each in plan.runs) else RUNS,
    )


def _note_others(directory: Path, runs: Sequence[Run], noted: Callable[[str], None]) -> None:
    """Note runs that other processes are executing."""
    labels = ", ".join(each.label for each in runs[:3])
    more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
    claim = directory / FOLDER / runs[0].path
    said_by = claim if claim.exists() else directory / runs[0].path / ABOUT  # `edgefl resume` claims no run
    noted(
        f"other processes are running {labels}{more} ({said_by}); the same command continues what they "
        "leave unfinished"
    )


def _shard_of(runs: Sequence[Run], reuse: Mapping[Path, ReusePlan], number: int, parts: int) -> list[Run]:
    """Return one shard of a study, numbered from 1; runs that share training stay together if possible."""
    if not 1 <= number <= parts:
        raise EdgeflError(f"--shard {number}/{parts}: the first shard is 1/{parts}, the last {parts}/{parts}")
    families: dict[int, int] = {}
    for run in runs:
        families.setdefault(id(reuse[run.path].family), len(families))
    if len(families) < parts:
        return list(runs[number - 1 :: parts])
    return [run for run in runs if families[id(reuse[run.path].family)] % parts == number - 1]


def _on_gpu(plan: StudyPlan, device: str) -> bool:
    """Return whether runs train their models on a GPU; PyTorch is loaded only if the answer needs it."""
    trains = any(each.scenario.trains for each in plan.runs)
    if device == "cpu" or (device == "auto" and not (trains and may_have_gpu())):
        return False
    return torch_device(device).type == "cuda"
