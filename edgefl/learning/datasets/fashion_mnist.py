"""Fashion-MNIST: photographs of clothes."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from edgefl.learning.datasets import Data
from edgefl.learning.datasets._files import FileDataset, FileSet
from edgefl.learning.datasets._images import read_idx

# mean and standard deviation of the training samples, which are fixed by the md5
MEAN, STD = np.array(72.94035, np.float32), np.array(90.02118, np.float32)
CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


class FashionMnist(FileDataset):
    """60,000 training and 10,000 test images, 28x28 uint8 (0 to 255), 10 balanced classes.

    Samples are [28, 28]; mean and standard deviation are scalars over all pixels (.2860 and .3530 times 255).
    Source: Xiao, Rasul and Vollgraf, arXiv 1708.07747, 2017; MIT licence.
    """

    FILES = FileSet(
        name="Fashion-MNIST",
        md5={
            "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
            "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
            "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
        },
        folders=("fashion-mnist", "FashionMNIST/raw"),  # the second folder is torchvision's
        remedy="apt-get install -y --no-install-recommends dataset-fashion-mnist",
        system=Path("/usr/share/datasets/fashion-mnist"),
        url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    )

    def parse(self, paths: Mapping[str, Path]) -> Data:
        return Data(*read_idx(self, paths, len(CLOTHES)), len(CLOTHES), MEAN, STD, CLOTHES)
