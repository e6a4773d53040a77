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
HEAD = 512  # number of bytes in which a picture's beginning stands


def picture_to_write(out: str | Path, option: str) -> Path:
    """Return the path of a picture to write; refuse an existing file that holds no picture of the name's kind.

    Args:
        out: file whose ending is a key of `BEGINNINGS`.
        option: option of the command line that names the file, for the message.

    Raises:
        ValueError: the file exists and is not empty, and its content is of another kind; or it cannot be read.
    """
    picture = Path(out)
    try:
        head = b""
        if picture.is_file():
            with picture.open("rb") as file:
                head = file.read(HEAD).lstrip()
    except OSError as error:
        raise ValueError(f"cannot read {picture} ({error.strerror}): choose another {option}") from error
    if head and not head.startswith(BEGINNINGS[picture.suffix]):
        kind = picture.suffix[1:].upper()
        raise ValueError(f"{picture} exists and is no {kind}: choose another {option}, or delete the file")
    return picture
