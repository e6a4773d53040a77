"""EMNIST: handwritten digits and letters."""

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._files import Archive, FileDataset, FileSet
from edgefl.learning.datasets._images import image_data, read_idx

ALL = string.digits + string.ascii_uppercase + string.ascii_lowercase
MERGED = "".join(letter for letter in ALL if letter not in "cijklmopsuvwxyz")  # look-alikes of capitals
# split -> (its characters in the order of the labels, numbers of training samples and of test samples)
SPLITS = {
    "byclass": (ALL, 697_932, 116_323),
    "bymerge": (MERGED, 697_932, 116_323),
    "balanced": (MERGED, 112_800, 18_800),
    "letters": (string.ascii_lowercase, 124_800, 20_800),
    "digits": (string.digits, 240_000, 40_000),
    "mnist": (string.digits, 60_000, 10_000),
}
ARCHIVE = Archive(
    "gzip.zip",
    "gzip",
    url="https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
    md5="58c8d27c78d21e728a6bc7b3cc06412e",
)


class Emnist(FileDataset):
    """Images of handwritten characters, 28x28 uint8 (0 to 255), upright as in MNIST (transposed in the files).

    The split determines classes and samples (training + test). byclass: 62 classes, 697,932 + 116,323 samples;
    bymerge: the same samples in 47 classes (small letters that look like capitals are merged); balanced: 47 classes,
    112,800 + 18,800; letters: 26 classes (cases merged), 124,800 + 20,800; digits: 10 classes, 240,000 + 40,000;
    mnist: 10 classes, 60,000 + 10,000.

    Mean and standard deviation are scalars over all pixels. Source: Cohen, Afshar, Tapson and van Schaik, IJCNN
    2017; 560 MB. The files do not identify the writers; `femnist` does. Only the md5 of the archive is published, so
    unpacked files are checked by their format and counts.
    """

    split: Literal["byclass", "bymerge", "balanced", "letters", "digits", "mnist"] = Field(
        "byclass", description="EMNIST's split, which determines classes and samples"
    )

    def parse(self, paths: Mapping[str, Path]) -> Data:
        characters, *counts = SPLITS[self.split]
        first = 1 if self.split == "letters" else 0
        splits = read_idx(self, paths, len(characters), first)
        for part, count in zip(splits, counts, strict=True):
            if len(part.y) != count:
                raise EdgeflError(
                    f"{next(iter(paths.values())).parent}: {len(part.y)} samples instead of {count}: this is"
                    f" not EMNIST {self.split}"
                )
        train, test = (
            Split(np.ascontiguousarray(part.x.transpose(0, 2, 1)), part.y - first) for part in splits
        )
        return image_data(train, test, tuple(characters))

    def files(self) -> FileSet:
        return FileSet(
            name=f"EMNIST ({self.split})",
            md5=dict.fromkeys(
                f"emnist-{self.split}-{part}-{kind}-ubyte"
                for part in ("train", "test")
                for kind in ("images-idx3", "labels-idx1")
            ),
            folders=("emnist", "EMNIST/raw", "EMNIST/raw/gzip"),
            archive=ARCHIVE,
        )
