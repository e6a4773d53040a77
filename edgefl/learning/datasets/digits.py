"""Digits: small handwritten digits; the samples ship with edgefl."""

from pathlib import Path

import numpy as np

from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.datasets._images import DIGITS

FILE = Path(__file__).with_name("digits.npz")
TEST_SAMPLES = 297


class Digits(Dataset):
    """1,500 training and 297 test images, 8x8 uint8 (0 to 16), 10 classes of about 180 images.

    The test samples are the last 297 in the order of the source. Neighbours in this order tend to share a writer, so
    the test samples contain handwriting that is not in the training samples: logistic regression has an accuracy of
    .91 on them, and .96 to .98 on random splits of the same sizes. Mean and standard deviation are scalars over the
    pixels of the training samples.

    Source: test part of Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998 (CC BY 4.0), as in
    scikit-learn's `load_digits` (BSD 3-Clause, copyright the scikit-learn developers), converted to uint8.
    """

    def load(self) -> Data:
        with np.load(FILE) as file:
            x, y = file["images"], file["labels"].astype(np.int64)
        tests = np.arange(len(y)) >= len(y) - TEST_SAMPLES
        train, test = Split(x, y).part(~tests), Split(x, y).part(tests)
        mean, std = np.array(train.x.mean(), np.float32), np.array(train.x.std(), np.float32)
        return Data(train, test, 10, mean, std, DIGITS)
