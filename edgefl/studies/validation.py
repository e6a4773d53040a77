"""Check a scenario or a study before it runs, for `edgefl validate`, and estimate its costs."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from edgefl.config.yaml_source import Source
from edgefl.errors import EdgeflError
from edgefl.run.forecast import Forecast, Range, forecast_of, total
from edgefl.run.plan import prepare
from edgefl.run.probe import probe
from edgefl.run.progress import wall_time
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.scenario import Scenario, is_study
from edgefl.scenario.scenario import load as load_scenario
from edgefl.studies import planning
from edgefl.studies.workers import Failure, InOrder, side_by_side

MOST_OWN = 6  # maximum number of lines that only some of a study's runs have


def check(
    path: Path, device: str = "auto", load: Loaded | None = None, overrides: Sequence[str] = ()
) -> list[Forecast]:
    """Check a scenario or a study: build everything, but train and write nothing.

    A file with `scenario`, `variants` or `grid` is a study; it is checked with its first seed.

    Args:
        device: as in `simulate`.
        load: function that reads the data; if None, the data must be on this machine, and nothing is downloaded.
        overrides: `dotted.key=value` strings for a scenario; not allowed for a study.

    Returns:
        The forecast of the scenario, or of each variant in each setting.
    """
    return check_builds(_cases_of(path, overrides)[0], device, load)


def _cases_of(path: Path, overrides: Sequence[str] = ()) -> tuple[list[tuple[str, Scenario]], int]:
    """Return label and scenario of each case of a file, and the number of seeds per case; a scenario's label is ''.

    Args:
        overrides: as in `check`.
    """
    if not is_study(Source(path)):
        return [("", load_scenario(path, overrides))], 1
    if overrides:
        raise EdgeflError(f"{path}: is a study; --set works only for scenarios, since a study has variants")
    plan = planning.plan(path)
    cases = plan.first_runs()
    return cases, len(plan.runs) // len(cases)


def check_builds(
    scenarios: Iterable[tuple[str, Scenario]], device: str = "auto", load: Loaded | None = None
) -> list[Forecast]:
    """Build and check several runs, such as those of a study.

    Args:
        scenarios: label and scenario of each run; an error begins with the run's label.
        device, load: as in `check`.
    """
    load = load or Loaded(download=False)
    checks = []
    for label, scenario in scenarios:
        try:
            checks.append(check_build(scenario, device, load))
        except EdgeflError as error:
            if not label:
                raise
            raise EdgeflError(f"{label}: {error}") from error
    return checks


def check_build(scenario: Scenario, device: str = "auto", load: Loaded | None = None) -> Forecast:
    """Build and check a run as `simulate` does, and stop before the first round; see `check`."""
    load = load or Loaded(download=False)
    return forecast_of(prepare(scenario, device=device, threads=1, load=load, sizes_only=True))


def summary(checks: Sequence[Forecast]) -> list[str]:
    """Describe the runs of a file in a few lines; facts common to all runs appear once."""
    counts = Counter(line for each in checks for line in each.lines())
    held_bytes = max(each.memory_bytes for each in checks)
    # show no more digits of the memory than are certain
    memory = f"memory: about {float(f'{held_bytes:.2g}') / 1e9:g} GB for a run"
    most = [] if math.isnan(held_bytes) else [memory]
    if len(checks) == 1:
        return [*counts, *most]
    own = [f"{line}   ({count} of them)" for line, count in counts.items() if count < len(checks)]
    if len(own) > MOST_OWN:
        own = [*own[:MOST_OWN], f"... and {len(own) - MOST_OWN} more lines that differ between runs"]
    shared = [line for line, count in counts.items() if count == len(checks)]
    return [f"{len(checks)} runs per seed; with the first seed:", *shared, *own, *most]


def _tried(scenario: Scenario, device: str) -> Forecast:
    """Build a run and try its first rounds in a separate process, so that only the run's own memory is measured."""
    made, failures = list[Forecast](), list[Failure | None]()
    side_by_side(
        InOrder([(scenario, device)]),
        _try,
        1,
        reported=lambda _, forecast: made.append(forecast),
        ended=lambda _, failure: failures.append(failure),
    )
    if failures[0] is not None:
        raise EdgeflError(failures[0].error)
    return made[0]


def _try(task: tuple[Scenario, str], report: Callable[[Forecast], None]) -> None:
    run = prepare(task[0], device=task[1], load=Loaded(download=False))
    built = forecast_of(run)
    report(replace(built, probe=probe(run)))


def look(
    one: Path | Scenario,
    device: str,
    load: Loaded,
    overrides: Sequence[str] = (),
    *,
    plan: bool = False,
    cases_to: list[tuple[str, Forecast]] | None = None,
) -> Iterator[str]:
    """Check a scenario or a study as `check` does; yield lines that describe it.

    Args:
        plan: whether to estimate the runs' costs, too; each case is then built and tried in a separate process.
        cases_to: list to which the label and the forecast of each case are added.
    """
    cases, seeds = ([("", one)], 1) if isinstance(one, Scenario) else _cases_of(one, overrides)
    ok = f"{one.name if isinstance(one, Scenario) else one}: ok"
    made: list[Forecast] = []
    kept = [] if cases_to is None else cases_to
    if not plan:
        made = check_builds(cases, device, load)
        kept.extend(zip([label for label, _ in cases], made, strict=True))
        yield "\n  ".join([ok, *summary(made)])
        return
    for label, scenario in cases:
        if label and not made:
            yield f"{one}:"
        made.append(_tried(scenario, device))
        kept.append((label, made[-1]))
        if label:
            yield f"{label}, one of {seeds} seeds:" if seeds > 1 else f"{label}:"
            yield from made[-1].costs()
    yield "\n  ".join([ok, *summary(made)])
    if not cases[0][0]:
        yield from made[0].costs()
        return
    whole = total((Range(seeds, seeds), case.wall_s) for case in made).text(wall_time)
    yield f"the whole study, {seeds * len(cases)} runs one after another: {whole}"
