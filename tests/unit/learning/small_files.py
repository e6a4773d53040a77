"""Write small data sets without the code under test: archives, IDX, .mat, LEAF's and CIFAR's files, and the Hub."""

import io
import json
import struct
import tarfile
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import savemat

SEED = 5
TAB = b"Category\tText\nd\tstring\nclass\t\n"  # header of the table of Reuters R8


def idx(array: np.ndarray) -> bytes:
    """Return an array in IDX format, written from the format's description and not with the code under test."""
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


def random_images(*shape: int) -> np.ndarray:
    return np.random.default_rng(SEED).integers(0, 256, shape, dtype=np.uint8)


def mat(x: np.ndarray, y: np.ndarray) -> bytes:
    file = io.BytesIO()
    savemat(file, {"X": x.transpose(2, 3, 1, 0), "y": y[:, None].astype(np.uint8)}, do_compression=True)
    return file.getvalue()


def leaf(users: dict[str, tuple[np.ndarray, np.ndarray]], scale: float = 255) -> bytes:
    return json.dumps(
        {
            "users": list(users),
            "num_samples": [len(y) for _, y in users.values()],
            "user_data": {
                user: {"x": (x.reshape(len(x), -1) / scale).tolist(), "y": y.tolist()}
                for user, (x, y) in users.items()
            },
        }
    ).encode()


class Hub(types.ModuleType):
    """A stand-in for the package `datasets`: each split of the data set `pets` is a mapping of columns."""

    DownloadConfig = dict

    def __init__(self, columns_of: Callable[[str], dict[str, list[Any]]]) -> None:
        super().__init__("datasets")
        self._columns_of = columns_of

    def load_dataset(self, path: str, config: str | None, *, split: str, **options: Any) -> "Columns":
        if path != "pets":
            raise ConnectionError("no such data set")
        return Columns(self._columns_of(split))


class Columns:
    """A split of a data set from the Hub, with named labels."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns, self.column_names = columns, list(columns)
        self.features = {"label": types.SimpleNamespace(names=["cat", "dog"])}

    def __len__(self) -> int:
        return len(self.columns["label"])

    def select(self, rows: Any) -> "Columns":
        return Columns({name: [column[row] for row in rows] for name, column in self.columns.items()})

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self.columns[key]
        return {name: column[key] for name, column in self.columns.items()}


# CIFAR's files were pickled by Python 2, in protocol 2 with byte strings, which Python 3 cannot write


def py2_string(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<i", len(text)) + text


def py2_int(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def py2_list(items: list[bytes]) -> bytes:
    return b"](" + b"".join(items) + b"e"


def py2_array(array: np.ndarray) -> bytes:
    """Pickle an array as NumPy 1 does: numpy.core.multiarray._reconstruct(ndarray, (0,), 'b'), then its state."""
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + py2_string(b"b") + b"tR"
    dtype = b"cnumpy\ndtype\n(" + py2_string(b"u1") + b"K\x00K\x01tR"
    dtype += b"(K\x03" + py2_string(b"|") + b"NNN" + py2_int(-1) + py2_int(-1) + b"K\x00tb"
    shape = b"(" + b"".join(map(py2_int, array.shape)) + b"t"
    return made + b"(K\x01" + shape + dtype + b"\x89" + py2_string(array.tobytes()) + b"tb"


def py2_dict(items: dict[bytes, bytes]) -> bytes:
    pairs = b"".join(py2_string(key) + value for key, value in items.items())
    return b"\x80\x02}(" + pairs + b"u."


def cifar_batch(x: np.ndarray, **labels: np.ndarray) -> bytes:
    return py2_dict(
        {
            b"data": py2_array(x.reshape(len(x), -1)),
            b"batch_label": py2_string(b"a batch"),
            b"filenames": py2_list([py2_string(b"x.png")] * len(x)),
            **{key.encode(): py2_list([py2_int(int(y)) for y in ys]) for key, ys in labels.items()},
        }
    )


def cifar_meta(key: bytes, names: list[str]) -> bytes:
    return py2_dict({b"num_vis": py2_int(3072), key: py2_list([py2_string(n.encode()) for n in names])})
