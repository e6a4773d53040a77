"""Run the golden runs and training tests with other processors' instruction sets, which round differently.

make paths
python -m tests.tools.code_paths avx2 -x
python -m tests.tools.code_paths -m ""     with the expensive tests, as `make nightly` does
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Name -> environment that limits the instruction sets of PyTorch's loops, MKL, oneDNN and NumPy.
# MKL reads MKL_ENABLE_INSTRUCTIONS only on Intel's processors; MKL_CBWR=COMPATIBLE limits it to SSE2 on all
# processors.
PATHS: Mapping[str, Mapping[str, str]] = {
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    },
    "sse": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_CBWR": "COMPATIBLE",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    },
}
# tests of code that multiplies matrices or whose results must not change
TESTS = [
    "tests/golden/test_golden_runs.py::test_run_is_what_it_was",
    *(
        f"tests/unit/learning/{name}.py"
        for name in (
            "local/test_local_training",
            "modules/test_convolutions",
            "scores/test_evaluation",
            "local/test_padding",
            "test_algorithm_verbs",
            "test_same_bytes",
            "federation/test_resume",
            "federation/test_theory",
        )
    ),
]


def environment(path: str) -> dict[str, str]:
    """Return this process's environment plus that of a code path."""
    return {**os.environ, **PATHS[path]}


def main(paths: Sequence[str], options: Sequence[str]) -> int:
    """Run the tests under each path, all paths at once; return the number of paths under which some fail."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-m", "not nightly", *options, *TESTS]
    running = {
        path: subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(path),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for path in paths
    }
    failed = 0
    for path, process in running.items():
        said, _ = process.communicate()
        print(
            f"code path {path}: {' '.join(f'{k}={v!r}' for k, v in PATHS[path].items())}\n{said}", flush=True
        )
        failed += process.returncode != 0
    return failed


if __name__ == "__main__":
    chosen = [word for word in sys.argv[1:] if word in PATHS]
    sys.exit(main(chosen or list(PATHS), [word for word in sys.argv[1:] if word not in PATHS]))
