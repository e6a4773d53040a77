"""AG News: headlines and first sentences of news articles."""

import csv
import io
from typing import ClassVar

import numpy as np

from edgefl.learning.datasets._files import FileSet
from edgefl.learning.datasets._text import TextDataset


class AgNews(TextDataset):
    """120,000 training and 7,600 test texts as token ids, 4 balanced classes.

    Samples are [length] int16: the most frequent words of the training texts (title and description) are
    numbered from 2, 1 is any other word, 0 is padding. Source: Zhang, Zhao and LeCun, NIPS 2015, the authors'
    files. The default vocabulary size is that of BERT, whose 30,522 word pieces the journal paper uses. Left out:
    word pieces.
    """

    FILES = FileSet(
        name="AG News",
        md5={
            "train.csv": "b1a00f826fdfbd249f79597b59e1dc12",
            "test.csv": "d52ea96a97a2d943681189a97654912d",
        },
        folders=("ag_news_csv", "AG_NEWS"),
        url="https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv/",
        packed=False,
    )
    NAMES = ("World", "Sports", "Business", "Sci/Tech")

    length: ClassVar[int] = 128  # number of words kept from each text

    def texts(self, content: bytes) -> tuple[list[str], np.ndarray]:
        """Parse the content of a CSV file with class (1 to 4), title and description."""
        texts, labels = [], []
        for number, row in enumerate(csv.reader(io.StringIO(content.decode("utf-8"), newline="")), start=1):
            if len(row) != 3 or row[0] not in ("1", "2", "3", "4"):
                raise ValueError(f"row {number} does not consist of class, title and description")
            labels.append(int(row[0]) - 1)
            texts.append(f"{row[1]} {row[2]}")
        return texts, np.array(labels, np.int64)
