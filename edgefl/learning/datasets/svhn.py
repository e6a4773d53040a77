"""SVHN: house numbers in street photographs."""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._files import FileDataset, FileSet, root_of
from edgefl.learning.datasets._images import DIGITS, image_data

TRAIN, TEST = "train_32x32.mat", "test_32x32.mat"


class Svhn(FileDataset):
    """73,257 training and 26,032 test images, 3x32x32 uint8 (0 to 255), 10 classes of 4,659 to 13,861.

    Samples are [3, 32, 32], RGB; mean and standard deviation are per channel; the label is the digit (the
    files write 10 for zero). Source: Netzer et al., Reading Digits in Natural Images with Unsupervised Feature
    Learning, NIPS workshop 2011, format 2, cropped digits. Left out: the 531,131 extra images.
    """

    FILES = FileSet(
        name="SVHN",
        md5={TRAIN: "e26dedcc434d2e4c54c9b2d4a06d8373", TEST: "eb5a983be6a315427106f1b164d9cef3"},
        folders=("svhn", "SVHN"),
        url="http://ufldl.stanford.edu/housenumbers/",
        packed=False,
    )

    root: Path | None = root_of("the .mat files")

    def parse(self, paths: Mapping[str, Path]) -> Data:
        train, test = (read_samples(*file) for file in self.read(paths, TRAIN, TEST))
        return image_data(train, test, DIGITS)


def read_samples(content: bytes, place: str) -> Split:
    """Parse the samples of a .mat file with `X` [32, 32, 3, n] uint8 and `y` [n, 1], 1 to 10.

    Raises:
        EdgeflError: not such a file; `place` names it.
    """
    # imported here: no other scenario should pay for it
    from scipy.io import loadmat

    try:
        arrays = loadmat(io.BytesIO(content), variable_names=("X", "y"))
        x, y = arrays["X"], arrays["y"].ravel().astype(np.int64)
    # a damaged file can raise nearly anything
    except Exception as error:
        raise EdgeflError(f"{place}: not an SVHN file: {error!r}") from error
    if x.dtype != np.uint8 or x.shape != (32, 32, 3, len(y)):
        raise EdgeflError(f"{place}: images {x.dtype} {x.shape} for {len(y)} labels are not SVHN's")
    if len(y) and not 1 <= y.min() <= y.max() <= 10:
        raise EdgeflError(f"{place}: labels from {y.min()} to {y.max()}, expected 1 to 10")
    # [height, width, channel, n] to [n, channel, height, width]
    return Split(np.ascontiguousarray(x.transpose(3, 2, 0, 1)), y % 10)
