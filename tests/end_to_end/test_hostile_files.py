"""Test that small hostile files, read with a gigabyte of memory, are each refused in one message."""

import gzip
import os
import struct
import subprocess
import sys
import textwrap
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

GIGABYTE = 1_000_000_000
LONGEST_S = 5.0  # highest processor time allowed, including imports
MILLION = b" " * 1_000_000
READ = """
    import resource, sys
    from pathlib import Path
    import numpy as np
    from edgefl.errors import EdgeflError
    {imports}
    resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
    resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
    path = Path(sys.argv[1])
    try:
        {call}
    except EdgeflError as error:
        print(error)
"""
TRACE = ("from edgefl.mobility._traces import Wanted, read", "read(path, Wanted(keep=1))")
AREA = (
    "from edgefl.places.geojson_files import POLYGONS, GeoJson, shapes",
    "shapes(GeoJson(path=path), POLYGONS, '')",
)
BOUNDARY = ("from edgefl.places.sumo_files import boundary", "boundary(path)")
STREETS = ("from edgefl.places.sumo_files import edges", "edges(path)")
LOADS = ("from edgefl.engine.backgrounds.trace import _read", "_read(path, (path, 0, 0))")
NPZ = ("from edgefl.learning.datasets.npz import Npz", "Npz(path=path).load()")
IMAGES = (
    "from edgefl.learning.datasets.image_folder import ImageFolder",
    "ImageFolder(path=path.parent).load()",
)


def packed(begin: bytes, millions: int = 1_500, filling: bytes = MILLION) -> Callable[[Path], None]:
    """Return a function that writes a gzip file with some text followed by a long filling, by default spaces."""

    def write(path: Path) -> None:
        path.write_bytes(gzip.compress(begin) + millions * gzip.compress(filling))

    return write


def arrays(path: Path) -> None:
    """Write 1.5 GB of zeros for ten labels."""
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1500000000), }"
    header += b" " * (53 - len(header) % 64 + 64) + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name in ("x_train", "x_test"):
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                entry.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
                for _ in range(1_500 if name == "x_train" else 1):
                    entry.write(bytes(1_000_000))
        for name in ("y_train", "y_test"):
            with file.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, np.arange(10))


def image(path: Path) -> None:
    """Write a PNG of 13,000 x 9,000 black pixels for each of two classes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    deflate = zlib.compressobj(1)
    black = b"".join(deflate.compress(bytes(39_001)) for _ in range(9_000)) + deflate.flush()
    head = struct.pack(">IIBBBBB", 13_000, 9_000, 8, 2, 0, 0, 0)
    for name in ("cat", "dog"):
        folder = path.parent / name
        folder.mkdir()
        png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", black) + chunk(b"IEND", b"")
        (folder / "1.png").write_bytes(png)


def words(path: Path) -> None:
    """Write a Parquet trace of 65,536 rows, whose only device has a name of a million letters."""
    import pyarrow
    from pyarrow import parquet

    count = 65_536
    numbers = np.zeros(count)
    names = pyarrow.DictionaryArray.from_arrays(np.zeros(count, np.int32), pyarrow.array(["x" * 1_000_000]))
    table = pyarrow.table({"t": np.arange(float(count)), "id": names, "x": numbers, "y": numbers})
    parquet.write_table(table, path, compression="zstd")


def one_word(path: Path) -> None:
    """Write a Parquet trace of one row, whose device has a name of 260 million letters."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({"t": [0.0], "id": ["x" * 260_000_000], "x": [0.0], "y": [0.0]})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)


@pytest.mark.parametrize(
    ("name", "write", "reader", "message"),
    [
        ("a.geojson.gz", packed(b"{"), AREA, "holds more than 100 MB"),
        ("b.geojson.gz", packed(b"[", 60, b"[]," * 300_000), AREA, "holds more than 8,000,000 values"),
        ("a.net.xml.gz", packed(b"<net>"), BOUNDARY, "more than 100 MB, unpacked; cut out a smaller network"),
        ("c.net.xml.gz", packed(b"<net>"), STREETS, "more than 100 MB, unpacked; cut out a smaller network"),
        ("b.net.xml.gz", packed(b"<net a='"), STREETS, "bytes without an end"),
        ("a.xml.gz", packed(b"<fcd-export><!--"), TRACE, "bytes without an end"),
        ("b.xml.gz", packed(b"<fcd-export>", 1, b"<a  >" * 200_000), TRACE, "<a> is nested in 100 others"),
        ("a.csv.gz", packed(b""), TRACE, "line 1 is longer than 10,000,000 characters"),
        ("b.csv.gz", packed(b"t,id,x,y\n0,"), TRACE, "line 2 is longer than 10,000,000 characters"),
        ("a.parquet", words, TRACE, "a text is longer than 1000 characters"),
        ("b.parquet", one_word, TRACE, "a row group holds 260 MB"),
        ("c.parquet", words, LOADS, "has the column"),
        ("a.npz", arrays, NPZ, "x_train is uint8 [1, 1500000000], but y_train has 10 labels"),
        ("any", image, IMAGES, "Image size (117000000 pixels) exceeds limit"),
    ],
)
def test_small_files_take_no_gigabytes(
    tmp_path: Path, name: str, write: Callable[[Path], None], reader: tuple[str, str], message: str
) -> None:
    path = tmp_path / name
    write(path)
    size = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert size < 20_000_000
    imports, call = reader
    program = textwrap.dedent(READ).format(
        imports=imports, call=call, limit=GIGABYTE, seconds=round(LONGEST_S)
    )
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, env=os.environ | threads
    )
    assert done.returncode == 0, done.stderr
    assert message in done.stdout
    assert done.stdout.count("\n") == 1
