"""Inject each named fault of tests/faults, and report whether its check catches it.

python -m tests.tools.faults [IDS]           `make faults`; faults whose id contains one of IDS, by default all
python -m tests.tools.faults --some 10       some, drawn with a seed, as `make nightly` does
python -m tests.tools.faults --write         keep the results in tests/faults/results.csv, for `make trust`
"""

import argparse
import csv
import random
import sys
from collections.abc import Sequence

from tests.faults import Fault
from tests.faults.table import FAULTS, RESULTS
from tests.tools.isolated import FAILED, PASSED, SLOW, run_pytest, warm

SEED = 0


def chosen(ids: Sequence[str], some: int | None) -> list[Fault]:
    """Choose faults by parts of their ids, or draw some at random."""
    faults = [fault for fault in FAULTS if not ids or any(part in fault.id for part in ids)]
    return faults if some is None else random.Random(SEED).sample(faults, min(some, len(faults)))


def verdict(fault: Fault) -> tuple[str, float, str]:
    """Inject a fault and run its check; return the verdict, the CPU time in s, and the output of pytest.

    If a check exceeds its time limit, the verdict is `slow`, which counts as not caught: such a check tests nothing.
    """
    code, text, cpu_s = run_pytest([fault.check], fault.inject)
    return {FAILED: "caught", SLOW: "slow", PASSED: "not caught"}.get(code, "not tried"), cpu_s, text


def without_fault(faults: Sequence[Fault]) -> bool:
    """Run every check without a fault; all must pass."""
    checks = sorted({fault.check for fault in faults})
    code, text, took_s = run_pytest(checks, limit_s=1800.0)
    print(f"{len(checks)} checks without a fault: {'pass' if code == PASSED else 'fail'}, {took_s:.0f} s")
    if code != PASSED:
        print(text)
    return code == PASSED


def main() -> int:
    """Try the faults; return 1 unless all are caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--some", type=int)
    parser.add_argument("--write", action="store_true")
    parser.add_argument(
        "--verbose", action="store_true", help="print the output of pytest for faults that are not caught"
    )
    asked = parser.parse_args()
    warm()
    faults = chosen(asked.ids, asked.some)
    if not without_fault(faults):
        return 1
    told = {}
    for fault in faults:
        said, cpu_s, text = verdict(fault)
        told[fault] = said, f"{cpu_s:.1f}"
        print(f"{said:10} {cpu_s:5.1f} s  {fault.id}: {fault.what}", flush=True)
        if said == "not tried" or (asked.verbose and said != "caught"):
            print(text)
    caught = sum(said == "caught" for said, _ in told.values())
    print(f"{caught} of {len(faults)} caught")
    if asked.write:
        with RESULTS.open("w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["id", "verdict", "cpu_s"])
            rows.writerows([fault.id, *found] for fault, found in told.items())
    return 0 if caught == len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
