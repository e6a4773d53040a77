"""Damage a run's files as a disk, a person or another program might."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import yaml

ODD: tuple[Any, ...] = (None, 3, -1.5, "x", "", [], [1, 2], {}, {"a": 1}, True)
CELLS = ('"', "x", "", "nan", "1e999", "-1", "1,2", "\u00e4")
# files that the tool damages more often than others
OFTEN = ("run.json", "rounds.csv", "1.json", "scenario.yaml", "journal.jsonl")
Damage = Callable[[Path, Random], None]


def damage(folder: Path, rng: Random) -> str:
    """Damage one file in a folder; return the damage and the file."""
    files = sorted(file for file in folder.rglob("*") if _usable(file))
    often = [file for file in files if file.name in OFTEN]
    file = rng.choice(often if often and rng.random() < 0.7 else files)
    kinds: list[Damage] = [_cut, _emptied, _garbage, _swapped, _folder, _endless, _gone, _locked]
    own = {
        ".json": [_key_lost, _key_odd, _odd],
        ".yaml": [_yaml_odd, _odd],
        ".csv": [_cell, _row_short, _column],
    }
    kind = rng.choice([*kinds, *(own.get(file.suffix, []) * 3)])
    kind(file, rng)
    return f"{file.relative_to(folder.parent)}: {kind.__name__.removeprefix('_')}"


def _usable(file: Path) -> bool:
    """Return whether a file can still be damaged: earlier damage may have removed its permissions."""
    return file.is_file() and not file.is_symlink() and os.access(file, os.R_OK | os.W_OK)


def _cut(file: Path, rng: Random) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: rng.randrange(len(content) + 1)])


def _emptied(file: Path, rng: Random) -> None:
    file.write_bytes(b"")


def _garbage(file: Path, rng: Random) -> None:
    content = bytearray(file.read_bytes() or b" ")
    begin = rng.randrange(len(content))
    content[begin : begin + 40] = rng.randbytes(40)
    file.write_bytes(content)


def _swapped(file: Path, rng: Random) -> None:
    other = rng.choice(sorted(one for one in file.parent.iterdir() if _usable(one)))
    mine, theirs = file.read_bytes(), other.read_bytes()
    file.write_bytes(theirs)
    other.write_bytes(mine)


def _folder(file: Path, rng: Random) -> None:
    file.unlink()
    file.mkdir()


def _endless(file: Path, rng: Random) -> None:
    """Replace a file by a link to itself, which even root cannot read."""
    file.unlink()
    file.symlink_to(file.name)


def _gone(file: Path, rng: Random) -> None:
    file.unlink()


def _locked(file: Path, rng: Random) -> None:
    file.chmod(0)


def _odd(file: Path, rng: Random) -> None:
    file.write_text(json.dumps(rng.choice(ODD)))


def _places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = list(value.items()) if isinstance(value, dict) else []
    return [(*above, key) for key, _ in items] + [
        place for key, held in items for place in _places(held, (*above, key))
    ]


def _changed(document: Any, rng: Random, *, lost: bool) -> Any:
    places = _places(document)
    if not places:
        return rng.choice(ODD)
    *above, key = rng.choice(places)
    at = document
    for name in above:
        at = at[name]
    if lost:
        del at[key]
    else:
        at[key] = rng.choice(ODD)
    return document


def _key_lost(file: Path, rng: Random) -> None:
    file.write_text(json.dumps(_changed(_json(file), rng, lost=True)))


def _key_odd(file: Path, rng: Random) -> None:
    file.write_text(json.dumps(_changed(_json(file), rng, lost=False)))


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text())
    except ValueError:  # damaged already
        return None


def _yaml_odd(file: Path, rng: Random) -> None:
    try:
        document = yaml.safe_load(file.read_text())
    except (ValueError, yaml.YAMLError):
        document = None
    file.write_text(yaml.safe_dump(_changed(document, rng, lost=rng.random() < 0.5)))


def _rows(file: Path) -> list[list[str]]:
    return [line.split(",") for line in file.read_text(errors="replace").splitlines()] or [[""]]


def _write(file: Path, rows: list[list[str]]) -> None:
    file.write_text("".join(",".join(row) + "\n" for row in rows))


def _cell(file: Path, rng: Random) -> None:
    rows = _rows(file)
    row = rng.choice(rows)
    row[rng.randrange(len(row))] = rng.choice(CELLS)
    _write(file, rows)


def _row_short(file: Path, rng: Random) -> None:
    rows = _rows(file)
    del rng.choice(rows)[-1:]
    _write(file, rows)


def _column(file: Path, rng: Random) -> None:
    rows = _rows(file)
    at = rng.randrange(len(rows[0]))
    for row in rows:
        del row[at : at + 1]
    _write(file, rows)


def damage_columns(run: Path) -> Iterator[str]:
    """Damage each column of a run's tables in turn; yield the damage, and then restore the table."""
    for file in sorted(run.glob("*.csv")):
        whole = _rows(file)
        for at, name in enumerate(whole[0]):
            _write(file, [row[:at] + row[at + 1 :] for row in whole])
            yield f"{file.name}: no column {name}"
            for cell in ("word", "", "inf"):
                rows = [list(row) for row in whole]
                rows[len(rows) // 2][at] = cell
                _write(file, rows)
                yield f"{file.name}: {cell or 'nothing'} in the column {name}"
        _write(file, whole)


def restore_rights(folder: Path) -> None:
    """Restore the permissions of a damaged folder, so that it can be deleted."""
    for file in folder.rglob("*"):
        if not file.is_symlink():
            file.chmod(0o755)
    shutil.rmtree(folder)
