"""Download a file, and verify its content before renaming it to its final name."""

import gzip
import hashlib
import logging
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from edgefl.learning.datasets._archives import UNREADABLE

TIMEOUT_S = 10.0  # wall-clock seconds for the connection, and for each read of a download
CHUNK = 1 << 20  # bytes read at a time while downloading and verifying

log = logging.getLogger(__name__)


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
