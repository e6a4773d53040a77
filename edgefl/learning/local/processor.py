"""Hardware features of the CPU that matter for training."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")  # Linux's; other systems have none
LISTS = ("flags", "features")  # of x86 and of ARM
BF16 = {"avx512_bf16", "amx_bf16", "bf16"}


def has_bf16() -> bool | None:
    """Return whether this CPU has instructions for products in bfloat16, or None if the system does not say.

    PyTorch says yes for every AVX-512 processor, because it can emulate them.
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
    """Return a note on `learning.local.precision: bf16` for this CPU, or None if it has the instructions."""
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
                "learning.local.precision is bf16, but this system does not say whether its processor has "
                f"bfloat16 instructions: without them {slow}"
            )
