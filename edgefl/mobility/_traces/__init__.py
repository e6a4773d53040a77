"""Recorded paths in the forms that programs write them.

A form is a file of this package with two functions: `begins(head)` returns whether a file that begins so has the
form, and `read(path, samples)` adds the samples of such a file. A new form is a new file, and no other file changes.
Files with a leading underscore are helpers.
"""

import importlib
import os
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from edgefl.config import foreign_files, scenario_files
from edgefl.errors import EdgeflError, quoted
from edgefl.mobility._traces._samples import Samples, Wanted

HEAD = 1 << 16  # bytes of a file that tell its form
KNOWN = (
    "floating-car data or tables of SUMO, tables with a header (CSV, Parquet), GPX, GeoLife's .plt, Porto's POLYLINE,"
    " ns-2 (setdest), BonnMotion (.movements), ONE (external movement)"
)


class Head:
    """The beginning of a file.

    raw: its first bytes, unpacked. lines: its first lines that are not empty or comments. root: the root element of
    XML, '' if it is not XML.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        wide = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = raw.decode("utf-16" if wide else "utf-8-sig", errors="replace")
        whole = text[: text.rfind("\n")] if len(raw) == HEAD and "\n" in text else text
        stripped = (line.strip() for line in whole.splitlines())
        self.lines = [line for line in stripped if line and line[0] != "#"]
        self.is_xml = text.lstrip()[:1] == "<"
        element = re.search(r"<([^\s/>?!]+)", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
        self.root = element[1].rpartition(":")[2] if self.is_xml and element else ""
        self.binary = not wide and b"\0" in raw


class Form(Protocol):
    """A form in which programs write paths."""

    def begins(self, head: Head) -> bool:
        """Return whether a file that begins so has this form."""

    def read(self, path: Path, samples: Samples) -> None:
        """Add the samples of a file.

        Raises:
            EdgeflError: names file, line and remedy.
        """


def read(path: Path, wanted: Wanted) -> Samples:
    """Read the samples of a file, of all files below a folder, or of those that match a pattern.

    Raises:
        EdgeflError: a file or a line of it cannot be read; names file, line and remedy.
    """
    samples = Samples(wanted)
    files = scenario_files.files_of(path)
    if not files:
        raise EdgeflError(f"{path}: is a folder without files; name a file, or a folder with some")
    for file, name in zip(files, _names(files), strict=True):
        samples.begin(file, name)
        with foreign_files.reading(file):
            _form(file, wanted).read(file, samples)
    if not samples.devices:
        first = f"; the first bad row is {samples.first_skipped}" if samples.skipped else ""
        raise EdgeflError(
            f"{path}: has no {' or '.join(wanted.kinds)} of SUMO, no row and no track point; a trace needs one{first}"
        )
    return samples


def _form(path: Path, wanted: Wanted) -> Form:
    with foreign_files.opened(path) as file:
        head = Head(file.read(HEAD))
    forms = _forms()
    if wanted.columns and not (head.is_xml or head.binary):
        return forms["table"]
    for form in forms.values():
        if form.begins(head):
            return form
    if head.binary:
        raise EdgeflError(f"{path}: begins with {quoted(head.raw[:4])}, which is no known kind: give {KNOWN}")
    return forms["fcd" if head.is_xml else "table"]  # their errors say what is missing


@cache
def _forms() -> dict[str, Form]:
    names = [each.name for each in pkgutil.iter_modules(__path__) if not each.name.startswith("_")]
    return {name: cast(Form, importlib.import_module(f"{__name__}.{name}")) for name in names}


def _names(files: list[Path]) -> Iterator[str]:
    """Yield the name of each file's device: the path below the common folder, without endings.

    GeoLife's users have a folder each, with their tracks in its folder Trajectory.
    """
    top = os.path.commonpath([file.parent for file in files])
    for file in files:
        if file.parent.name == "Trajectory":
            yield file.parent.parent.name
        else:
            yield os.path.relpath(file.with_name(file.name.partition(".")[0] or file.name), top)
