"""Set and find processor features that matter for training: TF32 and bfloat16."""

from pathlib import Path

import torch

CPUINFO = Path("/proc/cpuinfo")  # exists on Linux only
LISTS = ("flags", "features")  # name of the line that lists features, on x86 and on ARM
BF16 = {"avx512_bf16", "amx_bf16", "bf16"}


def repeat_on_gpus() -> None:
    """Make GPUs compute float32 without TF32, and compute convolutions with the same bits in each run.

    By default PyTorch lets cuDNN round the inputs of float32 convolutions to TF32's 10 bits, and choose algorithms
    that add in any order (PyTorch's pages CUDA semantics and Reproducibility).
    """
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False


def has_bf16() -> bool | None:
    """Return whether this CPU has instructions for products in bfloat16, or None if unknown.

    PyTorch cannot be used here: it reports these instructions for every AVX-512 processor, since it can emulate them.
    """
    try:
        text = CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        name, _, instructions = line.partition(":")
        if name.strip().lower() in LISTS:
            return not BF16.isdisjoint(instructions.split())
    return None


def bf16_note() -> str | None:
    """Return a note on slow `learning.local.precision: bf16`, or None if the CPU has bfloat16 instructions."""
    slow = "training takes twice as long as with float32, and ten times as long if the processor lacks AVX-512 too"
    match has_bf16():
        case True:
            return None
        case False:
            return (
                f"learning.local.precision is bf16, but this processor has no bfloat16 instructions: {slow}"
            )
        case None:
            return (
                "learning.local.precision is bf16, but it is unknown whether this processor has bfloat16 "
                f"instructions: without them {slow}"
            )
