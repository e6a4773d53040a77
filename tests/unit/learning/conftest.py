"""Hide installed data sets from tests, and replace them with small files."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from edgefl.learning.datasets._files import FileDataset

Expect = Callable[[type[FileDataset], dict[str, bytes]], None]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up an empty home folder without data sets."""
    for name in ("EDGEFL_DATA", "EDGEFL_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def expect_data(monkeypatch: pytest.MonkeyPatch) -> Expect:
    """Return a function that makes a data set expect given files, by replacing its MD5 sums."""

    def expect(dataset: type[FileDataset], content: dict[str, bytes]) -> None:
        md5 = {name: hashlib.md5(data).hexdigest() for name, data in content.items()}
        monkeypatch.setattr(dataset, "FILES", replace(dataset.FILES, md5=md5))

    return expect
