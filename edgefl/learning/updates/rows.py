"""Select rows of devices' vectors, and divide them into blocks."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.algorithms import Notes

AT_ONCE_BYTES = 256_000_000  # of devices' vectors in one call of `upload` or `keep`


def blocks(count: int, like: Tensor, most: int = AT_ONCE_BYTES) -> Iterator[tuple[int, int]]:
    """Divide `count` rows of `like`'s length into blocks of at most `most` bytes; yield each block's (begin, end)."""
    size = max(1, most // (4 * max(1, like.shape[-1])))
    for begin in range(0, count, size):
        yield begin, min(begin + size, count)


def notes_at(positions: Sequence[int], notes: Notes) -> dict[str, Tensor]:
    """Return the notes of the devices at these positions."""
    return {name: note[list(positions)] for name, note in notes.items()}


def like_rows(values: np.ndarray, rows: Tensor) -> Tensor:
    """Return values [k] as a tensor of the rows' type and device."""
    return torch.as_tensor(values, dtype=rows.dtype, device=rows.device)
