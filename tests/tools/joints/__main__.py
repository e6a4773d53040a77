"""Run random combinations of features, and small models beside edgefl: `make joints`, `python -m tests.tools.joints`.

Scenarios of two to six features are drawn with a seed, run, and judged by rules that hold for every run: books that
agree, no crash, refusals with a place, the same bytes again, and after a run that was left. A scenario that breaks a
rule is kept, with as few features as still break it.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.tools.joints.scenarios import drawn
from tests.tools.joints.trial import keep, shrunk, trial

RUNS = 300


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, run, judge; print what became of how many."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="scenarios to draw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="only the scenario of this number")
    parser.add_argument(
        "--keep", type=Path, default=Path("joints-findings"), help="folder for what breaks a rule"
    )
    parser.add_argument("--whole", action="store_true", help="keep all features of what breaks a rule")
    parser.add_argument("--verbose", action="store_true", help="print how each scenario ended")
    options = parser.parse_args(arguments)
    os.environ["EDGEFL_OFFLINE"] = "1"
    began, how, kinds, found = time.monotonic(), Counter[str](), Counter[str](), Counter[str]()
    for number in range(options.runs) if options.only is None else [options.only]:
        draw = drawn(options.seed, number)
        ended = trial(draw)
        how[ended.how] += 1
        if ended.how != "completed":
            kinds[f"{ended.how}: {ended.kind}"] += 1
        if options.verbose:
            print(number, ended.how, *draw.features, ended.said[:300], flush=True)
        for rule, detail in ended.broken:
            found[rule] += 1
            print(f"{rule}: number {number} of seed {options.seed}: {detail}", flush=True)
        if ended.broken:
            kept = draw if options.whole else shrunk(draw, ended.broken[0][0])
            print(
                f"{', '.join(kept.features)}: {keep(kept, options.keep / f'{draw.seed}-{number}')}\n",
                flush=True,
            )
    print(
        f"{sum(how.values())} scenarios of seed {options.seed}, {time.monotonic() - began:.0f} s: {dict(how)}"
    )
    for kind, many in kinds.most_common():
        print(f"{many:6} {kind}")
    print(f"faults: {dict(found) or 'none'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
