"""Data sets of the Hugging Face Hub."""

import importlib
from typing import Any

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Dataset
from edgefl.learning.datasets._tables import complete, divided, grouped, labelled


class HuggingFace(Dataset):
    """A data set of the Hugging Face Hub, or one on this machine, with a column of inputs and one of labels.

    Inputs are images, brought to one size, or lists of numbers of one length. Needs the package `datasets`:
    `pip install edgefl-cosim[huggingface]`. A run downloads what is not there; `edgefl validate` does not.
    """

    path: str = Field(
        min_length=1, description="name on the Hub, e.g. ylecun/mnist, or a folder on this machine"
    )
    config: str | None = Field(None, description="configuration of the data set; none: its only one")
    inputs: str = Field("image", description="column of the inputs")
    label: str = Field("label", description="column of the labels")
    group: str | None = Field(
        None, description="column of the groups, for `partition: natural`; none: there are none"
    )
    train: str = Field("train", description="name of the training split")
    test: str | None = Field("test", description="name of the test split; none: a share is split off")
    test_share: float = Field(
        0.2, gt=0, lt=1, description="share split off for testing, without a test split"
    )
    height: int = Field(32, ge=1, le=1024, description="height to which images are brought, pixels")
    width: int = Field(32, ge=1, le=1024, description="width to which images are brought, pixels")

    def check(self) -> None:
        self._splits(download=False)

    def load(self) -> Data:
        splits = self._splits(download=True)
        names = getattr(splits[0].features.get(self.label), "names", None)
        words = [str(value) for split in splits for value in split[self.label]]
        if names and set(words) <= {str(label) for label in range(len(names))}:
            y, label_names = np.array(words, np.int64), tuple(names)
        else:
            y, label_names = labelled(words)
        origins = [str(value) for split in splits for value in split[self.group]] if self.group else []
        groups, group_names = grouped(origins)
        inputs = [self._inputs(split) for split in splits]
        train, test = divided(inputs, y, groups, self.test_share, "huggingface")
        return complete(train, test, label_names, group_names)

    def _splits(self, download: bool) -> list[Any]:
        try:
            hub = importlib.import_module("datasets")
        except ImportError as error:
            raise EdgeflError(
                "data of the Hugging Face Hub need the package datasets: pip install 'edgefl-cosim[huggingface]'"
            ) from error
        options = {} if download else {"download_config": hub.DownloadConfig(local_files_only=True)}
        wanted = [name for name in (self.train, self.test) if name]
        try:
            splits = [hub.load_dataset(self.path, self.config, split=name, **options) for name in wanted]
        except Exception as error:  # of the network, of the Hub, of a name that is none
            why = "" if download else " on this machine (a run would try to download it)"
            raise EdgeflError(f"{self.path} cannot be had{why}: {type(error).__name__}: {error}") from error
        for column in filter(None, (self.inputs, self.label, self.group)):
            if column not in splits[0].column_names:
                known = ", ".join(splits[0].column_names)
                raise EdgeflError(f"{self.path} has no column {column!r}; it has {known}")
        return splits

    def _inputs(self, split: Any) -> np.ndarray:
        first: Any = split[0][self.inputs] if len(split) else None
        if hasattr(first, "convert"):  # an image
            mode = "L" if first.mode in ("1", "L") else "RGB"
            pixels = [
                np.asarray(image.convert(mode).resize((self.width, self.height)))
                for image in split[self.inputs]
            ]
            x = np.stack(pixels).astype(np.uint8)
            return x if mode == "L" else x.transpose(0, 3, 1, 2)
        try:
            x = np.array(split[self.inputs], np.float32)
        except (ValueError, TypeError) as error:
            raise EdgeflError(
                f"column {self.inputs!r} of {self.path} has neither images nor lists of numbers of one length: texts"
                " have to be made tokens first, and given as npz"
            ) from error
        return x.reshape(len(x), -1) if x.ndim < 2 else x
