"""Readers of recorded paths, one module per file format.

A format is a module of this package with two functions: `begins(head)` returns whether a file with this beginning has
the format, and `read(path, samples)` adds the samples of such a file. To add a format, add a module; no other module
changes. Modules with a leading underscore are helpers.
"""

import importlib
import os
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from edgefl.config import foreign_files, scenario_files
from edgefl.errors import EdgeflError, quoted
from edgefl.mobility._traces._lines import HEAD, Head
from edgefl.mobility._traces._samples import Samples, Wanted

KNOWN = (
    "floating-car data or tables of SUMO, tables with a header (CSV, Parquet), GPX, GeoLife's .plt, Porto's POLYLINE,"
    " ns-2 (setdest), BonnMotion (.movements), ONE (external movement)"
)


def read(path: Path, wanted: Wanted) -> Samples:
    """Read the samples of a file, of all files below a folder, or of the files that match a pattern.

    Raises:
        EdgeflError: a file or a line of it cannot be read; the message names file, line and remedy.
    """
    samples = Samples(wanted)
    files = scenario_files.files_of(path)
    if not files:
        raise EdgeflError(f"{path}: is a folder without files; name a file, or a folder with files")
    for file, name in zip(files, _names(files), strict=True):
        samples.begin(file, name)
        with foreign_files.reading(file):
            _form(file, wanted).read(file, samples)
    samples.complete(path)
    if not samples.devices:
        if samples.skipped and not wanted.skip:
            raise EdgeflError(samples.first_skipped)
        first = f"; the first bad row is {samples.first_skipped}" if samples.skipped else ""
        raise EdgeflError(
            f"{path}: has no SUMO {' or '.join(wanted.kinds)}, no row and no track point; a trace needs one{first}"
        )
    return samples


def _form(path: Path, wanted: Wanted) -> ModuleType:
    with foreign_files.opened(path) as file:
        head = Head(file.read(HEAD))
    forms = _forms()
    if wanted.columns and not (head.is_xml or head.binary):
        return forms["table"]
    for form in forms.values():
        if form.begins(head):
            return form
    if head.binary:
        raise EdgeflError(
            f"{path}: begins with {quoted(head.raw[:4])}, which is not a known file type: give {KNOWN}"
        )
    return forms["fcd" if head.is_xml else "table"]  # these readers' errors say what the file lacks


@cache
def _forms() -> dict[str, ModuleType]:
    names = [each.name for each in pkgutil.iter_modules(__path__) if not each.name.startswith("_")]
    return {name: importlib.import_module(f"{__name__}.{name}") for name in names}


def _names(files: list[Path]) -> Iterator[str]:
    """Yield the name of each file's device: the path below the common folder, without file extensions.

    GeoLife has a folder for each user, with the user's tracks in a subfolder Trajectory.
    """
    top = os.path.commonpath([file.parent for file in files])
    for file in files:
        if file.parent.name == "Trajectory":
            yield file.parent.parent.name
        else:
            yield os.path.relpath(file.with_name(file.name.partition(".")[0] or file.name), top)
