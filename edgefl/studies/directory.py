"""Find or make the directory of a study, and check that its runs are those of this study."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.learning.user_cache import without_tilde
from edgefl.run_directory import status
from edgefl.run_directory.circumstances import SCENARIO, leaves
from edgefl.run_directory.reading import STUDY, study_of
from edgefl.run_directory.results import fresh_directory, require_free
from edgefl.scenario.prepared import Identity, Prepared, in_short
from edgefl.scenario.scenario import load as load_scenario
from edgefl.scenario.scenario import written
from edgefl.studies.planning import Run
from edgefl.studies.states import State, about_run
from edgefl.studies.study_file import folder_of

FILE = STUDY


def place(
    name: str, out: str | Path | None, prepared: Mapping[Path, Prepared], *, go_on: bool
) -> tuple[Path, dict[Path, dict[str, Any]]]:
    """Return a study's directory, new or continued, and run.json of each of its runs; write nothing.

    Args:
        name: name of the study. prepared: each run's path -> the run's scenario.
        out: the study's directory, by default `runs/NAME`, with a number added if `runs/NAME` contains something
            else, or variants that the study does not have.

    Raises:
        EdgeflError: the directory contains something other than this study; the message names the difference.
    """
    if out is not None:
        path = without_tilde(Path(out))
        return path, _check_unchanged(path, prepared) if _holds_a_study(path) and go_on else {}
    for number in count(1):
        path = Path("runs", name if number == 1 else f"{name}-{number}")
        if not path.exists():
            break
        if _holds_a_study(path) and go_on and not _others(path, prepared):
            with suppress(EdgeflError):
                return path, _check_unchanged(path, prepared)
    return path, {}


def make(path: Path, *, go_on: bool, only_check: bool = False) -> None:
    """Make a study's directory unless it exists; with `only_check`, only check whether it can be made.

    Raises:
        EdgeflError: the directory contains something other than this study, or is not writable.
    """
    if not (go_on and _holds_a_study(path)):
        try:
            require_free(path) if only_check else fresh_directory(path, claim=FILE)
        except EdgeflError:
            if not (go_on and _holds_a_study(path)):  # another process has just made the directory
                raise


def describe_again(path: Path, runs: Iterable[Run]) -> None:
    """Write the study's present reference, variants and labels into run.json of all complete runs.

    The study's file may have changed since these runs, and comparisons read run.json. Runs with other seeds, which
    the study's question may have added, are included.
    """
    for case, member in {run.path.parent: run.member for run in runs}.items():
        for file in sorted((path / case).glob("seed-*/run.json")):
            status.describe_again(file.parent, asdict(member))


def _holds_a_study(path: Path) -> bool:
    return (path / FILE).is_file()


def check_same(out: str | Path | None, name: str, runs: Iterable[Path]) -> None:
    """Refuse a directory of another study, or with runs of variants that this study does not have.

    Args:
        out: the directory; None for a default directory, which `place` chooses.
        name, runs: the study's name, and the path of each of its runs in its directory.

    Raises:
        EdgeflError: the directory is not this study's; its verdict would compare runs of two studies.
    """
    if out is None or not _holds_a_study(path := without_tilde(Path(out))):
        return
    if (other := study_of(path).get("name", name)) != name:
        raise EdgeflError(f"{path}: belongs to the study '{other}', not to '{name}'; choose another --out")
    # names with spaces are of an earlier version, and have an error of their own
    if others := [one for one in _others(path, runs) if " " not in one]:
        named = ", ".join(f"'{one}'" for one in others[:3]) + " and others" * (len(others) > 3)
        raise EdgeflError(
            f"{path}: has runs of {named}, which this study does not have, and the verdict would include them; choose"
            " another --out, or delete them"
        )


def _others(path: Path, runs: Iterable[Path]) -> list[str]:
    """Return the variants with runs in a study's directory that none of these runs belongs to."""
    held = {file.parents[1].relative_to(path).as_posix() for file in path.glob("**/seed-*/run.json")}
    return sorted(held - {run.parent.as_posix() for run in runs})


def _check_unchanged(directory: Path, prepared: Mapping[Path, Prepared]) -> dict[Path, dict[str, Any]]:
    """Refuse a directory that contains a different run under the name of one of this study's runs.

    Returns:
        Path of each run -> the contents of the run's run.json.

    Raises:
        EdgeflError: a run differs; the message names the run and the keys that differ.
    """
    for run_file in directory.glob("**/seed-*/run.json"):
        if " " in (old := run_file.parent.relative_to(directory).as_posix()):
            raise EdgeflError(
                f"{directory / old}: was named by an earlier version of edgefl; to continue the study, rename"
                f" its folders with - instead of spaces ({folder_of(old)}), or choose another --out"
            )
    wrong = []
    records = {path: about_run(directory / path) for path in prepared}
    for path, about in records.items():
        recorded = about.get("identity")
        if recorded is None and about.get("status") != State.COMPLETED:
            continue  # the run ended before it wrote its identity
        if about.get("status") == State.FAILED:
            continue  # a failed run may differ, since --retry discards it
        own = prepared[path].identity
        if recorded is not None and recorded["hash"] == own.hash:
            continue
        # keys that are newer than the run have defaults that leave the run unchanged
        if difference := _difference(directory / path, recorded, own):
            wrong.append(f"{path}: {difference}")
    if wrong:
        more = f"\n  and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        listed = "".join(f"\n  {one}" for one in wrong[:3])
        raise EdgeflError(
            f"{directory}: has runs that are not of this study; choose another --out, or delete these:{listed}{more}"
        )
    return records


def _difference(path: Path, recorded: Mapping[str, object] | None, own: Identity) -> str:
    if recorded is None:
        return "its run.json lacks its data and its version of results"
    keys = dict(leaves(written(load_scenario(path / SCENARIO))))
    there = Identity(keys, recorded[("data")], recorded["results_version"], recorded.get("code", {}))  # type: ignore[arg-type]
    return in_short(own.differences(there))
