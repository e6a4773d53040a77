"""CIFAR-100: small photographs of a hundred kinds of things."""

from pathlib import Path

from pydantic import Field

from edgefl.learning.datasets import Data, Dataset
from edgefl.learning.datasets._files import Archive, FileSet, locate, obtain, read_set
from edgefl.learning.datasets._images import image_data
from edgefl.learning.datasets._pickles import read_batch, read_names

FILES = FileSet(
    name="CIFAR-100",
    md5={
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "7973b15100ade9c7d40fb424638fde48",
    },
    folders=("cifar-100-python", "CIFAR100/cifar-100-python"),
    remedy="curl --create-dirs -O --output-dir {cache} https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    archive=Archive(
        "cifar-100-python.tar.gz",
        "cifar-100-python",
        url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        md5="eb9058c3a382ffc7106e4002c42a8d85",
    ),
)


class Cifar100(Dataset):
    """50,000 training and 10,000 test images, 3x32x32 uint8 (0 to 255), 100 balanced classes.

    Samples are [3, 32, 32], RGB; mean and standard deviation are per channel. Source: Krizhevsky, Learning
    Multiple Layers of Features from Tiny Images, 2009, the version for Python, read by an unpickler that can
    only build arrays. Torchvision's root is understood. Left out: the 20 superclasses, and augmentation.
    """

    root: Path | None = Field(
        None, description="folder that holds the files or their archive; empty: search the usual places"
    )

    def load(self) -> Data:
        paths = obtain(FILES, self.root)
        content = read_set(FILES, paths)
        train, test = (
            read_batch(content[name], b"fine_labels", 100, str(paths[name])) for name in ("train", "test")
        )
        return image_data(train, test, read_names(content["meta"], b"fine_label_names", str(paths["meta"])))

    def check(self) -> None:
        locate(FILES, self.root)
