"""Finding, verifying and reading the files of a data set.

Search order: an explicit root and nothing else; without one, the environment variable EDGEFL_DATA, the
user cache ($XDG_CACHE_HOME/edgefl or ~/.cache/edgefl), the folder of the distribution's package, an installed
Python package (looked up by name, never imported), and at last a download into the user cache, which
EDGEFL_OFFLINE=1 forbids. In each place the files may lie plain, as `.gz`, or in the archive in which they are
published. Wherever a file comes from, the md5 of its uncompressed bytes decides whether it is the right one:
packagers rewrite gzip headers.
"""

import gzip
import hashlib
import logging
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from math import prod
from pathlib import Path
from uuid import uuid4

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Split
from edgefl.learning.datasets._archives import UNREADABLE, archive_of, contents

TIMEOUT_S = 10.0  # wall clock, for the connection and for each read of a download
CHUNK = 1 << 20  # bytes read at a time while downloading and verifying
IDX_UINT8 = 0x08  # type code of unsigned bytes, the only one that image sets use

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Archive:
    """The archive (.zip, .whl, .tgz, .tar.gz) in which the files of a data set are published.

    name: file name, in which `*` stands for anything.
    inside: folder of the files inside.
    url: its address; None if it comes by a package manager.
    md5: of the archive itself; checked after a download.
    """

    name: str
    inside: str
    url: str | None = None
    md5: str | None = None


@dataclass(frozen=True)
class Installed:
    """A Python package that carries the files.

    name: as pip writes it.
    folder: folder of the files, from the folder in which packages are installed.
    """

    name: str
    folder: str


@dataclass(frozen=True)
class FileSet:
    """The files of one data set, and the places that offer them.

    name: as people write it.
    md5: file name -> md5 of the uncompressed bytes, None where no official one is known; each file may lie
        there plain or as `<file name>.gz`. A name with `*` stands for one or more files.
    folders: where the files may lie below a data root, besides the root itself; the first one is the
        folder in the user cache.
    remedy: how to install the data set, for error messages; `{cache}` becomes the folder in the user cache.
    system: folder that a package of the distribution installs; None if there is no such package.
    archive: None if the files are not published in one.
    package: None if no Python package carries them.
    url: address in front of each file's name; None if the files cannot be fetched one by one.
    packed: the address serves `<file name>.gz`.
    """

    name: str
    md5: Mapping[str, str | None]
    folders: tuple[str, ...]
    remedy: str
    system: Path | None = None
    archive: Archive | None = None
    package: Installed | None = None
    url: str | None = None
    packed: bool = True


def locate(files: FileSet, root: Path | None = None) -> dict[str, Path]:
    """Locate the files: return file name -> path in the first place that holds all; download nothing.

    Raises:
        EdgeflError: no place holds them; names every place and what it lacks.
    """
    places = _places(files, root)
    paths = _first_complete(files, places)
    if not paths:
        raise _missing(files, places, root, "not tried, this only looks")
    return paths


def obtain(files: FileSet, root: Path | None = None) -> dict[str, Path]:
    """Locate the files as `locate` does, and as a last resort download them into the user cache.

    With an explicit root nothing is downloaded.

    Raises:
        EdgeflError: no place holds them, and the download is forbidden, impossible or failed.
    """
    places = _places(files, root)
    paths = _first_complete(files, places)
    if paths:
        return paths
    if os.environ.get("EDGEFL_OFFLINE", "0") not in ("", "0"):
        raise _missing(files, places, root, "forbidden by EDGEFL_OFFLINE")
    served_in = files.archive.url if files.archive else None
    address = served_in or files.url
    if root is not None or address is None:
        raise _missing(files, places, root, "not offered")
    from http.client import HTTPException

    cache = user_cache() / files.folders[0]
    try:
        if served_in:
            assert files.archive is not None
            _fetch(files, served_in, cache / files.archive.name, files.archive.md5)
        else:
            _download(files, address, cache)
    except (OSError, HTTPException) as error:
        raise _missing(files, places, root, f"{address}: {error}") from error
    return _present(files, cache)


def user_cache() -> Path:
    """Return the folder for downloads, after the XDG base directory specification (it ignores relative paths)."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "edgefl"


def read(path: Path, md5: str | None) -> bytes:
    """Read the uncompressed, verified content of a plain or `.gz` file, or of one inside an archive.

    The md5 is taken on every load: 0.07 s for the 55 MB of Fashion-MNIST, a fifth of unpacking them.

    Raises:
        EdgeflError: unreadable, damaged, or the content of another data set.
    """
    return read_all({path: md5})[path]


def read_all(md5: Mapping[Path, str | None]) -> dict[Path, bytes]:
    """Read many files as `read` does, with one pass through each archive; return path -> content."""
    verified: dict[Path, bytes] = {}
    try:
        for path, content in contents(md5):
            verified[path] = _verified(content, md5[path], path)
    except UNREADABLE as error:
        if isinstance(error, EdgeflError):
            raise
        path = next(path for path in md5 if path not in verified)
        raise _damaged(archive_of(path) or path, str(error)) from error
    return verified


def read_set(files: FileSet, paths: Mapping[str, Path]) -> dict[str, bytes]:
    """Read all files of a data set; return file name -> uncompressed, verified content."""
    content = read_all({paths[name]: md5 for name, md5 in files.md5.items()})
    return {name: content[paths[name]] for name in files.md5}


def parse_idx(content: bytes, place: str) -> np.ndarray:
    """Parse an array of unsigned bytes in IDX format: [d1, d2, ...] uint8, writable.

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
    """Read samples from a pair of IDX files, the form of all data sets of the MNIST family.

    Raises:
        EdgeflError: a file is damaged, or the two do not belong together.
    """
    content = read_all({paths[name]: files.md5[name] for name in (images, labels)})
    x, y = (parse_idx(content[paths[name]], str(paths[name])) for name in (images, labels))
    if y.ndim != 1 or x.ndim < 2 or len(x) != len(y):
        raise EdgeflError(f"{paths[images]}: shape {x.shape} does not fit the labels' shape {y.shape}")
    return Split(x, y.astype(np.int64))


def _places(files: FileSet, root: Path | None) -> list[tuple[str, Path]]:
    """List the places to search: (kind of place, folder), in order."""
    if root is not None:
        return _below("root", root.expanduser(), files)
    places = []
    data = os.environ.get("EDGEFL_DATA")
    if data:
        places += _below("EDGEFL_DATA", Path(data).expanduser(), files)
    places.append(("user cache", user_cache() / files.folders[0]))
    if files.system is not None:
        places.append(("system", files.system))
    if files.package is not None:
        places += _installed(files.package)
    return places


def _below(kind: str, root: Path, files: FileSet) -> list[tuple[str, Path]]:
    return [(kind, root / folder) for folder in files.folders] + [(kind, root)]


def _installed(package: Installed) -> list[tuple[str, Path]]:
    try:
        home = metadata.distribution(package.name).locate_file("")
    except metadata.PackageNotFoundError:
        return []
    return [(f"package {package.name}", Path(str(home)) / package.folder)]


def _present(files: FileSet, folder: Path) -> dict[str, Path]:
    """Find the files that a folder holds: name -> path, a plain file before a packed one, as it reads faster.

    An archive is assumed to hold all files: only reading looks inside.
    """
    present: dict[str, Path] = {}
    if not os.path.isdir(folder):
        return present
    for name in files.md5:
        for path in (folder / name, folder / f"{name}.gz"):
            # os.path and not Path: a folder without access counts as empty instead of ending the search
            if os.path.isfile(path) or ("*" in name and any(folder.glob(name))):
                present.setdefault(name, path)
    if files.archive and len(present) < len(files.md5) and os.access(folder, os.R_OK):
        for archive in filter(os.path.isfile, sorted(folder.glob(files.archive.name))):
            for name in files.md5:
                present.setdefault(name, archive / files.archive.inside / name)
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
    if files.package and root is None and not _installed(files.package):
        lines.append(f"  package {files.package.name}: not installed")
    layouts = ", ".join(f"{folder}/" for folder in files.folders)
    remedy = files.remedy.replace("{cache}", str(user_cache() / files.folders[0]))
    archive = f", {files.archive.name}" if files.archive else ""
    lines.append(
        f"install it with `{remedy}`, or set EDGEFL_DATA to a folder that holds {layouts}{archive} or the files"
        + ("; without `root` all places are searched" if root is not None else "")
    )
    return EdgeflError("\n".join(lines))


def _download(files: FileSet, url: str, folder: Path) -> None:
    """Download the files that the folder lacks."""
    present = _present(files, folder)
    for name in [name for name in files.md5 if name not in present]:
        served = f"{name}.gz" if files.packed else name
        _fetch(files, url + served, folder / served, files.md5[name], unpack=files.packed)


def _fetch(files: FileSet, address: str, path: Path, md5: str | None, unpack: bool = False) -> None:
    """Download one file; it appears under its name only once it is whole and verified.

    Args:
        md5: of the file, or of its uncompressed content if `unpack`.
    """
    import urllib.request  # with all of SSL, for which reading files need not wait

    log.warning("%s is not on this machine: downloading %s", files.name, address)
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    # a random name keeps runs that start together, perhaps on several machines, apart
    part = path.parent / f".{path.name}.{uuid4().hex}.part"
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as response, part.open("wb") as file:
            shutil.copyfileobj(response, file, CHUNK)
        try:
            if (digest := _md5(part, unpack)) != md5 and md5 is not None:
                raise ValueError(f"md5 is {digest}, expected {md5}")
        except UNREADABLE as error:
            raise OSError(f"{path.name} arrived damaged: {error}") from error
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        for folder in made:
            with suppress(OSError):  # another run has put something there
                folder.rmdir()
        raise


def _md5(path: Path, unpack: bool) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with gzip.open(path) if unpack else path.open("rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def _verified(content: bytes, md5: str | None, path: Path) -> bytes:
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 is not None and digest != md5:
        same = " (MNIST and Fashion-MNIST use the same file names)" if "-ubyte" in path.name else ""
        raise _damaged(
            path, f"uncompressed md5 is {digest}, expected {md5}: damaged or of another data set{same}"
        )
    return content


def _damaged(path: Path, reason: str) -> EdgeflError:
    return EdgeflError(f"{path}: {reason}; delete or move the file and install it anew")
