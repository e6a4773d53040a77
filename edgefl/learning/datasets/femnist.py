"""FEMNIST: EMNIST with its writers, in LEAF's files."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._files import FileDataset, FileSet
from edgefl.learning.datasets._images import image_data, labelled_images
from edgefl.learning.datasets.emnist import ALL

TRAIN, TEST = "train/*.json", "test/*.json"


class Femnist(FileDataset):
    """Images of handwritten digits, capitals and small letters with their writers, 28x28 uint8, 62 classes.

    The samples are those chosen by LEAF's preprocessing, up to about 800,000 images by 3,550 writers. Groups are the
    writers. The ink is dark and the paper white, unlike in EMNIST. Mean and standard deviation are scalars over all
    pixels. Source: Caldas et al., LEAF, arXiv 1812.01097: .json files with `users`, `num_samples` and `user_data`
    {user: {x: [784 numbers, 0 to 1 or 0 to 255], y: labels}} in the folders `train` and `test`. LEAF draws samples at
    random, so there is no md5 to check. Reading all samples takes several gigabytes of memory.
    """

    FILES = FileSet(
        name="FEMNIST",
        md5={TRAIN: None, TEST: None},
        folders=("femnist", "femnist/data", "leaf/data/femnist/data"),
        remedy=(
            "git clone https://github.com/TalwalkarLab/leaf && cd leaf/data/femnist && ./preprocess.sh -s niid --sf "
            "1.0 -k 0 -t sample && mkdir -p {cache} && cp -r data/train data/test {cache}"
        ),
    )

    def parse(self, paths: Mapping[str, Path]) -> Data:
        users = {name: self._users(paths[name].parent) for name in (TRAIN, TEST)}
        writers = sorted(users[TRAIN].keys() | users[TEST].keys())
        number = {writer: group for group, writer in enumerate(writers)}
        train, test = (_join(users[name], number, paths[name].parent) for name in (TRAIN, TEST))
        return image_data(train, test, tuple(ALL), group_names=tuple(writers))

    def _users(self, folder: Path) -> dict[str, Split]:
        users: dict[str, Split] = {}
        for path in sorted(folder.glob("*.json")):
            for user, samples in self.made(path, lambda path: read_writers(path.read_bytes()), path).items():
                if user in users:
                    raise EdgeflError(f"{path}: the writer {user} is also in another file of the folder")
                users[user] = samples
        return users


def read_writers(content: bytes) -> dict[str, Split]:
    """Parse the content of a LEAF file; return writer -> images [n, 28, 28] uint8 and labels [n] int64.

    Raises:
        Exception: the content is not a LEAF file of images.
    """
    document = json.loads(content)
    levels = {
        user: np.asarray(document["user_data"][user]["x"], np.float32).reshape(-1, 28, 28)
        for user in document["users"]
    }
    darkest = min((float(x.min()) for x in levels.values() if x.size), default=0.0)
    brightest = max((float(x.max()) for x in levels.values() if x.size), default=0.0)
    if not 0 <= darkest <= brightest <= 255:
        raise ValueError(f"grey levels from {darkest:g} to {brightest:g}, expected 0 to 255")
    # LEAF writes grey levels divided by 255; older versions wrote the levels themselves
    scale = 255 if brightest <= 1 else 1
    return {
        user: labelled_images(
            np.rint(x * scale).astype(np.uint8),
            np.asarray(document["user_data"][user]["y"], np.int64),
            (28, 28),
            len(ALL),
        )
        for user, x in levels.items()
    }


def _join(users: dict[str, Split], number: dict[str, int], folder: Path) -> Split:
    samples = [
        replace(users[user], groups=np.full(len(users[user].y), number[user]))
        for user in sorted(users)
        if len(users[user].y)
    ]
    if not samples:
        raise EdgeflError(f"{folder}: no samples")
    return Split.joined(samples)
