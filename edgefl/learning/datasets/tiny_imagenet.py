"""Tiny-ImageNet: photographs of two hundred kinds of objects."""

import io
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._archives import archive_of
from edgefl.learning.datasets._files import Archive, FileDataset, FileSet
from edgefl.learning.datasets._images import image_data

CLASSES, WORDS, ANNOTATIONS = "wnids.txt", "words.txt", "val/val_annotations.txt"
FOLDER = "tiny-imagenet-200"
TRAIN_IMAGE = re.compile(r"train/([^/]+)/images/[^/]+\.JPEG")
SIDE = 64
SIZE = (200, 100_000, 10_000)  # classes, training samples, test samples


class TinyImagenet(FileDataset):
    """100,000 training and 10,000 test images, 3x64x64 uint8 (0 to 255), 200 balanced classes.

    Samples are [3, 64, 64], RGB (grey images are repeated in all channels); mean and standard deviation are per
    channel. The labels follow the sorted WordNet numbers, as in torchvision. Models are tested on the published
    validation images, because the published test images have no labels. Source: Le and Yang, Stanford CS231N, 2015,
    read from folders or directly from the .zip; decoding all JPEGs takes about half a minute at every start. Needs
    Pillow, which comes with matplotlib. Left out: bounding boxes, augmentation.
    """

    FILES = FileSet(
        name="Tiny-ImageNet",
        md5={CLASSES: None, WORDS: None, ANNOTATIONS: None},
        folders=(FOLDER,),
        archive=Archive(
            "tiny-imagenet-200.zip",
            FOLDER,
            url="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
            md5="90528d7ca1a48142e341f4ef8d21d0de",
        ),
    )

    def parse(self, paths: Mapping[str, Path]) -> Data:
        place = paths[CLASSES].parent
        return self.made(place, _read, place)

    def check(self) -> None:
        _decoder()
        super().check()


def _read(place: Path) -> Data:
    """Read Tiny-ImageNet from a folder, or from a folder inside a .zip."""
    archive = archive_of(place)
    if archive is None:
        names = [path.relative_to(place).as_posix() for path in place.glob("train/*/images/*.JPEG")]
        return _data(names, lambda name: (place / name).read_bytes())
    inside = place.relative_to(archive).as_posix() + "/"
    with zipfile.ZipFile(archive) as packed:
        names = [name.removeprefix(inside) for name in packed.namelist()]
        return _data(names, lambda name: packed.read(inside + name))


def _data(names: list[str], read: Callable[[str], bytes]) -> Data:
    """Build Tiny-ImageNet from the names of its files and a function that reads a file by its name."""
    wnids = sorted(read(CLASSES).decode().split())
    label = {wnid: number for number, wnid in enumerate(wnids)}
    matches = [match for match in map(TRAIN_IMAGE.fullmatch, sorted(names)) if match]
    if strange := {match[1] for match in matches} - label.keys():
        raise ValueError(f"the folder train/{min(strange)} is not listed in {CLASSES}")
    rows = [line.split("\t") for line in read(ANNOTATIONS).decode().splitlines()]
    if any(len(row) < 2 or row[1] not in label for row in rows):
        raise ValueError(f"{ANNOTATIONS}: a line lacks an image's name or a listed class")
    train, test = (
        Split(_decode(files, read), np.array([label[wnid] for wnid in kinds], np.int64))
        for files, kinds in (
            ([match[0] for match in matches], [match[1] for match in matches]),
            ([f"val/images/{row[0]}" for row in rows], [row[1] for row in rows]),
        )
    )
    words = dict(line.split("\t", 1) for line in read(WORDS).decode().splitlines() if "\t" in line)
    size = (len(wnids), len(train.y), len(test.y))
    if size != SIZE:
        raise ValueError(f"numbers of classes, training and test samples are {size} instead of {SIZE}")
    return image_data(train, test, tuple(words.get(wnid, wnid).split(",")[0] for wnid in wnids))


def _decode(names: list[str], read: Callable[[str], bytes]) -> np.ndarray:
    """Read the JPEG files with these names, and decode their images to [names, 3, 64, 64] uint8."""
    decode = _decoder()
    x = np.empty((len(names), 3, SIDE, SIDE), np.uint8)
    for image, name in zip(x, names, strict=True):
        pixels = decode(read(name))
        if pixels.shape != (SIDE, SIDE, 3):
            raise ValueError(f"{name}: {pixels.shape} instead of {SIDE}x{SIDE} RGB pixels")
        image[...] = pixels.transpose(2, 0, 1)
    return x


def _decoder() -> Callable[[bytes], np.ndarray]:
    """Return a function that decodes a JPEG file's content to [height, width, 3] uint8.

    Raises:
        EdgeflError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise EdgeflError("Tiny-ImageNet's JPEG files need Pillow: pip install pillow") from error
    return lambda content: np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
