"""The gradients and logits of logistic regression by `_logistic.c`, compiled on this machine."""

from ctypes import c_float, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from edgefl.errors import EdgeflError
from edgefl.learning import compiling
from edgefl.learning.models import ChunkOfDevices, Read

SOURCE = Path(__file__).with_name("_logistic.c")
MOST_LANES, TESTED = 16, 32  # as there
# With more classes the products are wide enough for BLAS: of 784 inputs, with AVX2, 47 classes take 0.86 of
# PyTorch's time, 62 take 0.68 to 0.91, 100 up to 1.4.
MOST_CLASSES = 64
PLACE = ("learning", "model", "compiled")
_one_at_a_time = Lock()


class CompiledSteps:
    """The gradients of a chunk, one device after the other, whose inputs stay in the cache between both products.

    Args:
        block_bytes: inputs that are read at a time, where they do not lie as bytes.
    """

    def __init__(self, chunk: ChunkOfDevices, block_bytes: int) -> None:
        self._rows, self._raw = chunk.rows, chunk.raw
        self._y, self._weight = chunk.y.contiguous(), chunk.weight.contiguous()
        _, self._count, self._batch = chunk.y.shape
        classes, inputs = chunk.layout.shapes[0]
        self._gradient = torch.empty_like(self._rows)
        self._room = self._rows.new_empty(classes * (self._batch + 2 * MOST_LANES))
        self._sizes = self._batch, classes, inputs, self._rows.shape[1], *chunk.scaling
        self._at_once = max(1, block_bytes // (4 * self._batch * inputs))
        if chunk.raw is not None:
            self._bytes, self._samples = chunk.raw[0].data_ptr(), chunk.raw[1].contiguous()
            self._x = self._rows.new_empty(1, self._batch, inputs)
        self._compute = library().gradients

    def __call__(self, step: int, active: int, read: Read) -> Tensor:
        if self._raw is not None:
            place = 8 * step * self._count * self._batch
            self._gradients(self._x, (self._bytes, self._samples.data_ptr() + place), step, 0, active)
            return self._gradient[:active]
        for begin in range(0, active, self._at_once):
            end = min(begin + self._at_once, active)
            self._gradients(read(step, begin, end), (None, None), step, begin, end)
        return self._gradient[:active]

    def _gradients(
        self, x: Tensor, raw: tuple[int | None, int | None], step: int, begin: int, end: int
    ) -> None:
        places, numbers = (step * self._count + begin) * self._batch, begin * self._rows.shape[1]
        self._compute(
            x.data_ptr(),
            *raw,
            self._y.data_ptr() + 8 * places,
            self._weight.data_ptr() + 4 * places,
            self._rows.data_ptr() + 4 * numbers,
            self._gradient.data_ptr() + 4 * numbers,
            self._room.data_ptr(),
            end - begin,
            x.shape[1],
            *self._sizes,
        )


def product(weights: Tensor, x: Tensor, offset: Tensor, scale: float, out: Tensor) -> None:
    """Compute scale w x^T + offset for weights [C, D], samples [B, D], offsets [C]; `out` [C, B] is part of more."""
    library().logits(
        x.data_ptr(),
        weights.data_ptr(),
        offset.data_ptr(),
        out.data_ptr(),
        len(x),
        *weights.shape,
        out.stride(0),
        scale,
    )


def product_of_bytes(
    weights: Tensor, raw: tuple[Tensor, Tensor], offset: Tensor, scale: float, out: Tensor
) -> None:
    """Compute as `product` for the samples raw[1] [B] of bytes raw[0] [n, ...], in one call: other threads go on."""
    content, samples, room = raw[0], raw[1].contiguous(), weights.new_empty(TESTED, weights.shape[1])
    library().logits_of_bytes(
        content.data_ptr(),
        samples.data_ptr(),
        room.data_ptr(),
        weights.data_ptr(),
        offset.data_ptr(),
        out.data_ptr(),
        len(samples),
        *weights.shape,
        out.stride(0),
        scale,
    )


def require_cpu(torch_device: torch.device) -> None:
    """Raises EdgeflError where models are not on a CPU."""
    if torch_device.type != "cpu":
        raise EdgeflError("is for CPUs: leave it out, or add --device cpu", PLACE)


def library() -> Any:
    """Return the compiled functions.

    Raises:
        EdgeflError: there is no C compiler, or it fails.
    """
    with _one_at_a_time:
        return _library()


def is_there() -> bool:
    """Return whether the functions can be compiled here."""
    try:
        library()
    except EdgeflError:
        return False
    return True


@cache
def _library() -> Any:
    try:
        functions = compiling.load(SOURCE)
    except EdgeflError as error:
        raise EdgeflError(f"{error}; or set it to false", PLACE) from error
    functions.gradients.argtypes = [*[c_void_p] * 8, *[c_size_t] * 6, c_float, c_float]
    functions.logits.argtypes = [*[c_void_p] * 4, *[c_size_t] * 4, c_float]
    functions.logits_of_bytes.argtypes = [*[c_void_p] * 6, *[c_size_t] * 4, c_float]
    for function in (functions.gradients, functions.logits, functions.logits_of_bytes):
        function.restype = None
    return functions
