"""Functions in C are compiled once for a machine, and wherever the cache is of no use."""

import ctypes
import os
import shutil
from pathlib import Path

import pytest

from edgefl import EdgeflError
from edgefl.learning import compiling
from edgefl.learning.user_cache import user_cache

pytestmark = pytest.mark.skipif(compiling.compiler() is None, reason="there is no C compiler")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that notes what it is asked, and a cache of one's own."""
    notes, script = tmp_path / "asked", tmp_path / "noting-cc"
    script.write_text(f'#!/bin/sh\necho "$@" >> {notes}\nexec {shutil.which(compiling.compiler()[0])} "$@"\n')  # type: ignore[index]
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return notes


def compilations(notes: Path) -> int:
    return notes.read_text().count(" -o ")


def answer(folder: Path, number: int = 42) -> int:
    source = folder / "_answer.c"
    source.write_text(f"int answer(void) {{ return {number}; }}\n")
    return int(compiling.load(source).answer())


def test_what_is_compiled_is_kept(asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(tmp_path) == answer(tmp_path) == 42
    assert compilations(asked) == 1
    assert [path.suffix for path in (user_cache() / "compiled").iterdir()] == [".so"]
    assert answer(tmp_path, 43) == 43, "another source"
    assert compilations(asked) == 2
    monkeypatch.setenv("CFLAGS", "-O1")
    assert answer(tmp_path) == 42
    assert compilations(asked) == 3, "another option"


def test_another_processor_has_its_own(asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a home may be on the disks of several machines."""
    assert answer(tmp_path) == 42
    monkeypatch.setattr(compiling, "_processor", lambda: ["flags: another"])
    assert answer(tmp_path) == 42
    assert compilations(asked) == 2


def test_what_is_damaged_is_made_anew(asked: Path, tmp_path: Path) -> None:
    source = tmp_path / "_answer.c"
    source.write_text("int answer(void) { return 42; }\n")
    digest = compiling._digest(source, [os.environ["CC"], *compiling.OPTIONS])
    kept = user_cache() / "compiled" / f"answer-{digest}.so"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"half a")
    assert answer(tmp_path) == 42
    assert ctypes.CDLL(str(kept)).answer() == 42


def test_a_cache_that_cannot_be_written_is_done_without(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert answer(tmp_path) == answer(tmp_path) == 42
    assert compilations(asked) == 2


def test_a_compiler_that_fails_is_told_with_its_words(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong.c").write_text("int answer(void) { return forty_two; }\n")
    with pytest.raises(EdgeflError, match=r"(?s)noting-cc .*fails .*forty_two.*variable CC"):
        compiling.load(tmp_path / "wrong.c")
    assert not (user_cache() / "compiled").exists()
    monkeypatch.setenv("CC", "no-such-compiler")
    assert compiling.version() == ""
    with pytest.raises(EdgeflError, match=r"there is no C compiler .no-such-compiler."):
        compiling.load(tmp_path / "wrong.c")
