"""Your own images, with one folder per class."""

import math
import warnings
from pathlib import Path

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.datasets._tables import SIZE, Size, complete, require_file, split_off
from edgefl.learning.memory import Need, require

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


class ImageFolder(Dataset):
    """Images in folders named after their classes: path/train/CAT/1.png and path/test/CAT/2.png, or path/CAT/1.png.

    Without train and test folders, a share is held out for testing. All images are resized to one size, uint8.
    """

    path: Path = Field(description="path of the folder, relative to the scenario's file")
    size: Size = SIZE
    test_share: float = Field(
        0.2, gt=0, lt=1, description="share of images split off for testing without folders train and test"
    )

    def check(self) -> None:
        wanted = "name a folder that contains a folder of images for each class"
        require_file(self.path, wanted)
        if not self.path.is_dir():
            raise EdgeflError(f"{self.path} is a file: {wanted}")

    def load(self) -> Data:
        self.check()
        separate = all((self.path / part).is_dir() for part in ("train", "test"))
        roots = [self.path / part for part in ("train", "test")] if separate else [self.path]
        names = sorted({folder.name for root in roots for folder in _folders(root)})
        if len(names) < 2:
            raise EdgeflError(
                f"{roots[0]} needs a folder of images for each of at least two classes, but has only {names}"
            )
        splits = [self._read(root, names) for root in roots]
        train, test = splits if separate else split_off(splits[0], self.test_share, "image_folder")
        return complete(train, test, tuple(names))

    def _read(self, root: Path, names: list[str]) -> Split:
        from PIL import Image  # comes with matplotlib

        files_of = [
            sorted(file for file in (root / name).glob("*") if file.suffix.lower() in ENDINGS)
            for name in names
        ]
        count = sum(map(len, files_of))
        size = 3 * math.prod(self.size)
        # each image is in memory twice: by itself, and in the joint array
        require([Need((), 2.0 * count * size, f"{count:,} images")])
        # Pillow warns above 90 million pixels, which would need a gigabyte; make the warning an error
        bomb = Image.DecompressionBombWarning
        images, labels = [], []
        for label, files in enumerate(files_of):
            for file in files:
                try:
                    with warnings.catch_warnings(action="error", category=bomb), Image.open(file) as image:
                        fitted = image.convert("RGB").resize(self.size[::-1])
                except Exception as error:  # a damaged or foreign file may raise anything
                    raise EdgeflError(f"{file} cannot be read as an image ({error})") from error
                pixels = np.asarray(fitted, np.uint8)
                images.append(pixels.transpose(2, 0, 1))
                labels.append(label)
        if not images:
            raise EdgeflError(f"{root}: no images in {', '.join(names)}; known types: {', '.join(ENDINGS)}")
        return Split(np.stack(images), np.array(labels, np.int64))


def _folders(root: Path) -> list[Path]:
    return [each for each in root.iterdir() if each.is_dir() and not each.name.startswith(".")]
