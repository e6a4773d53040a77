"""What a CPU computes in hardware, where training has to know it."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")  # Linux's; other systems have none
LISTS = ("flags", "features")  # of x86 and of ARM
BF16 = {"avx512_bf16", "amx_bf16", "bf16"}


def has_bf16() -> bool | None:
    """Return whether this CPU has instructions for products in bfloat16; None: the system does not say.

    PyTorch answers yes for every AVX-512 processor, as it can emulate them.
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
    """Return what the user of `learning.local.precision: bf16` on this CPU should know; None: nothing."""
    slow = "training takes twice as long as with float32, ten times where it has no AVX-512 either"
    match has_bf16():
        case True:
            return None
        case False:
            return (
                f"learning.local.precision is bf16, and this processor has no bfloat16 instructions: {slow}"
            )
        case None:
            return (
                "learning.local.precision is bf16, and this system does not say whether its processor has bfloat16"
                f" instructions: without them {slow}"
            )
