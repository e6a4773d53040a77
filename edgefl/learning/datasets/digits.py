"""Digits: the small handwritten digits that scikit-learn brings along."""

import numpy as np

from edgefl.learning.datasets import Data, Dataset, Split

TEST_SAMPLES = 297


class Digits(Dataset):
    """1,500 training and 297 test images, 8x8 uint8 (0 to 16), 10 classes of about 180.

    The test samples are the last 297 in the order of the source. Neighbours there tend to share a writer,
    so the test meets handwriting that training has not seen: a logistic regression reaches .91 on it, and
    .96 to .98 on random splits of the same sizes. Mean and standard deviation are scalars over the pixels
    of the training samples.

    Source: test part of Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998.
    """

    def load(self) -> Data:
        # imported here: it takes 1.5 s, which no other scenario should pay
        from sklearn.datasets import load_digits

        source = load_digits()
        x, y = source.images.astype(np.uint8), source.target.astype(np.int64)
        train = Split(x[:-TEST_SAMPLES], y[:-TEST_SAMPLES])
        return Data(
            train=train,
            test=Split(x[-TEST_SAMPLES:], y[-TEST_SAMPLES:]),
            num_classes=10,
            mean=np.array(train.x.mean(), np.float32),
            std=np.array(train.x.std(), np.float32),
            label_names=tuple(str(digit) for digit in range(10)),
        )

    def check(self) -> None:
        """Check nothing: edgefl depends on scikit-learn, which contains the samples."""
