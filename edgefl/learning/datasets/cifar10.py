"""CIFAR-10: small photographs of animals and vehicles."""

from pathlib import Path

import numpy as np
from pydantic import Field

from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.datasets._files import Archive, FileSet, locate, obtain, read_set
from edgefl.learning.datasets._images import image_data
from edgefl.learning.datasets._pickles import read_batch, read_names

FILES = FileSet(
    name="CIFAR-10",
    md5={
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
        "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
    },
    folders=("cifar-10-batches-py", "CIFAR10/cifar-10-batches-py"),
    remedy="curl --create-dirs -O --output-dir {cache} https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    archive=Archive(
        "cifar-10-python.tar.gz",
        "cifar-10-batches-py",
        url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        md5="c58f30108f718f92721af3b95e74349a",
    ),
)


class Cifar10(Dataset):
    """50,000 training and 10,000 test images, 3x32x32 uint8 (0 to 255), 10 balanced classes.

    Samples are [3, 32, 32], RGB; mean and standard deviation are per channel. Source: Krizhevsky, Learning
    Multiple Layers of Features from Tiny Images, 2009, the version for Python, read by an unpickler that can
    only build arrays. Torchvision's root is understood. Left out: augmentation.
    """

    root: Path | None = Field(
        None, description="folder that holds the files or their archive; empty: search the usual places"
    )

    def load(self) -> Data:
        paths = obtain(FILES, self.root)
        content = read_set(FILES, paths)
        batches = [
            read_batch(content[name], b"labels", 10, str(paths[name]))
            for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
        ]
        train = Split(
            np.concatenate([batch.x for batch in batches[:-1]]),
            np.concatenate([batch.y for batch in batches[:-1]]),
        )
        return image_data(
            train,
            batches[-1],
            read_names(content["batches.meta"], b"label_names", str(paths["batches.meta"])),
        )

    def check(self) -> None:
        locate(FILES, self.root)
