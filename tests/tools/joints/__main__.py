"""Run random combinations of features, and compare runs with small references: `make joints`.

Scenarios of two to six features are drawn with a seed, run, and checked against rules that hold for every run:
consistent tables, no crash, errors with a place and a remedy, the same bytes if repeated or resumed. A scenario that
breaks a rule is kept, reduced to the features that are needed to break it. Then random runs are compared with
references written from definitions: a band shared in TDD, handovers by A3, an asynchronous server, a cloud's clock.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from tests.tools.joints.references import asynchronous, band, cloud, handovers
from tests.tools.joints.references.reading import Compared
from tests.tools.joints.scenarios import drawn
from tests.tools.joints.trial import keep, shrunk, trial

RUNS, CASES = 300, 30
REFERENCES: dict[str, Callable[[Random, Path], Compared]] = {
    module.__name__.rpartition(".")[2]: module.compare for module in (band, handovers, asynchronous, cloud)
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, run and check scenarios; print how many completed, were refused, or stopped."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="scenarios to draw")
    parser.add_argument("--cases", type=int, default=CASES, help="runs to compare with each reference")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="only the scenario, or case, of this number")
    parser.add_argument(
        "--keep", type=Path, default=Path("joints-findings"), help="folder for scenarios that break a rule"
    )
    parser.add_argument("--whole", action="store_true", help="keep all features of these scenarios")
    parser.add_argument("--verbose", action="store_true", help="print how each scenario ended")
    options = parser.parse_args(arguments)
    os.environ["EDGEFL_OFFLINE"] = "1"
    faults = _run(options) + _compare(options)
    print(f"faults: {dict(faults) or 'none'}")
    return 1 if faults else 0


def _run(options: argparse.Namespace) -> Counter[str]:
    """Run scenarios; return the number of violations of each rule."""
    began, how, kinds, faults = time.monotonic(), Counter[str](), Counter[str](), Counter[str]()
    for number in _numbers(options, options.runs):
        draw = drawn(options.seed, number)
        ended = trial(draw)
        how[ended.how] += 1
        if ended.how != "completed":
            kinds[f"{ended.how}: {ended.kind}"] += 1
        if options.verbose:
            print(number, ended.how, *draw.features, ended.said[:300], flush=True)
        for rule, detail in ended.broken:
            faults[rule] += 1
            print(f"{rule}: number {number} of seed {options.seed}: {detail}", flush=True)
        if ended.broken:
            kept = draw if options.whole else shrunk(draw, ended.broken[0][0])
            file = keep(kept, options.keep / f"{draw.seed}-{number}")
            print(f"{', '.join(kept.features)}: {file}\n", flush=True)
    print(f"{how.total()} scenarios of seed {options.seed}, {time.monotonic() - began:.0f} s: {dict(how)}")
    for kind, many in kinds.most_common():
        print(f"{many:6} {kind}")
    return faults


def _compare(options: argparse.Namespace) -> Counter[str]:
    """Compare runs with each reference; return the number of differing runs for each."""
    faults = Counter[str]()
    for name, compare in REFERENCES.items():
        cases, many = 0, 0
        for number in _numbers(options, options.cases):
            with tempfile.TemporaryDirectory(prefix="edgefl-joint-") as scratch:
                compared = compare(Random(f"{name} {options.seed} {number}"), Path(scratch))
            cases, many = cases + 1, many + compared.many
            if compared.wrong:
                faults[f"different from the reference {name}"] += 1
                print(
                    f"{name}: case {number} of seed {options.seed}:",
                    *compared.wrong[:5],
                    sep="\n  ",
                    flush=True,
                )
        print(f"{cases} runs compared with the reference {name}, in {many} numbers")
    return faults


def _numbers(options: argparse.Namespace, many: int) -> Sequence[int]:
    return range(many) if options.only is None else [options.only] * bool(many)


if __name__ == "__main__":
    sys.exit(main())
