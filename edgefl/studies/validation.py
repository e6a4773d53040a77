"""What can be known of a scenario or a study before it runs: `edgefl validate`, and what its runs will take."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from edgefl.config.yaml_source import Source
from edgefl.errors import EdgeflError
from edgefl.run.forecast import Forecast, Range, forecast_of, total
from edgefl.run.plan import prepare
from edgefl.run.probe import Probe, probe
from edgefl.run.progress import wall_time
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.scenario import load as load_scenario
from edgefl.studies import planning
from edgefl.studies.workers import Failure, InOrder, side_by_side

MOST_OWN = 6  # lines that only some runs of a study have


def check(
    path: Path, device: str = "auto", load: Loaded | None = None, overrides: Sequence[str] = ()
) -> list[Forecast]:
    """Check a scenario or a study (a file with `variants`): build all of it, train nothing, write nothing.

    A study is checked with its first seed.

    Args:
        device: as in `simulate`.
        load: reads the data; None: data must be on this machine, nothing is downloaded.
        overrides: `dotted.key=value` strings; of a scenario, not of a study.

    Returns:
        What is known of the scenario, or of each variant in each setting.

    Raises:
        EdgeflError: names file, line and remedy.
    """
    if _is_study(path, overrides):
        return check_builds(planning.plan(path).first_runs(), device, load)
    return [check_build(load_scenario(path, overrides), device, load)]


def _is_study(path: Path, overrides: Sequence[str]) -> bool:
    """Whether a file is a study, which has its overrides in its variants.

    Raises:
        EdgeflError: it is one, and there are other overrides.
    """
    study = "variants" in Source(path).data
    if study and overrides:
        raise EdgeflError(f"{path}: is a study; --set is for scenarios, a study has variants")
    return study


def check_builds(
    scenarios: Iterable[tuple[str, Scenario]], device: str = "auto", load: Loaded | None = None
) -> list[Forecast]:
    """Build and check several runs, say those of a study.

    Args:
        scenarios: label and scenario of each; a label stands in front of its error.
        device, load: as in `check`.

    Raises:
        EdgeflError: of the first that is wrong.
    """
    load = load or Loaded(download=False)
    checks = []
    for label, scenario in scenarios:
        try:
            checks.append(check_build(scenario, device, load))
        except EdgeflError as error:
            raise EdgeflError(f"{label}: {error}") from error
    return checks


def check_build(scenario: Scenario, device: str = "auto", load: Loaded | None = None) -> Forecast:
    """Build and check a run as `simulate` does at its beginning, and no more; see `check`."""
    load = load or Loaded(download=False)
    return forecast_of(prepare(scenario, device=device, threads=1, load=load, sizes_only=True))


def summary(checks: Sequence[Forecast]) -> list[str]:
    """Say in a few lines what is known of the runs of a file; what all of them share is said once."""
    counts = Counter(line for each in checks for line in each.lines())
    held_bytes = max(each.memory_bytes for each in checks)
    # with no more digits than are known
    memory = f"memory: about {float(f'{held_bytes:.2g}') / 1e9:g} GB for a run"
    most = [] if math.isnan(held_bytes) else [memory]
    if len(checks) == 1:
        return [*counts, *most]
    own = [f"{line}   ({count} of them)" for line, count in counts.items() if count < len(checks)]
    if len(own) > MOST_OWN:
        own = [*own[:MOST_OWN], f"... and {len(own) - MOST_OWN} more lines that not all of them share"]
    shared = [line for line, count in counts.items() if count == len(checks)]
    return [f"{len(checks)} runs for each seed; here with the first:", *shared, *own, *most]


def _tried(scenario: Scenario, device: str = "auto") -> Forecast:
    """Try the first rounds of a scenario in a process of its own, whose memory is the run's alone.

    Raises:
        EdgeflError: the run cannot begin.
    """
    probes, failures = list[Probe](), list[Failure | None]()
    side_by_side(
        InOrder([(scenario, device)]),
        _probe,
        1,
        reported=lambda _, made: probes.append(made),
        ended=lambda _, failure: failures.append(failure),
    )
    if failures[0] is not None:
        raise EdgeflError(failures[0].error)
    return Forecast(scenario, probe=probes[0])


def _probe(task: tuple[Scenario, str], report: Callable[[Probe], None]) -> None:
    report(probe(*task))


def costs(path: Path, device: str = "auto", overrides: Sequence[str] = ()) -> Iterator[str]:
    """Say line by line what the run of a scenario file will take, or the runs of a study's cases, one seed each.

    Raises:
        EdgeflError: a file is not valid, or a run cannot begin.
    """
    if not _is_study(path, overrides):
        yield from _tried(load_scenario(path, overrides), device).costs()
        return
    study, cases = planning.load(path)
    seeds = len(study.seeds)
    walls_s = []
    for case in cases:
        yield f"{case.folder} {case.variant}, one of {seeds} seeds:".lstrip()
        made = _tried(case.scenario, device)
        yield from made.costs()
        walls_s.append((Range(seeds, seeds), made.wall_s))
    whole = total(walls_s).text(wall_time)
    yield f"the whole study, {seeds * len(cases)} runs one after the other: {whole}"
