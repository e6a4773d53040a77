"""FEMNIST: EMNIST with its writers, in LEAF's files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._files import FileDataset, FileSet, root_of
from edgefl.learning.datasets._images import image_data
from edgefl.learning.datasets.emnist import ALL

TRAIN, TEST = "train/*.json", "test/*.json"


class Femnist(FileDataset):
    """Images of handwritten digits, capitals and small letters with their writers, 28x28 uint8, 62 classes.

    The samples are those that LEAF's preprocessing chose; all of them are about 800,000 of 3,550 writers. The
    groups of the samples are the writers. Ink is dark on white paper, the opposite of EMNIST. Mean and standard
    deviation are scalars over all pixels. Source: Caldas et al., LEAF, arXiv 1812.01097: .json files with
    `users`, `num_samples` and `user_data` {user: {x: [784 numbers, 0 to 1 or 0 to 255], y: labels}} in the
    folders `train` and `test`. LEAF draws samples at random, so there is no md5 to compare. Reading all of them
    takes several gigabytes of memory for a while.
    """

    FILES = FileSet(
        name="FEMNIST",
        md5={TRAIN: None, TEST: None},
        folders=("femnist", "femnist/data", "leaf/data/femnist/data"),
        remedy=(
            "git clone https://github.com/TalwalkarLab/leaf && cd leaf/data/femnist &&"
            " ./preprocess.sh -s niid --sf 1.0 -k 0 -t sample && mkdir -p {cache}"
            " && cp -r data/train data/test {cache}"
        ),
    )

    root: Path | None = root_of("train/ and test/")

    def parse(self, paths: Mapping[str, Path]) -> Data:
        users = {name: _users(paths[name].parent) for name in (TRAIN, TEST)}
        writers = sorted(users[TRAIN].keys() | users[TEST].keys())
        number = {writer: group for group, writer in enumerate(writers)}
        train, test = (_join(users[name], number, paths[name].parent) for name in (TRAIN, TEST))
        return image_data(train, test, tuple(ALL), group_names=tuple(writers))


def read_writers(content: bytes, place: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Parse one file: writer -> images [n, 28, 28] uint8 and labels [n] int64.

    Raises:
        EdgeflError: not such a file; `place` names it.
    """
    try:
        document: dict[str, Any] = json.loads(content)
        users = {user: document["user_data"][user] for user in document["users"]}
        samples = {
            user: (np.asarray(data["x"], np.float32).reshape(-1, 28, 28), np.asarray(data["y"], np.int64))
            for user, data in users.items()
        }
    except (KeyError, TypeError, ValueError) as error:
        raise EdgeflError(f"{place}: not a file of LEAF's FEMNIST: {error!r}") from error
    # LEAF writes grey levels divided by 255, older versions the levels themselves
    brightest = max((float(x.max()) for x, _ in samples.values() if x.size), default=0.0)
    scale = 255 if brightest <= 1 else 1
    for user, (x, y) in samples.items():
        if len(x) != len(y) or (len(y) and not (0 <= y.min() <= y.max() < len(ALL))) or (x < 0).any():
            raise EdgeflError(f"{place}: the samples of {user} are not FEMNIST's")
    if brightest > 255:
        raise EdgeflError(f"{place}: a grey level of {brightest:g}, expected at most 255")
    return {user: (np.rint(x * scale).astype(np.uint8), y) for user, (x, y) in samples.items()}


def _users(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    users: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for path in sorted(folder.glob("*.json")):
        for user, samples in read_writers(path.read_bytes(), str(path)).items():
            if user in users:
                raise EdgeflError(f"{path}: the writer {user} is also in another file of the folder")
            users[user] = samples
    return users


def _join(users: dict[str, tuple[np.ndarray, np.ndarray]], number: dict[str, int], folder: Path) -> Split:
    samples = {user: users[user] for user in sorted(users) if len(users[user][1])}
    if not samples:
        raise EdgeflError(f"{folder}: no samples")
    return Split(
        np.concatenate([x for x, _ in samples.values()]),
        np.concatenate([y for _, y in samples.values()]),
        np.concatenate([np.full(len(y), number[user]) for user, (_, y) in samples.items()]),
    )
