"""A study's directory: which one it is, whether it holds this study, and which part of it one process does."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from edgefl.errors import EdgeflError
from edgefl.run_directory.circumstances import SCENARIO
from edgefl.run_directory.results import fresh_directory
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.identity import Identity, identity, in_short, leaves
from edgefl.scenario.scenario import load as load_scenario
from edgefl.scenario.scenario import written
from edgefl.studies.planning import Plan, Run
from edgefl.studies.sharing import Share
from edgefl.studies.states import State, about_run

FILE = "study.yaml"


def place(plan: Plan, out: str | Path | None, load: Loaded, *, go_on: bool) -> Path:
    """Return the directory that a study gets, or has; nothing is written.

    Args:
        out: None: `runs/NAME`, numbered where that holds something else.

    Raises:
        EdgeflError: it holds something else; it says what differs.
    """
    if out is not None:
        path = Path(out)
        if _holds_a_study(path) and go_on:
            check_unchanged(plan, path, load)
        return path
    number = 1
    while True:
        path = Path("runs", plan.name if number == 1 else f"{plan.name}-{number}")
        if not path.exists():
            return path
        if _holds_a_study(path) and go_on:
            with suppress(EdgeflError):
                check_unchanged(plan, path, load)
                return path
        number += 1


def make(path: Path, *, go_on: bool) -> None:
    """Make a study's directory, or find it made.

    Raises:
        EdgeflError: it holds something else, or cannot be written.
    """
    if not (go_on and _holds_a_study(path)):
        try:
            fresh_directory(path, claim=FILE)
        except EdgeflError:
            if not (go_on and _holds_a_study(path)):  # another process has just made it
                raise


def _holds_a_study(path: Path) -> bool:
    return (path / FILE).is_file()


def check_unchanged(plan: Plan, directory: Path, load: Loaded) -> None:
    """Refuse a directory that holds a run under a name of this study's which is another one.

    Raises:
        EdgeflError: it says which, and which keys differ.
    """
    wrong = []
    for run in plan.runs:
        about = about_run(directory / run.path)
        recorded = about.get("identity")
        if recorded is None and about.get("status") != State.COMPLETED:
            continue  # it has not come so far as to say what it is
        own = identity(run.scenario, load.checksum(run.scenario))
        if recorded is not None and recorded["hash"] == own.hash:
            continue
        # keys that edgefl did not know then have their defaults, with which it is the same run
        if difference := _difference(directory / run.path, recorded, own):
            wrong.append(f"{run.path}: {difference}")
    if wrong:
        more = f"\n  and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        listed = "".join(f"\n  {one}" for one in wrong[:3])
        raise EdgeflError(
            f"{directory}: holds runs that are not this study's; choose another --out, or delete these:{listed}{more}"
        )


def _difference(path: Path, recorded: Mapping[str, object] | None, own: Identity) -> str:
    if recorded is None:
        return "does not say which data and version of results it is of"
    keys = dict(leaves(written(load_scenario(path / SCENARIO))))
    keys = {key: value for key, value in keys.items() if key in own.scenario or key != "name"}
    there = Identity(keys, recorded["data"], recorded["results_version"], recorded.get("code", {}))  # type: ignore[arg-type]
    return in_short(own.differences(there))


def shard_of(runs: Sequence[Run], shared: Mapping[Path, Share], number: int, count: int) -> list[Run]:
    """Return one of so many parts of a study, from 1 on; runs that share a training stay together if they can.

    Raises:
        EdgeflError: there is no such part.
    """
    if not 1 <= number <= count:
        raise EdgeflError(f"--shard {number}/{count}: the first is 1/{count}, the last {count}/{count}")
    families: dict[int, int] = {}
    for run in runs:
        families.setdefault(id(shared[run.path].family), len(families))
    if len(families) < count:
        return list(runs[number - 1 :: count])
    return [run for run in runs if families[id(shared[run.path].family)] % count == number - 1]
