"""Merge directories of one study that were computed separately."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.run_directory.files import draft_of, writing
from edgefl.run_directory.reading import study_of
from edgefl.studies.directory import FILE
from edgefl.studies.run_locks import FOLDER
from edgefl.studies.states import State, about_run, clear, state_of

# If two directories have the same run, the copy with the later state is kept.
FURTHER = [State.PLANNED, State.RUNNING, State.STALE, State.FAILED, State.INTERRUPTED, State.COMPLETED]


def merge(parts: Sequence[Path], out: Path) -> dict[State, int]:
    """Copy the runs of several study directories into one directory, new or old; the sources stay unchanged.

    If several parts contain the same run, the most advanced copy is used. Runs under way are skipped.

    Returns:
        The number of runs by state.

    Raises:
        EdgeflError: the parts belong to different studies, or contain links; nothing was copied.
    """
    for part in parts:
        if not (part / FILE).is_file():
            raise EdgeflError(
                f"{part}: is not a study directory, since it has no {FILE}; give a directory made by `edgefl study`"
            )
    for file in (file for part in parts for file in part.rglob("*")):
        if file.is_symlink() or not (file.is_file() or file.is_dir()):  # copying a link would copy its target
            raise EdgeflError(f"{file}: is a link or a device, not a file written by a run; delete it")
    _check_one_study([*([out] if (out / FILE).is_file() else []), *parts])
    places = [out, *(part for part in parts if part.resolve() != out.resolve())]
    holders_of: dict[Path, list[Path]] = {}
    for place in places:
        for run in _runs_in(place):
            holders_of.setdefault(run, []).append(place)
    for run, holders in holders_of.items():
        _check_one_run(run, holders)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        if not (out / FILE).exists():
            if any(out.iterdir()):
                raise EdgeflError(f"{out}: is not empty and not a study directory; choose another --out")
            shutil.copyfile(parts[0] / FILE, out / FILE)
        for run, holders in holders_of.items():
            best = max(holders, key=lambda place: FURTHER.index(state_of(place, run)))  # the first, if equal
            if best != out and state_of(best, run) is not State.RUNNING:
                _copy(best / run, out / run)
    states = [state_of(out, run) for run in _runs_in(out)]
    return {state: states.count(state) for state in State if state in states}


def _check_one_study(directories: Sequence[Path]) -> None:
    """Raise if the directories' studies have different names."""
    names = {one: _study_in(one) for one in directories}
    first = directories[0]
    for one, name in names.items():
        if name != names[first]:
            raise EdgeflError(
                f"{one} belongs to the study '{name}', but {first} to '{names[first]}'; merge directories "
                "of one study"
            )


def _study_in(directory: Path) -> str:
    name = study_of(directory).get("name")
    if name is None:
        raise EdgeflError(f"{directory / FILE}: cannot be read; give directories made by `edgefl study`")
    return str(name)


def _runs_in(directory: Path) -> list[Path]:
    """Return the run directories of a study, relative to the study's directory."""
    found = {path.parent.relative_to(directory) for path in directory.rglob("run.json")}
    return sorted(run for run in found if run.parts[:1] != (FOLDER,) and run.parent not in found)


def _check_one_run(run: Path, holders: Sequence[Path]) -> None:
    """Raise if runs with the same name differ."""
    records: list[tuple[Path, dict[str, Any]]] = [(place, about_run(place / run)) for place in holders]
    first_place, first = records[0]
    for place, about in records[1:]:
        if about and first and _name(about) != _name(first):
            raise EdgeflError(
                f"{place / run} and {first_place / run} are not the same run ({_name(about)} and {_name(first)}):"
                " their settings, data or results versions differ; merge only directories of one study"
            )


def _name(about: dict[str, Any]) -> tuple[Any, ...]:
    return about.get("study"), (about.get("identity") or {}).get("hash")


def _copy(source: Path, target: Path) -> None:
    """Copy a run directory; an incomplete copy is never mistaken for a run."""
    draft = draft_of(target)
    clear(draft)
    try:
        shutil.copytree(source, draft)
    except shutil.Error as error:  # the error lists all files that could not be copied
        file, _, why = error.args[0][0]
        clear(draft)
        raise EdgeflError(f"{file}: cannot be copied ({why}); make it readable, or delete it") from error
    clear(target)
    draft.rename(target)
