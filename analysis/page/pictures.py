"""Check the file of a picture before it is written."""

from pathlib import Path

# bytes with which a file of this ending begins; an SVG may begin with blanks
BEGINNINGS = {
    ".png": (b"\x89PNG\r\n",),
    ".pdf": (b"%PDF",),
    ".svg": (b"<?xml", b"<svg", b"<!DOCTYPE svg"),
    ".gif": (b"GIF8",),
    ".webp": (b"RIFF",),
}
DRAWN = (".png", ".pdf", ".svg")  # always drawn by Matplotlib


def picture_to_write(out: str | Path, option: str) -> Path:
    """Return the path of a picture to write; refuse an existing file that edgefl has not drawn.

    Pictures that Matplotlib draws name it; of films, only the kind is checked.

    Args:
        out: file whose ending is a key of `BEGINNINGS`.
        option: option of the command line that names the file, for the message.

    Raises:
        ValueError: the file exists and is not empty, and is of another kind or by another program; or it cannot be
            read.
    """
    picture = Path(out)
    try:
        content = picture.read_bytes() if picture.is_file() else b""
    except OSError as error:
        raise ValueError(f"cannot read {picture} ({error.strerror}): choose another {option}") from error
    kind = picture.suffix[1:].upper()
    if content and not content.lstrip().startswith(BEGINNINGS[picture.suffix]):
        raise ValueError(f"{picture} exists and is no {kind}: choose another {option}, or delete the file")
    if content and picture.suffix in DRAWN and b"matplotlib" not in content.lower():
        raise ValueError(
            f"{picture} exists and is not a picture of edgefl: choose another {option}, or delete the file"
        )
    return picture
