"""Damage run and study directories at random and read them: `make damage`, or `python -m tests.tools.damage`.

Every command that reads a run directory, and `watch`, `resume`, `study` and `merge`, must either succeed or
end without a traceback, with exit code 2 (3 if a study waits for a claim) and one message that names a file. Cases
are numbered; seed and number determine a case.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from random import Random
from types import FrameType

from matplotlib.figure import Figure

from tests.tools import damage_bases as bases
from tests.tools.damages import damage, damage_columns, restore_rights
from tests.tools.fuzz_calls import CallResult, call

CASES = 100
CPU_S, WALL_S = 60.0, 60
CODES = (0, 2, 3)
READS = (
    *("compare", "costs", "fairness", "network", "theory", "drift", "sweep", "settings", "choose"),
    *("day", "report", "export", "watch"),
)
OPTIONS = {
    "watch": ["--once"],
    "export": ["--to", "tensorboard", "--out", "exported"],
    "day": ["--out", "read"],
    "report": ["--out", "report.html"],
    "choose": ["--by", "test", "--out", "read"],
}


def commands(base: str, folder: Path) -> Iterator[list[str]]:
    """Yield the command lines to try on a directory; those that change it come last."""
    for name in READS:
        yield [name, base, *OPTIONS.get(name, ["--out", "read"])]
        if name in ("compare", "costs", "report"):
            yield [name, base, *OPTIONS.get(name, ["--out", "read"]), *["--partial"] * (name != "report")]
    yield ["papers", "--runs", base]
    if base in bases.PLANS:
        yield ["merge", base, base, "--out", "merged"]
        yield ["resume", _left(folder / base)]
        yield ["study", f"{base}.yaml", "--out", base, "--executor", "inline", "--device", "cpu"]
    else:
        yield ["resume", base]
        yield ["validate", f"{base}/scenario.yaml"]


def _left(study: Path) -> str:
    """Return an incomplete run of a study, or any run."""
    for file in sorted(study.rglob("run.json")):
        with contextlib.suppress(OSError, ValueError):
            if '"completed"' not in file.read_text():
                return str(file.parent.relative_to(study.parent))
    return f"{study.name}/avg/seed-4"


def refusals(whole: Path, base: str) -> dict[str, str]:
    """Return the messages, by command, of commands that read an undamaged directory; '' without an error."""
    with tempfile.TemporaryDirectory(prefix="edgefl-damage-") as scratch:
        folder = Path(scratch)
        shutil.copytree(whole / base, folder / base)
        lines = [line for line in commands(base, folder) if line[0] in READS]
        return {" ".join(line): _call(line, folder).err for line in lines}


def try_case(
    seed: int, number: int, whole: Path, known: Callable[[str], Mapping[str, str]], verbose: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the broken rules for a damaged copy of a directory, each with the damage and the output."""
    rng = Random(f"{seed} {number}")
    base = rng.choice((bases.STUDY, bases.STUDY, bases.GRID, bases.MOVING, bases.LEFT))
    with tempfile.TemporaryDirectory(prefix="edgefl-damage-") as scratch:
        folder = Path(scratch)
        shutil.copytree(bases.made(whole, base), folder / base)
        for file in whole.glob("*.yaml"):
            shutil.copy(file, folder)
        done = "; ".join(damage(folder / base, rng) for _ in range(rng.choice((1, 1, 1, 2, 3))))
        done = f"case {number}: {done}"
        yield from _tried(commands(base, folder), folder, base, known, done, verbose)
        restore_rights(folder / base)


def try_columns(
    whole: Path, known: Callable[[str], Mapping[str, str]], verbose: bool = False
) -> Iterator[tuple[str, str]]:
    """Damage each column of a moving run's tables in turn, and read the run; yield the broken rules."""
    base = bases.MOVING
    with tempfile.TemporaryDirectory(prefix="edgefl-damage-") as scratch:
        folder = Path(scratch)
        shutil.copytree(bases.made(whole, base), folder / base)
        for done in damage_columns(folder / base):
            lines = [line for line in commands(base, folder) if line[0] in READS]
            yield from _tried(lines, folder, base, known, done, verbose)


def _tried(
    lines: Iterable[list[str]],
    folder: Path,
    base: str,
    known: Callable[[str], Mapping[str, str]],
    done: str,
    verbose: bool,
) -> Iterator[tuple[str, str]]:
    for command in lines:
        ended = _call(command, folder)
        if verbose:
            print(done, command, ended.code, ended.err.strip()[-300:], flush=True)
        line = " ".join(command)
        if rule := broken(ended, base, partial(_said_of_whole, known, base, line)):
            yield rule, f"{done}\n{line}: {ended.code}\n{ended.err[-900:]}{ended.crash[-1500:]}"


def _said_of_whole(known: Callable[[str], Mapping[str, str]], base: str, line: str) -> str:
    return known(base).get(line, "")


def broken(ended: CallResult, base: str, known: Callable[[], str]) -> str:
    """Return the rule that a command's exit breaks, or ''.

    Args:
        known: returns the command's message about the undamaged directory; called only if needed.
    """
    if ended.crash or "Traceback" in ended.err:
        return "no traceback"
    if ended.code not in CODES:
        return "exit code 0, 2 or 3"
    if ended.code == 2 and base not in ended.err and ended.err != known():
        return "errors name a file"
    return ""


def _call(command: Sequence[str], folder: Path) -> CallResult:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("waits for ever")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(WALL_S)
    try:
        return call(command, folder, CPU_S)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main(arguments: Sequence[str] | None = None) -> int:
    """Damage directories, run commands on them, and report broken rules."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="only the case of this number")
    parser.add_argument(
        "--whole", type=Path, help="folder of the undamaged directories; they are made if missing"
    )
    parser.add_argument("--columns", action="store_true", help="damage each column of each table instead")
    parser.add_argument("--verbose", action="store_true", help="print how each command ended")
    options = parser.parse_args(arguments)
    os.environ["EDGEFL_OFFLINE"] = "1"
    began, found = time.monotonic(), Counter[str]()
    savefig, Figure.savefig = Figure.savefig, _left_empty  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(prefix="edgefl-whole-") as scratch:
        whole = options.whole or Path(scratch)
        whole.mkdir(exist_ok=True)
        known = cache(partial(refusals, whole))
        numbers = range(options.cases) if options.only is None else [options.only]
        tried = (try_case(options.seed, number, whole, known, options.verbose) for number in numbers)
        for rule, detail in (
            try_columns(whole, known, options.verbose) if options.columns else chain.from_iterable(tried)
        ):
            found[rule] += 1
            print(f"{rule}: {detail}\n", flush=True)
    Figure.savefig = savefig  # type: ignore[method-assign]
    what = "each column" if options.columns else f"{options.cases} cases of seed {options.seed}"
    print(f"{what}, {time.monotonic() - began:.0f} s: {dict(found) or 'good'}")
    return 1 if found else 0


def _left_empty(figure: Figure, path: Path, **choices: object) -> None:
    Path(path).write_bytes(b"")


if __name__ == "__main__":
    sys.exit(main())
