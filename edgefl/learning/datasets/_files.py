"""Finding, verifying and reading the files of a data set.

Search order: an explicit root and nothing else; without one, the environment variable EDGEFL_DATA, the
user cache ($XDG_CACHE_HOME/edgefl or ~/.cache/edgefl), the folder of the distribution's package, and at
last a download into the user cache, which EDGEFL_OFFLINE=1 forbids. Wherever a file comes from, the md5 of
its uncompressed bytes decides whether it is the right one: packagers rewrite gzip headers.
"""

import gzip
import hashlib
import logging
import os
import urllib.request
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from math import prod
from pathlib import Path
from uuid import uuid4

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Split

TIMEOUT_S = 10.0  # wall clock, for the connection and for each read of a download
IDX_UINT8 = 0x08  # type code of unsigned bytes, the only one that image sets use
UNREADABLE = (OSError, EOFError, zlib.error, ValueError)  # what reading, unpacking and verifying may raise

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FileSet:
    """The files of one data set, and where they can be had.

    name: as people write it.
    md5: file name -> md5 of the uncompressed bytes; each file may lie there plain or as `<file name>.gz`.
    folders: where the files may lie below a data root, besides the root itself; the first one is the
        folder in the user cache.
    remedy: how to install the data set, for error messages.
    system: folder that a package of the distribution installs; None if there is no such package.
    url: address in front of `<file name>.gz`; None if the files cannot be fetched one by one.
    """

    name: str
    md5: Mapping[str, str]
    folders: tuple[str, ...]
    remedy: str
    system: Path | None = None
    url: str | None = None


def locate(files: FileSet, root: Path | None = None) -> dict[str, Path]:
    """File name -> path of the first place that holds them all; only looks, never downloads.

    Raises:
        EdgeflError: no place holds them; names every place and what it lacks.
    """
    places = _places(files, root)
    found = _first_complete(files, places)
    if not found:
        raise _missing(files, places, root, "not tried, this only looks")
    return found


def obtain(files: FileSet, root: Path | None = None) -> dict[str, Path]:
    """Like `locate`, but as a last resort downloads into the user cache (never in place of an explicit root).

    Raises:
        EdgeflError: no place holds them, and the download is forbidden, impossible or failed.
    """
    places = _places(files, root)
    found = _first_complete(files, places)
    if found:
        return found
    if os.environ.get("EDGEFL_OFFLINE", "0") not in ("", "0"):
        raise _missing(files, places, root, "forbidden by EDGEFL_OFFLINE")
    if root is not None or files.url is None:
        raise _missing(files, places, root, "not offered")
    cache = user_cache() / files.folders[0]
    try:
        _download(files, files.url, cache)
    except (OSError, HTTPException) as error:
        raise _missing(files, places, root, f"{files.url}: {error}") from error
    return _present(files, cache)


def user_cache() -> Path:
    """Folder for downloads, after the XDG base directory specification (which ignores relative paths)."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "edgefl"


def read(path: Path, md5: str) -> bytes:
    """Uncompressed, verified content of a plain or `.gz` file.

    The md5 is taken on every load: 0.07 s for the 55 MB of Fashion-MNIST, a fifth of unpacking them.

    Raises:
        EdgeflError: unreadable, damaged, or the content of another data set.
    """
    try:
        content = path.read_bytes()
        return _verified(gzip.decompress(content) if path.suffix == ".gz" else content, md5)
    except UNREADABLE as error:
        raise EdgeflError(f"{path}: {error}; delete or move the file and install it anew") from error


def parse_idx(content: bytes, place: str) -> np.ndarray:
    """Array of unsigned bytes in IDX format: [d1, d2, ...] uint8, writable.

    The format: two zero bytes, type code, number of dimensions, the dimensions as big-endian uint32, then
    the values, last dimension fastest. Other type codes than unsigned bytes are left out.

    Raises:
        EdgeflError: not exactly such a file; `place` names it.
    """
    if len(content) < 4 or content[:2] != b"\0\0":
        raise EdgeflError(f"{place}: not an IDX file: it must begin with two zero bytes")
    code, dimensions = content[2], content[3]
    if code != IDX_UINT8:
        raise EdgeflError(f"{place}: IDX type code 0x{code:02x}, expected 0x{IDX_UINT8:02x} (unsigned bytes)")
    start = 4 + 4 * dimensions
    if dimensions == 0 or len(content) < start:
        raise EdgeflError(f"{place}: IDX header of {dimensions} dimensions is cut off or empty")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", count=dimensions, offset=4))
    if len(content) - start != prod(shape):
        raise EdgeflError(f"{place}: {len(content) - start} bytes of data, but IDX dimensions {shape}")
    # a copy, because PyTorch warns of arrays that it must not write to
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


def read_idx_split(files: FileSet, paths: Mapping[str, Path], images: str, labels: str) -> Split:
    """Samples from a pair of IDX files, as all of the MNIST family are stored.

    Raises:
        EdgeflError: a file is damaged, or the two do not belong together.
    """
    x = parse_idx(read(paths[images], files.md5[images]), str(paths[images]))
    y = parse_idx(read(paths[labels], files.md5[labels]), str(paths[labels]))
    if y.ndim != 1 or x.ndim < 2 or len(x) != len(y):
        raise EdgeflError(f"{paths[images]}: shape {x.shape} does not fit the labels' shape {y.shape}")
    return Split(x, y.astype(np.int64))


def _places(files: FileSet, root: Path | None) -> list[tuple[str, Path]]:
    """(kind of place, folder) in search order."""
    if root is not None:
        return _below("root", root.expanduser(), files)
    places = []
    data = os.environ.get("EDGEFL_DATA")
    if data:
        places += _below("EDGEFL_DATA", Path(data).expanduser(), files)
    places.append(("user cache", user_cache() / files.folders[0]))
    if files.system is not None:
        places.append(("system", files.system))
    return places


def _below(kind: str, root: Path, files: FileSet) -> list[tuple[str, Path]]:
    return [(kind, root / folder) for folder in files.folders] + [(kind, root)]


def _present(files: FileSet, folder: Path) -> dict[str, Path]:
    """The files that a folder holds; a plain one goes before a packed one, it reads faster."""
    present: dict[str, Path] = {}
    for name in files.md5:
        for path in (folder / name, folder / f"{name}.gz"):
            # os.path and not Path: a folder without access counts as empty instead of ending the search
            if os.path.isfile(path):
                present.setdefault(name, path)
    return present


def _first_complete(files: FileSet, places: list[tuple[str, Path]]) -> dict[str, Path] | None:
    for _, folder in places:
        present = _present(files, folder)
        if len(present) == len(files.md5):
            return present
    return None


def _missing(files: FileSet, places: list[tuple[str, Path]], root: Path | None, download: str) -> EdgeflError:
    lines = [f"no complete {files.name} found; looked in"]
    if root is None and not os.environ.get("EDGEFL_DATA"):
        lines.append("  EDGEFL_DATA: not set")
    for kind, folder in places:
        lacks = ", ".join(sorted(files.md5.keys() - _present(files, folder).keys()))
        lines.append(
            f"  {kind} {folder}: " + (f"lacks {lacks}" if os.path.isdir(folder) else "no readable folder")
        )
    if root is None:
        lines.append(f"  download: {download}")
    layouts = ", ".join(f"{folder}/" for folder in files.folders)
    lines.append(
        f"install it with `{files.remedy}`, or set EDGEFL_DATA to a folder that holds {layouts} or the files"
        + ("; without `root` all places are searched" if root is not None else "")
    )
    return EdgeflError("\n".join(lines))


def _download(files: FileSet, url: str, folder: Path) -> None:
    """Fetch what the folder lacks; a file appears under its name only once it is whole and verified."""
    present = _present(files, folder)
    for name in [name for name in files.md5 if name not in present]:
        log.warning("%s is not on this machine: downloading %s%s.gz", files.name, url, name)
        with urllib.request.urlopen(f"{url}{name}.gz", timeout=TIMEOUT_S) as response:
            packed = response.read()
        try:
            _verified(gzip.decompress(packed), files.md5[name])
        except UNREADABLE as error:
            raise OSError(f"{name}.gz arrived damaged: {error}") from error
        folder.mkdir(parents=True, exist_ok=True)
        # a random name keeps runs that start together, perhaps on several machines, apart
        part = folder / f".{name}.{uuid4().hex}.part"
        try:
            part.write_bytes(packed)
            part.replace(folder / f"{name}.gz")
        finally:
            part.unlink(missing_ok=True)


def _verified(content: bytes, md5: str) -> bytes:
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != md5:
        raise ValueError(
            f"uncompressed md5 is {found}, expected {md5}: damaged or of another data set"
            " (MNIST and Fashion-MNIST use the same file names)"
        )
    return content
