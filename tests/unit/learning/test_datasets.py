"""Test what data sets load, where they search for files, and errors about damaged or missing files."""

import gzip
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgefl.learning.datasets import Data, _files
from edgefl.learning.datasets._files import FileSet, fetch, locate, read_set
from edgefl.learning.datasets.digits import Digits
from edgefl.learning.datasets.fashion_mnist import FashionMnist
from edgefl.learning.user_cache import user_cache
from tests.refusals import refused_at
from tests.unit.learning import small_files
from tests.unit.learning.small_files import idx

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


SMALL_X = np.arange(3 * 2 * 2, dtype=np.uint8).reshape(3, 2, 2)
SMALL_Y = np.array([2, 0, 1], np.uint8)
CONTENT = {IMAGES: idx(SMALL_X), LABELS: idx(SMALL_Y)}


@pytest.fixture(scope="module")
def fashion() -> Data:
    return FashionMnist().load()


@pytest.fixture
def small(world: Path) -> FileSet:
    """Return a data set of three 2x2 images whose files do not exist yet."""
    return FileSet(
        name="Small",
        md5={name: hashlib.md5(content).hexdigest() for name, content in CONTENT.items()},
        folders=("small", "Small/raw"),
        remedy="apt-get install dataset-small",
        system=world / "system",
        url=(world / "served").as_uri() + "/",
    )


@pytest.fixture
def served(world: Path, small: FileSet) -> FileSet:
    """Return the data set, whose files can be downloaded."""
    put(world / "served")
    return small


def put(folder: Path, content: dict[str, bytes] = CONTENT, packed: bool = True) -> Path:
    if packed:
        content = {f"{name}.gz": gzip.compress(data) for name, data in content.items()}
    return small_files.put(folder, content)


def test_fashion_mnist_has_the_published_shape_and_balance(fashion: Data) -> None:
    for split, samples in ((fashion.train, 60_000), (fashion.test, 10_000)):
        assert split.x.shape == (samples, 28, 28)
        assert split.x.dtype == np.uint8
        assert split.y.dtype == np.int64
        assert split.x.flags.writeable, "PyTorch warns about read-only arrays"
        assert split.y.flags.writeable
        np.testing.assert_array_equal(np.bincount(split.y), np.full(10, samples // 10))
    assert fashion.num_classes == len(fashion.label_names) == 10


def test_fashion_mnist_moments_are_those_of_the_training_pixels(fashion: Data) -> None:
    counts = sum(np.bincount(part.ravel(), minlength=256) for part in np.array_split(fashion.train.x, 60))
    value = np.arange(256)
    mean = np.average(value, weights=counts)
    std = np.sqrt(np.average((value - mean) ** 2, weights=counts))
    half_unit = 0.5e-5  # the constants have five decimals
    float32 = 2**-24 * 100  # numbers up to 100 are rounded
    assert abs(fashion.mean - mean) < half_unit + float32
    assert abs(fashion.std - std) < half_unit + float32
    assert round(float(fashion.mean) / 255, 4) == 0.2860  # the published mean
    assert round(float(fashion.std) / 255, 4) == 0.3530
    assert fashion.mean.dtype == fashion.std.dtype == np.float32
    assert fashion.mean.shape == fashion.std.shape == ()


def test_fashion_mnist_is_checked_without_reading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "read_set", None)
    monkeypatch.setattr(_files, "_download", None)
    FashionMnist().check()


def test_digits_are_the_last_297_of_1797_apart() -> None:
    data = Digits().load()
    assert data.train.x.shape == (1500, 8, 8)
    assert data.test.x.shape == (297, 8, 8)
    x = np.concatenate([data.train.x, data.test.x])
    assert x.dtype == np.uint8
    assert (x.min(), x.max()) == (0, 16)
    assert set(data.test.y) == set(data.train.y) == set(range(10))
    assert data.train.y.dtype == data.test.y.dtype == np.int64
    labels = np.concatenate([data.train.y, data.test.y]).astype(np.uint8)
    digest = hashlib.md5(x.tobytes() + labels.tobytes()).hexdigest()
    assert digest == "7696c07daa6d85010f8268703ab8b067"  # MD5 of scikit-learn 1.9.1's digits, as uint8
    normalised = (data.train.x - data.mean) / data.std
    float32 = 2**-24 * normalised.size**0.5 * 10  # rounding errors of this check add up
    assert abs(normalised.mean(dtype=np.float64)) < float32
    assert abs(normalised.std(dtype=np.float64) - 1) < float32
    Digits().check()


def test_search_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: FileSet) -> None:
    """Folders are filled from the last to the first in the search order, and each new folder takes precedence."""
    monkeypatch.setenv("EDGEFL_DATA", str(tmp_path / "data"))
    in_order = [
        served.system,
        user_cache() / "small",
        tmp_path / "data",
        tmp_path / "data/Small/raw",
        tmp_path / "data/small",
    ]
    for folder in in_order:
        put(folder)
        assert locate(served)[IMAGES].parent == folder
        assert locate(served, download=True) == locate(served)
    assert locate(served, put(tmp_path / "mine"))[IMAGES].parent == tmp_path / "mine"


@pytest.mark.parametrize("folder", ["Small/raw", "small", "."])
@pytest.mark.parametrize("packed", [True, False])
def test_layouts_below_an_explicit_root(tmp_path: Path, small: FileSet, folder: str, packed: bool) -> None:
    put(tmp_path / "root" / folder, packed=packed)
    assert read_set(small, locate(small, tmp_path / "root")) == CONTENT


def test_plain_files_go_before_packed_ones(tmp_path: Path, small: FileSet) -> None:
    root = put(put(tmp_path / "root"), packed=False)
    assert locate(small, root)[IMAGES] == root / IMAGES


def test_an_explicit_root_never_falls_through(tmp_path: Path, served: FileSet) -> None:
    put(served.system)
    for download in (False, True):
        with refused_at("", "without `root` all places are searched"):
            locate(served, tmp_path / "empty", download=download)
    assert not user_cache().exists()


def test_incomplete_places_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: FileSet
) -> None:
    put(tmp_path / "data", {IMAGES: CONTENT[IMAGES]})
    monkeypatch.setenv("EDGEFL_DATA", str(tmp_path / "data"))
    with refused_at(f"EDGEFL_DATA {tmp_path / 'data'}", f"lacks {LABELS}\n"):
        locate(small)
    put(small.system)
    assert locate(small)[IMAGES].parent == small.system


def test_a_download_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: FileSet) -> None:
    served = put(tmp_path / "served")
    cache = user_cache() / "small"
    monkeypatch.setattr(FashionMnist, "FILES", small)
    monkeypatch.setattr(FashionMnist, "parse", lambda self, paths: paths)
    with refused_at("", "Small"):
        FashionMnist().check()
    paths = FashionMnist().load()
    assert paths == {name: cache / f"{name}.gz" for name in CONTENT}
    assert sorted(path.name for path in cache.iterdir()) == sorted(f"{name}.gz" for name in CONTENT)
    shutil.rmtree(served)
    assert read_set(small, locate(small, download=True)) == CONTENT


def test_download_fetches_only_what_the_cache_lacks(tmp_path: Path, small: FileSet) -> None:
    put(user_cache() / "small", {IMAGES: CONTENT[IMAGES]}, packed=False)
    put(tmp_path / "served", {LABELS: CONTENT[LABELS]})
    assert locate(small, download=True) == {
        IMAGES: user_cache() / "small" / IMAGES,
        LABELS: user_cache() / "small" / f"{LABELS}.gz",
    }


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (gzip.compress(CONTENT[LABELS]), "expected"),
        (gzip.compress(CONTENT[IMAGES])[:-9], "end-of-stream"),
        (b"<html>moved</html>", "gzip"),
    ],
    # test ids are given, as gzip's bytes contain the time, so that workers would collect different tests
    ids=["the wrong file", "cut off", "a page"],
)
def test_a_bad_download_leaves_no_file(tmp_path: Path, served: FileSet, sent: bytes, reason: str) -> None:
    (tmp_path / "served" / f"{IMAGES}.gz").write_bytes(sent)
    with refused_at("", f"{IMAGES}.gz", "damaged", reason):
        locate(served, download=True)
    assert not user_cache().exists()


def test_a_failed_download_names_places_and_remedies(tmp_path: Path, small: FileSet) -> None:
    with refused_at(
        "",
        "Small",
        "EDGEFL_DATA: not set",
        f"user cache {user_cache() / 'small'}: no readable folder",
        f"system {small.system}: no readable folder",
        f"download: {small.url}: ",
        "`apt-get install dataset-small`",
        "set EDGEFL_DATA to a folder with small/, Small/raw/ or the files",
    ):
        locate(small, download=True)


def test_a_cache_that_cannot_be_written_is_an_error_with_its_place(served: FileSet) -> None:
    user_cache().parent.mkdir()
    user_cache().write_text("a file where the folder should be")
    with refused_at("download", "edgefl"):
        locate(served, download=True)


@pytest.mark.parametrize("value", ["0", ""])
def test_a_download_can_be_allowed(monkeypatch: pytest.MonkeyPatch, served: FileSet, value: str) -> None:
    monkeypatch.setenv("EDGEFL_OFFLINE", value)
    assert locate(served, download=True).keys() == CONTENT.keys()


@pytest.mark.parametrize(
    ("offline", "url", "download", "reason"),
    [
        ("1", "served", True, "forbidden by EDGEFL_OFFLINE"),
        ("yes", "served", True, "forbidden by EDGEFL_OFFLINE"),
        ("0", None, True, "not offered"),
        ("0", "served", False, "not tried"),
    ],
)
def test_nothing_is_downloaded_unasked(
    offline: str,
    url: str | None,
    download: bool,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    served: FileSet,
) -> None:
    monkeypatch.setenv("EDGEFL_OFFLINE", offline)
    with refused_at("download", reason):
        locate(replace(served, url=url and served.url), download=download)
    assert not user_cache().exists()


def test_a_download_is_logged(tmp_path: Path, small: FileSet, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    with refused_at("", "file", kind=OSError):
        fetch("small", f"{small.url}x", tmp_path / "file" / "cache" / "x", None)
    assert not caplog.records
    with refused_at("", "nothing-of-this-name", kind=OSError):
        fetch("small", f"{small.url}nothing-of-this-name", tmp_path / "cache" / "x", None)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "small is not on this machine"
    ]
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def flip(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    ("name", "write", "reason"),
    [
        (IMAGES, lambda: flip(CONTENT[IMAGES]), "expected"),
        (f"{IMAGES}.gz", lambda: gzip.compress(flip(CONTENT[IMAGES])), "expected"),
        (f"{IMAGES}.gz", lambda: gzip.compress(CONTENT[IMAGES])[:-9], "end-of-stream"),
    ],
)
def test_a_damaged_file_is_named(
    tmp_path: Path, small: FileSet, name: str, write: Callable[[], bytes], reason: str
) -> None:
    root = put(tmp_path / "root", {LABELS: CONTENT[LABELS]})
    (root / name).write_bytes(write())
    with refused_at(str(root / name), reason):
        read_set(small, locate(small, root))
