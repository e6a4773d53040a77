"""Check that a file may be written: no file of another program, or of the user, is replaced."""

import csv
from collections.abc import Collection
from pathlib import Path

# bytes with which a file of this ending begins; an SVG may begin with blanks
BEGINNINGS = {
    ".png": (b"\x89PNG\r\n",),
    ".pdf": (b"%PDF",),
    ".svg": (b"<?xml", b"<svg", b"<!DOCTYPE svg"),
    ".gif": (b"GIF8",),
    ".webp": (b"RIFF",),
}
WRITTEN_BY = "<!-- written by edgefl -->"  # last line of a Markdown page, which readers do not see
DRAWN_BY = b"drawn by edgefl"  # in pictures and films; Matplotlib's own signature is also in a user's figures
# what a file of edgefl is, and signs of such a file
SIGNS: dict[str, tuple[str, tuple[bytes, ...]]] = {
    **dict.fromkeys((".html", ".htm"), ("an edgefl report", (b" \xc2\xb7 edgefl report</title>",))),
    **dict.fromkeys((".png", ".pdf", ".svg", ".gif", ".webp"), ("a picture of edgefl", (DRAWN_BY,))),
    ".md": ("a page of edgefl", (WRITTEN_BY.encode(), b"`edgefl papers --")),
    ".tex": ("a table of edgefl", (b"; needs \\usepackage{booktabs}",)),
}
# columns that tables of other programs may have, too
COMMON = {"variant", "series", "seed", "session", "round", "cell", "device", "class", "time_s"}


def signed(file: Path) -> dict[str, str | None]:
    """Return the metadata with which Matplotlib signs a picture and leaves out the time; the ending says the kind."""
    written = DRAWN_BY.decode()
    if file.suffix.lower() == ".pdf":
        return {"Creator": written, "CreationDate": None}
    return {"Creator": written, "Date": None} if file.suffix.lower() == ".svg" else {"Software": written}


def file_to_write(out: str | Path, option: str = "--out", *, columns: Collection[str] = ()) -> Path:
    """Return the path of a file to write; refuse an existing file that edgefl has not written.

    Args:
        out: the file; its ending says its kind.
        option: option of the command line that names the file or its folder, for the message.
        columns: columns of a table to write as CSV. An existing table without such a column, other than `COMMON`, is
            not of edgefl.

    Raises:
        ValueError: the file exists and is not empty, and is of another kind or by another program; or it cannot be
            read.
    """
    file = Path(out)
    kind = file.suffix.lower()
    try:
        content = file.read_bytes() if file.is_file() else b""
    except OSError as error:
        raise ValueError(f"cannot read {file} ({error.strerror}): choose another {option}") from error
    what, signs = SIGNS.get(kind, ("", ()))
    if kind == ".csv" and columns:
        what, own = "a table of edgefl", _shares(content, columns)
    else:
        own = not signs or any(sign in content for sign in signs)
    if not content.lstrip().startswith(BEGINNINGS.get(kind, (b"",))):
        what, own = f"no {kind[1:].upper()}", False
    elif not own:
        what = f"not {what}"
    if content and not own:
        raise ValueError(f"{file} exists and is {what}: choose another {option}, or delete the file")
    return file


def _shares(content: bytes, columns: Collection[str]) -> bool:
    """Return whether the heading of a table has one of the columns, other than `COMMON`."""
    first, _, _ = content.partition(b"\n")
    heading = next(csv.reader([first.decode("utf-8-sig", errors="replace").strip()]), [])
    return bool({*heading} & ({*columns} - COMMON))
