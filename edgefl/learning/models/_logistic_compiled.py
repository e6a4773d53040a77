"""The gradients and logits of logistic regression by `_logistic.c`, compiled on this machine when asked."""

import ctypes
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from ctypes import c_float, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from edgefl.errors import EdgeflError, clipped
from edgefl.learning.models import ChunkOfDevices, Read

SOURCE = Path(__file__).with_name("_logistic.c")
COMPILERS = ("cc", "gcc", "clang")
NATIVE = "-mcpu=native" if platform.machine().lower() in ("arm64", "aarch64") else "-march=native"
OPTIONS = ("-O3", NATIVE, "-std=gnu11", "-fPIC", "-shared")
MOST_LANES = 16
PLACE = ("learning", "model", "compiled")


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


def require_cpu(torch_device: torch.device) -> None:
    """Raises EdgeflError where models are not on a CPU."""
    if torch_device.type != "cpu":
        raise EdgeflError("is for CPUs: leave it out, or add --device cpu", PLACE)


@cache
def library() -> Any:
    """Compile and load the functions: a second, once in a process, and nothing is left behind.

    Raises:
        EdgeflError: there is no C compiler, or it fails.
    """
    words = compiler()
    if words is None:
        raise EdgeflError(
            f"there is no C compiler ({os.environ.get('CC') or ', '.join(COMPILERS)}): install one (apt-get install"
            " gcc), name it in the variable CC, or leave compiled out",
            PLACE,
        )
    command = [*words, *OPTIONS, *shlex.split(os.environ.get("CFLAGS", ""))]
    with tempfile.TemporaryDirectory(prefix="edgefl-") as folder:
        made = Path(folder) / "logistic.so"
        found = subprocess.run([*command, str(SOURCE), "-o", str(made)], capture_output=True, text=True)
        if found.returncode:
            told = clipped(found.stderr.strip(), 300)
            raise EdgeflError(
                f"{shlex.join(command)} fails ({told}): name another compiler in the variable CC, or leave"
                " compiled out",
                PLACE,
            )
        try:
            functions = ctypes.CDLL(str(made))
        except OSError as error:
            raise EdgeflError(
                f"what was compiled cannot be loaded ({error}): name a folder for programs in the variable TMPDIR,"
                " or leave compiled out",
                PLACE,
            ) from error
    functions.gradients.argtypes = [*[c_void_p] * 8, *[c_size_t] * 6, c_float, c_float]
    functions.logits.argtypes = [*[c_void_p] * 4, *[c_size_t] * 4, c_float]
    functions.gradients.restype = functions.logits.restype = None
    return functions


def compiler() -> list[str] | None:
    """Return the command of the C compiler: the variable CC, or what is installed; None: there is none."""
    named = shlex.split(os.environ.get("CC", ""))
    there = [named] if named else [[name] for name in COMPILERS]
    return next((words for words in there if shutil.which(words[0])), None)
