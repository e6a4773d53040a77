"""Run scenarios from Python (`edgefl.simulate`, `edgefl.resume`). Slow imports wait until progress is shown."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.errors import check_values
from edgefl.run.results import Results
from edgefl.run.showing import Showing, showing

if TYPE_CHECKING:
    from edgefl.contract import Learner
    from edgefl.engine.records import Round
    from edgefl.learners.own import Maker
    from edgefl.scenario.scenario import Scenario


def simulate(
    scenario: "Scenario | str | Path | Mapping[str, Any]",
    out: str | Path | None = None,
    *,
    device: str = "auto",
    threads: int | None = None,
    snapshot_rounds: int | None = None,
    learner: "Maker | Learner | None" = None,
    on_round: "Callable[[Round], None] | None" = None,
    on_note: Callable[[str], None] | None = None,
    progress: bool = True,
) -> Results:
    """Run a scenario.

    Args:
        scenario: a scenario from `load_scenario`, or an argument of that function: a file's path or a dict.
        out: run directory to create; by default `runs/NAME-seedN` in the current folder, numbered if it exists.
        device: PyTorch device that trains models: `auto` (CUDA if there is one), `cpu`, `cuda`, `cuda:1`, `mps`.
        threads: how many devices are trained at the same time on a CPU, by default one per core; results do not
            depend on this number. With several threads, a longer run on Linux trains in a separate process, unless
            the calling process has other threads.
        snapshot_rounds: rounds between snapshots, from which a run can resume; None for a snapshot every 10 minutes.
        learner: an external learner, which trains instead of PyTorch (see `edgefl.learners.own`); it is called with
            an `Assignment` for each federation, and the scenario then has a `workload` instead of `learning`.
        on_round: called with the row of every round as the round ends; the joules include radio tails up to that
            moment, while rounds.csv gets the row once the tails are over.
        on_note: called with urgent notes: on slow settings, and on files that a resumed run finds damaged.
        progress: whether to show progress and notes in a terminal or notebook; elsewhere nothing is shown.

    Returns:
        The run directory: a path object that has the run's tables as attributes, see `Results`.

    Raises:
        EdgeflError: the scenario cannot run; nothing has been written, or the run directory is marked `failed`.
        Interrupted: Ctrl-C or SIGTERM ended the run; the run directory is marked `interrupted`.
    """
    check_values(
        {"threads": threads, "snapshot_rounds": snapshot_rounds},
        {"on_round": on_round, "on_note": on_note},
        device,
    )
    with showing(progress) as shown:
        from edgefl.learning.user_cache import without_tilde
        from edgefl.run.plan import prepare
        from edgefl.run.simulation import carry_out
        from edgefl.run_directory.interruption import interruptible
        from edgefl.run_directory.results import require_free
        from edgefl.run_directory.snapshot import Every
        from edgefl.scenario.scenario import given

        described = given(scenario)
        if out:  # check before the long preparation; the run checks again when it begins
            require_free(without_tilde(Path(out)))
        run, note = _shown(shown, described, on_round, on_note)
        every = Every(rounds=snapshot_rounds)
        with interruptible():
            plan = prepare(described, device=device, threads=threads, learner=learner)
            results = carry_out(plan, out, every=every, on_round=run, on_note=note)
        shown.end(results)
    return results


def resume(
    path: str | Path,
    *,
    threads: int | None = None,
    snapshot_rounds: int | None = None,
    learner: "Maker | Learner | None" = None,
    on_round: "Callable[[Round], None] | None" = None,
    on_note: Callable[[str], None] | None = None,
    progress: bool = True,
) -> Results:
    """Resume an unfinished run, on the kind of PyTorch device on which it began.

    The run's tables are rewritten from the first row on; at the end they equal those of an uninterrupted run.

    Args:
        path: the run directory.
        threads: as in `simulate`.
        snapshot_rounds: as in `simulate`.
        learner: the external learner that the run began with, if any.
        on_round: called with every round, including replayed ones.
        on_note: called with notes on damaged files, and on how the run continues despite them.
        progress: as in `simulate`.

    Returns:
        The run directory.

    Raises:
        EdgeflError: the run is complete or under way, or would not continue as it began.
    """
    check_values(
        {"threads": threads, "snapshot_rounds": snapshot_rounds},
        {"on_round": on_round, "on_note": on_note},
    )
    with showing(progress) as shown:
        from edgefl.run.plan import prepare
        from edgefl.run.resuming import device_of, left_behind
        from edgefl.run.simulation import carry_out
        from edgefl.run_directory.interruption import interruptible
        from edgefl.run_directory.snapshot import Every

        path = Path(path)
        scenario = left_behind(path, learner)
        run, note = _shown(shown, scenario, on_round, on_note)
        every = Every(rounds=snapshot_rounds)
        with interruptible():
            plan = prepare(scenario, device=device_of(path), threads=threads, learner=learner)
            results = carry_out(plan, path, every=every, on_round=run, on_note=note, resumes=True)
        shown.end(results)
    return results


def _shown(
    shown: Showing,
    scenario: "Scenario",
    on_round: "Callable[[Round], None] | None",
    on_note: Callable[[str], None] | None,
) -> "tuple[Callable[[Round], None], Callable[[str], None]]":
    """Return callbacks that show a run's rounds and notes, and then call the caller's own callbacks."""
    shown.begin({scenario.name: scenario})

    def each_round(row: "Round") -> None:
        shown.update(scenario.name, row)
        if on_round is not None:
            on_round(row)

    def each_note(note: str) -> None:
        shown.note(note)
        if on_note is not None:
            on_note(note)

    return each_round, each_note
