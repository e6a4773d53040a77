"""SVHN: house numbers in street photographs."""

import io
from collections.abc import Mapping
from pathlib import Path

from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._files import FileDataset, FileSet
from edgefl.learning.datasets._images import DIGITS, image_data, labelled_images

TRAIN, TEST = "train_32x32.mat", "test_32x32.mat"


class Svhn(FileDataset):
    """73,257 training and 26,032 test images, 3x32x32 uint8 (0 to 255), 10 classes of 4,659 to 13,861 images.

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

    def parse(self, paths: Mapping[str, Path]) -> Data:
        train, test = self.read(paths, read_samples)
        return image_data(train, test, DIGITS)


def read_samples(content: bytes) -> Split:
    """Parse the samples of a .mat file with `X` [32, 32, 3, n] uint8 and `y` [n, 1], 1 to 10."""
    # import it here, because only this data set needs SciPy's reader
    from scipy.io import loadmat

    arrays = loadmat(io.BytesIO(content), variable_names=("X", "y"))
    # [height, width, channel, n] to [n, channel, height, width]
    x, y = arrays["X"].transpose(3, 2, 0, 1), arrays["y"].ravel()
    split = labelled_images(x, y, (3, 32, 32), len(DIGITS), first=1)
    return Split(split.x, split.y % 10)
