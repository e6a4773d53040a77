"""Files of data sets in small: folders, zip and tar archives of given bytes."""

import io
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np

TAB = b"Category\tText\nd\tstring\nclass\t\n"  # above the table of Reuters R8


def idx(array: np.ndarray) -> bytes:
    """The array in IDX format, written from the format's description and not with the code under test."""
    header = struct.pack(">HBB", 0, 0x08, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def put(folder: Path, content: dict[str, bytes]) -> Path:
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def below(top: str, content: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{top}/{name}": data for name, data in content.items()}


def zipped(content: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in content.items():
            packed.writestr(name, data)
    return file.getvalue()


def tarred(content: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as packed:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
    return file.getvalue()
