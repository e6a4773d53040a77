"""Convert texts to token ids, for data sets with published text files."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._files import FileDataset

PADDING, UNKNOWN = 0, 1
RESERVED = 2  # number of token ids that are not words (padding, unknown)
WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


class TextDataset(FileDataset):
    """Base class of text data sets, which have one training file and one test file.

    NAMES: names of the labels, in their order.
    """

    NAMES: ClassVar[tuple[str, ...]]

    vocabulary: int = Field(
        30_522, ge=3, le=32_767, description="number of tokens, including padding and unknown words"
    )
    length: ClassVar[int]

    @abstractmethod
    def texts(self, content: bytes) -> tuple[list[str], np.ndarray]:
        """Parse a file's content into texts and labels [n] int64; invalid content may raise any exception."""

    def parse(self, paths: Mapping[str, Path]) -> Data:
        (train, y), (test, test_y) = self.read(paths, self.texts)
        tokens = vocabulary(train, self.vocabulary)
        return Data.unscaled(
            Split(encode(train, tokens, self.length), y),
            Split(encode(test, tokens, self.length), test_y),
            self.NAMES,
        )


def words(text: str) -> list[str]:
    """Split a text into lower-case words of letters, digits and inner apostrophes."""
    return WORD.findall(text.lower())


def vocabulary(texts: Iterable[str], size: int) -> dict[str, int]:
    """Assign token ids to the most frequent words; return word -> token.

    Args:
        texts: the training texts.
        size: number of tokens, including padding (0) and unknown words (1).

    Returns:
        At most size - 2 words, numbered from 2 by decreasing frequency, ties in alphabetical order.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(words(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: token for token, word in enumerate(ranked[: size - RESERVED], start=RESERVED)}


def encode(texts: Sequence[str], tokens: dict[str, int], length: int) -> np.ndarray:
    """Encode the first `length` words of each text as tokens [texts, length] int16, padded with 0."""
    encoded = np.full((len(texts), length), PADDING, np.int16)
    for row, text in zip(encoded, texts, strict=True):
        known = [tokens.get(word, UNKNOWN) for word in words(text)[:length]]
        row[: len(known)] = known
    return encoded
