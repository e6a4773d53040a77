"""Test that each reader refuses malformed files of published data sets, and names the file."""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgefl.learning.datasets import Split, ag_news, femnist, mnist, mnist_5k, reuters_r8, svhn
from edgefl.learning.datasets._cifar import read_batch, unpickle
from edgefl.learning.datasets._images import labelled_images, parse_idx
from tests.refusals import refused_at
from tests.unit.learning.small_files import TAB, cifar_batch, idx, leaf, mat, random_images


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("import sys; sys.edgefl_was_here = True",)


def cifar(content: bytes) -> Split:
    return read_batch(unpickle(content), b"labels", 10)


ROW = b",".join([b"0"] * 784)
TWO = random_images(2, 3072)
COLOUR = TWO.reshape(2, 3, 32, 32)
GREY = random_images(2, 28, 28)
IDX = idx(GREY)
AG_NEWS, REUTERS = ag_news.AgNews().texts, reuters_r8.ReutersR8().texts
MALFORMED: list[tuple[Callable[[bytes], object], bytes, str]] = [
    (mnist_5k.read_rows, b"", "784 pixels"),
    (mnist_5k.read_rows, b"1,2,3\n", "784 pixels"),
    (mnist_5k.read_rows, ROW + b",10", "labels are 10 to 10 instead of 0 to 9"),
    (mnist_5k.read_rows, ROW.replace(b"0", b"256") + b",1", "pixels outside 0 to 255"),
    (mnist_5k.read_rows, ROW + b",one", "one"),
    (unpickle, pickle.dumps(Evil()), "the pickle tries to load builtins.exec"),
    (unpickle, b"\x80\x02cos\nsystem\n(U\x02lstR.", "the pickle tries to load os.system"),
    (unpickle, pickle.dumps([1]), "a list, not a dictionary"),
    (unpickle, b"", "EOFError"),
    (unpickle, cifar_batch(TWO, labels=np.array([1, 2]))[:-9], "Unpickling"),
    (cifar, cifar_batch(TWO, coarse_labels=np.array([1, 2])), "b'labels'"),
    (cifar, cifar_batch(TWO, labels=np.array([1, 10])), "labels are 1 to 10 instead of 0 to 9"),
    (cifar, cifar_batch(TWO, labels=np.array([1])), "(2, 3, 32, 32) and labels int64 (1,)"),
    (cifar, cifar_batch(TWO[:, 1:], labels=np.array([1, 1])), "(3,32,32)"),
    (svhn.read_samples, b"MATLAB", "SVHN"),
    (svhn.read_samples, mat(COLOUR, np.array([0, 1])), "labels are 0 to 1 instead of 1 to 10"),
    (svhn.read_samples, mat(COLOUR, np.array([1, 1, 1])), "labels uint8 (3,)"),
    (femnist.read_writers, b"{}", "users"),
    (femnist.read_writers, b"[", "FEMNIST"),
    (femnist.read_writers, leaf({"f": (random_images(1, 10), np.array([1]))}), "(28,28)"),
    (femnist.read_writers, leaf({"f": (GREY[:1], np.array([62]))}), "labels are 62 to 62 instead of 0 to 61"),
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
    (parse_idx, IDX[:-1], "1567 bytes of data do not fit the IDX dimensions (2, 28, 28)"),
    (parse_idx, IDX + b"\0", "1569 bytes of data do not fit the IDX dimensions (2, 28, 28)"),
    # 2^32 - 1 in each of 4 dimensions, whose product must not overflow
    (parse_idx, b"\0\0\x08\4" + b"\xff" * 16, "0 bytes of data"),
]


@pytest.mark.parametrize("row", range(len(MALFORMED)))
def test_a_malformed_file_is_named(row: int) -> None:
    reader, content, reason = MALFORMED[row]
    dataset = {svhn.read_samples: svhn.Svhn, femnist.read_writers: femnist.Femnist}.get(reader, mnist.Mnist)
    with refused_at("here", reason):
        dataset().made(Path("here"), reader, content)
    assert not hasattr(sys, "edgefl_was_here")


def test_images_and_labels_that_do_not_belong_together() -> None:
    x, y = np.zeros((3, 28, 28), np.uint8), np.zeros(4, np.uint8)
    with refused_at("here", "(3, 28, 28)", "(4,)"):
        mnist.Mnist().made(Path("here"), labelled_images, x, y, (28, 28), 10)


def test_idx_by_hand() -> None:
    content = bytes([0, 0, 0x08, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255])
    np.testing.assert_array_equal(parse_idx(content), [[1, 2, 3], [4, 5, 255]])
