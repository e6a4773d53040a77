"""Find the shipped scenarios, studies and examples from any folder, and copy them."""

import shutil
from pathlib import Path
from typing import Literal

from edgefl.config.scenario_files import HOME
from edgefl.errors import EdgeflError

Kind = Literal["scenario", "study"]
FOLDER = HOME / "scenarios"
EXAMPLES = HOME / "examples"
PATTERNS: dict[Kind, str] = {"scenario": "*.yaml", "study": "studies/*.yaml"}


def names(kind: Kind) -> dict[str, Path]:
    """Return the shipped files of a kind, such as scenarios: name -> file."""
    return {file.stem: file for file in sorted(FOLDER.glob(PATTERNS[kind]))}


def find(wanted: Path, kind: Kind) -> Path:
    """Find a file at its path, or by its name among the shipped files.

    Args:
        wanted: a file, or a name such as `quickstart`; `scenarios/...` also finds a shipped file if the current
            folder contains no such file.

    Raises:
        EdgeflError: there is neither a file nor a shipped file of this name.
    """
    if wanted.exists():
        return wanted
    if wanted.parts[:1] == ("scenarios",):
        return data(wanted)
    if wanted.suffix or len(wanted.parts) > 1:
        return wanted  # the file's reader reports that the file is missing
    known = names(kind)
    if wanted.name not in known:
        from edgefl.config.registry import nearest

        near = nearest(wanted.name, list(known))
        hint = f": did you mean '{near}'?" if near else ""
        raise EdgeflError(f"no file '{wanted}', and no {kind} of this name in `edgefl scenarios`{hint}")
    return known[wanted.name]


def called(file: Path) -> str:
    """Return the name by which commands take a shipped scenario; another file's path."""
    return file.stem if file == FOLDER / file.name else str(file)


def data(path: Path) -> Path:
    """Return the path itself, or for a missing path below `scenarios/` the path of the shipped file."""
    own = HOME / path
    return own if path.parts[:1] == ("scenarios",) and not path.exists() and own.is_file() else path


def copy(into: Path, folder: Path = FOLDER) -> list[Path]:
    """Copy shipped files to a folder; leave identical files that are already there unchanged.

    Args:
        folder: name of the folder to copy: FOLDER (all scenarios, studies and traces) or EXAMPLES.

    Returns:
        Paths of the copies.

    Raises:
        EdgeflError: a different file is already there, or a file cannot be written.
    """
    pairs = [(file, into / file.relative_to(folder)) for file in files(folder)]
    try:
        for file, target in pairs:
            if target.exists() and target.read_bytes() != file.read_bytes():
                raise EdgeflError(f"{target} exists with other content: choose another folder, or move it")
        for file, target in pairs:
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
    except OSError as error:
        raise EdgeflError(f"{into}: cannot be written ({error.strerror}); choose another folder") from error
    return [target for _, target in pairs]


def files(folder: Path) -> list[Path]:
    """Return the shipped files below a folder, without files that Python or a run has generated."""
    whole = (file for file in sorted(folder.rglob("*")) if file.is_file() and "__pycache__" not in file.parts)
    return [file for file in whole if file.name not in ("__init__.py", "digits.npz")]
