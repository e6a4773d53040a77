"""Write runs as TensorBoard event files, without TensorBoard's package; view: `tensorboard --logdir tensorboard`.

A file is a sequence of records: length (8 bytes), checksum, Event as a protocol buffer, checksum. Sources:
tensorflow/core/lib/io/record_writer.h and core/util/event.proto; CRC-32C as in RFC 3720, B.4.
"""

import shlex
import struct
from collections.abc import Iterator
from pathlib import Path

from edgefl.analysis.export.records import Exported, RunRecord, StudyRecord

POLYNOMIAL, MASK = 0x82F63B78, 0xA282EAD8
FILE = "events.out.tfevents.0.edgefl"


def write(study: StudyRecord, out: Path) -> Exported:
    """Write each run to its own folder; curves are plotted over simulated time."""
    folder, new = out / "tensorboard", 0
    for record in study.runs:
        file = folder / record.key / FILE
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name("draft")  # TensorBoard ignores a file with this name
        draft.write_bytes(b"".join(map(_framed, _events(record))))
        draft.replace(file)
        new += 1
    return Exported(study, folder, new, 0, f"tensorboard --logdir {shlex.quote(str(folder))}")


def _events(record: RunRecord) -> Iterator[bytes]:
    """Yield a run's TensorBoard events: format version, rounds, totals."""
    yield _time(0.0) + _text(3, b"brain.Event:2")
    for step, (end_s, values) in enumerate(record.rounds):
        yield _event(end_s, step, values)
    last_s = record.rounds[-1][0] if record.rounds else 0.0
    yield _event(last_s, 0, record.summary)


def _framed(data: bytes) -> bytes:
    """Frame an event as a TensorBoard record: length, checksum, event, checksum."""
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def crc32c(data: bytes) -> int:
    """Compute the CRC-32C of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    rotated = ((crc >> 15) | (crc << 17)) & 0xFFFFFFFF
    return struct.pack("<I", (rotated + MASK) & 0xFFFFFFFF)


def _event(time_s: float, step: int, values: dict[str, float]) -> bytes:
    summary = b"".join(
        _text(1, _text(1, name.encode()) + bytes([0x15]) + struct.pack("<f", value))
        for name, value in values.items()
    )
    return _time(time_s) + bytes([0x10]) + _number(step) + _text(5, summary)


def _time(time_s: float) -> bytes:
    return bytes([0x09]) + struct.pack("<d", time_s)


def _text(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _number(len(content)) + content


def _number(value: int) -> bytes:
    """Encode an integer as a varint: 7 bits per byte, least significant first."""
    written = []
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
