"""Try thousands of changed files on the command line: `make fuzz`, or `python -m tests.tools.fuzz`.

Shipped scenarios and studies are changed at random, within the schema and beyond, and passed to `edgefl validate`;
others are made small and passed to `edgefl run`; scenarios with changed map files go to `edgefl validate`. Bad input
must end with one message of reasonable length and exit code 2 within half a minute, and leave nothing behind. A
completed run must pass `invariants`, and its own scenario.yaml must give the same tables again. Cases are numbered;
seed and number determine a case.
"""

import argparse
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tools.fuzz_calls import CallResult, call
from tests.tools.fuzz_maps import map_case
from tests.tools.fuzz_mutations import FuzzCase, case
from tests.tools.fuzz_runs import run_case
from tests.tools.fuzz_traces import trace_case
from tests.tools.invariants import check_run

VALIDATE, MAP, TRACE, RUN = 3000, 250, 250, 300  # number of cases
# the slowest case draws fields of 0.8 GB for nineteen sites 500 m apart, in 8 s on an idle processor
CPU_S = {"validate": 25.0, "run": 40.0}
LONGEST_MESSAGE = 2000
MEMORY_BYTES = 16_000_000_000  # limit of address space; edgefl must refuse cases that need more
# errors that may occur only after a run has begun
KNOWN_LATE = re.compile(r"has had no device( with a link)? for|training diverged|has any data")
# the error begins with `a.yaml:14 `, possibly after the name of a study's run, or is about a whole file
PLACED = re.compile(
    r"edgefl: error: (?s:.{,400}?)(\S:\d+[ :]|: cannot be read|: is a directory|: is larger than)"
)


@dataclass(frozen=True)
class Finding:
    """A rule that a case broke."""

    rule: str
    mode: str
    number: int
    detail: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the cases; keep the files that break a rule and print where they are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--validate", type=int, default=VALIDATE, help="files to validate")
    parser.add_argument("--map", type=int, default=MAP, help="maps to validate a scenario with")
    parser.add_argument("--trace", type=int, default=TRACE, help="traces to validate a scenario with")
    parser.add_argument("--run", type=int, default=RUN, help="scenarios to run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="only the case of this number")
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-findings"), help="folder for files that break a rule"
    )
    parser.add_argument("--verbose", action="store_true", help="print how each case ended")
    options = parser.parse_args(arguments)
    os.environ["EDGEFL_OFFLINE"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.RLIM_INFINITY))
    began, findings, outcomes = time.monotonic(), [], Counter[str]()
    for mode, many in (
        ("validate", options.validate),
        ("map", options.map),
        ("trace", options.trace),
        ("run", options.run),
    ):
        for number in range(many) if options.only is None else [options.only] * bool(many):
            new, outcome = try_case(mode, options.seed, number, options.keep)
            findings += new
            outcomes[f"{mode}: {outcome.partition(':')[0]}"] += 1
            if options.verbose:
                print(f"{mode} {number}: {outcome}", flush=True)
            for finding in new:
                print(
                    f"{finding.rule}: {mode} case {number} of seed {options.seed}\n{finding.detail}\n",
                    flush=True,
                )
    print(f"{time.monotonic() - began:.0f} s")
    for text, many in sorted(outcomes.items()):
        print(f"{many:6} {text}")
    for rule, many in Counter(finding.rule for finding in findings).items():
        print(f"{many:6} cases broke the rule: {rule}")
    if findings:
        print(f"files are in {options.keep}")
    return 1 if findings else 0


def try_case(mode: str, seed: int, number: int, keep: Path) -> tuple[list[Finding], str]:
    """Try one case in a folder of its own; keep its files if it broke a rule.

    Returns:
        The rules that the case broke, and how it ended.
    """
    made = {"validate": case, "map": map_case, "trace": trace_case, "run": run_case}[mode](seed, number)
    with tempfile.TemporaryDirectory(prefix="edgefl-fuzz-") as name:
        folder = Path(name)
        for file, content in made.files.items():
            (folder / file).write_bytes(content)
        try:
            broken, ended = _run(made, folder) if mode == "run" else _validated(made, folder)
        except BaseException:
            _keep(made, keep / f"{mode}-{seed}-{number}")
            raise
    if broken:
        _keep(made, keep / f"{mode}-{seed}-{number}")
    return [Finding(rule, mode, number, detail) for rule, detail in broken], ended


def _validated(made: FuzzCase, folder: Path) -> tuple[list[tuple[str, str]], str]:
    outcome = call(["validate", made.main, "--device", "cpu"], folder, CPU_S["validate"])
    broken = list(_broken(outcome))
    if outcome.code == 2 and outcome.err and not PLACED.match(outcome.err):
        broken.append(("errors name file and line", outcome.err[:LONGEST_MESSAGE]))
    left = {path.name for path in folder.iterdir()} - set(made.files)
    if left:
        broken.append(("nothing is written", f"validate left {sorted(left)}"))
    return broken, "accepted" if outcome.code == 0 else f"refused: {_first_line(outcome)}"


def _run(made: FuzzCase, folder: Path) -> tuple[list[tuple[str, str]], str]:
    outcome = call(["run", made.main, "--out", "out", "--device", "cpu"], folder, CPU_S["run"])
    broken, out = list(_broken(outcome)), folder / "out"
    if outcome.code or outcome.crash:
        late = out.exists() and not KNOWN_LATE.search(outcome.err) and not outcome.crash
        if late:
            broken.append(("a run is refused before it begins", outcome.err))
        return broken, f"{'ended with an error' if out.exists() else 'refused'}: {_first_line(outcome)}"
    broken += [("tables agree", problem) for problem in check_run(out)]
    again = call(["run", "out/scenario.yaml", "--out", "again", "--device", "cpu"], folder, CPU_S["run"])
    broken += list(_broken(again))
    broken += [("the same run again", text) for text in _differences(out, folder / "again")]
    return broken, "completed"


def _broken(outcome: CallResult) -> Iterator[tuple[str, str]]:
    """Yield the rules that a call broke, among the rules that hold for every call."""
    if outcome.crash.startswith("Hang"):
        yield "no hang", outcome.crash
    elif outcome.crash:
        yield "no traceback", "\n".join(outcome.crash.splitlines()[-9:])
    elif outcome.code not in (0, 2):
        yield "exit code 0 or 2", f"exit code {outcome.code}: {outcome.err[:LONGEST_MESSAGE]}"
    message = outcome.err.strip().removeprefix("edgefl: error: ")
    if len(message) > LONGEST_MESSAGE:
        yield "messages are short", f"{len(message)} characters: {message[:300]}..."
    if outcome.code == 2 and not outcome.err.strip():
        yield "errors are told", "exit code 2 without a message"
    if outcome.warned:
        yield "no numerical warnings", "\n".join(outcome.warned)


def _differences(first: Path, second: Path) -> Iterator[str]:
    """Yield the files of two run directories that differ, except run.json (wall times) and the journal."""
    if not second.is_dir():
        yield "the run's own scenario.yaml does not run"
        return
    for file in sorted([*first.glob("*.csv"), first / "scenario.yaml"]):
        if file.read_bytes() != (second / file.name).read_bytes():
            yield f"{file.name} differs"


def _first_line(outcome: CallResult) -> str:
    return next(iter(outcome.err.strip().splitlines()), "")[:300]


def _keep(made: FuzzCase, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file, content in made.files.items():
        (folder / file).write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
