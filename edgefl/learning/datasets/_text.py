"""Texts as token numbers, and as a data set."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from edgefl.learning.datasets import Data, Split

PADDING, UNKNOWN = 0, 1
RESERVED = 2  # tokens before the first word
WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


def words(text: str) -> list[str]:
    """Split a text into lower-case runs of letters and digits; an apostrophe within a word belongs to it."""
    return WORD.findall(text.lower())


def vocabulary(texts: Iterable[str], size: int) -> dict[str, int]:
    """Number the most frequent words: return word -> token.

    Args:
        texts: the training texts.
        size: number of tokens, padding (0) and unknown (1) included.

    Returns:
        size - 2 words or fewer, numbered from 2 by falling frequency, ties in alphabetical order.
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


def text_data(
    train: tuple[Sequence[str], np.ndarray],
    test: tuple[Sequence[str], np.ndarray],
    names: tuple[str, ...],
    *,
    vocabulary_size: int,
    length: int,
) -> Data:
    """Make a data set of texts and labels [n] of both splits, with the vocabulary of the training texts."""
    tokens = vocabulary(train[0], vocabulary_size)
    as_tokens, as_test_tokens = (Split(encode(texts, tokens, length), y) for texts, y in (train, test))
    return Data(
        train=as_tokens,
        test=as_test_tokens,
        num_classes=len(names),
        mean=np.array(0, np.float32),
        std=np.array(1, np.float32),
        label_names=names,
    )
