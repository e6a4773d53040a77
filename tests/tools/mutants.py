"""Draw mutants of the code with a seed, run the tests of their modules, and list the mutants that survive.

python -m tests.tools.mutants             `make mutants`: 200, the same number of each package
python -m tests.tools.mutants --each 10   fewer
python -m tests.tools.mutants --write     keep the results in tests/faults/mutants.csv, for `make trust`
python -m tests.tools.mutants --write --again    try survivors again, after tests were written

Survivors without any visible effect are listed in tests/faults/equivalent.csv, with the reason.
"""

import argparse
import csv
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tests.faults.table import EQUIVALENT, MUTANTS
from tests.tools.isolated import FAILED, INTERRUPTED, PASSED, ROOT, SLOW, run_pytest, warm
from tests.tools.mutating import FOLDERS, Mutant, drawn

SEED, EACH, LIMIT_S, ROOM_LIMIT_S, MOST_USERS = 38, 50, 40.0, 400.0, 6
# first, verdict: first and last verdict; since: why the verdicts differ (tests were newly `chosen` or `written`)
COLUMNS = ("seed", "room", "mutant", "first", "verdict", "by", "since")
TIMES = 3.0  # tests of a mutant time out after this many times the time they take without the mutant
THEORY = {
    "channel": (
        "test_channel_fading",
        "test_channel_large_scale",
        "test_channel_sharing",
        "test_channel_transfer",
    ),
    "engine": ("test_handover_rate", "test_background_traffic", "test_interference_shortcut"),
    "learning": ("test_learning_drift", "test_convergence_bound"),
    "analysis": ("test_sequential", "test_convergence_bound"),
}
WHOLE_RUNS = {
    "channel": ["tests/golden"],
    "engine": ["tests/golden"],
    "learning": ["tests/golden"],
    "analysis": ["tests/unit/analysis/test_load.py", "tests/unit/analysis/test_comparison.py"],
}
# modules without a test file of their name -> tests that cover them together with other modules
OTHERS = {
    "edgefl/engine/federation/plan.py": ("engine/test_power_models",),
    "edgefl/learning/data/device_data.py": ("learning/updates/test_members",),
    "edgefl/engine/federation/deciding/": ("engine/federation/test_deciding",),
    "edgefl/engine/federation/rounds.py": (
        "engine/federation/test_server",
        "engine/federation/test_deciding",
    ),
    "edgefl/engine/federation/stage_run.py": (
        "engine/federation/test_server",
        "engine/federation/test_clock",
        "engine/test_servers",
    ),
    "edgefl/engine/backgrounds/": ("engine/test_background_trace",),
    "edgefl/engine/air/progressive.py": ("engine/federation/test_reestablishment",),
    "edgefl/engine/parts.py": ("end_to_end/test_not_finite",),
    "edgefl/engine/cells/serving_cells.py": ("engine/cells/test_handover", "engine/cells/test_network"),
    "edgefl/engine/class_settings.py": ("engine/test_classes",),
    "edgefl/engine/air/radio_settings.py": ("engine/air/test_radio", "engine/air/test_presets"),
    "edgefl/engine/air/air.py": ("engine/air/test_radio",),
    "edgefl/engine/air/propagation.py": ("engine/air/test_indoors", "engine/air/test_indoors_by_trip"),
    "edgefl/learning/models/": ("learning/test_models", "learners/test_model_size"),
    "edgefl/engine/air/radio.py": ("engine/federation/test_reestablishment",),
    "edgefl/learning/partitions/_label_sets.py": ("learning/test_partitions_staying",),
    "edgefl/learning/local/chunk_training.py": (
        "learning/local/test_local_training",
        "learning/test_algorithm_verbs",
    ),
    "edgefl/learning/federation/stages.py": ("end_to_end/test_overlap",),
    "edgefl/learning/federation/kept_models.py": ("end_to_end/test_kept_models",),
    "edgefl/learning/federation/clairvoyance.py": ("learning/test_drift_methods",),
    "edgefl/learning/federation/round_work.py": (
        "learning/test_partial_work",
        "learning/local/test_beside_pytorch",
    ),
    "channel/many.py": ("channel/test_many",),
    "channel/sight.py": ("channel/test_large_scale",),
    "analysis/runs/reading.py": ("analysis/test_load",),
    "analysis/runs/run_folders.py": ("analysis/test_any_runs",),
    "analysis/reports/theory.py": ("analysis/test_theory_figure",),
    "analysis/measures/drift": ("analysis/test_drift", "analysis/test_drift_figure"),
    "analysis/reports/drift": ("analysis/test_drift", "analysis/test_drift_figure"),
    "analysis/figures": ("analysis/test_presentation", "analysis/test_comparison", "analysis/test_settings"),
    "analysis/html": ("analysis/html/test_answer", "end_to_end/test_report"),
    "analysis/reports/question.py": ("end_to_end/test_question",),
    "analysis/reports/network.py": ("analysis/test_metrics", "analysis/test_network_course"),
    "analysis/page/report.py": ("analysis/test_presentation",),
    "analysis/reports": ("analysis/test_comparison", "analysis/test_costs"),
}
UNIT = ROOT / "tests" / "unit"


def stages(mutant: Mutant) -> list[list[str]]:
    """Return the groups of tests for a mutant, in the order in which they are tried."""
    mirrored = mirrors(mutant.path)
    others = [test for part, tests in OTHERS.items() if mutant.path.startswith(part) for test in tests]
    importing = [file for file in users(mutant.module) if file not in mirrored][:MOST_USERS]
    own_laws = users(mutant.module, "theory")
    laws = [law for name in THEORY[mutant.room] if (law := f"tests/theory/{name}.py") not in own_laws]
    groups = (
        mirrored,
        [f"tests/{'' if test.startswith('end_to_end/') else 'unit/'}{test}.py" for test in others],
        importing,
        own_laws,
        WHOLE_RUNS[mutant.room],
        laws,
        [room_tests(mutant.room)],
    )
    return [group for group in groups if group]


def room_tests(room: str) -> str:
    """Return the folder of a package's unit tests, which is the last group and takes a minute or two."""
    return f"tests/unit/{room}"


def mirrors(path: str) -> list[str]:
    """Return the unit tests with a module's name or, if there are none, the unit tests with its folder's name."""
    inside = Path(path.removeprefix("edgefl/"))
    name = inside.stem.strip("_")
    for folder, wanted in ((inside.parent, name), (inside.parent.parent, inside.parent.name)):
        for at in (folder, folder.parent):
            singular = wanted.removesuffix("s")
            found = [UNIT / at / f"test_{one}.py" for one in dict.fromkeys((wanted, singular, f"{wanted}s"))]
            if there := [str(file.relative_to(ROOT)) for file in found if file.exists()]:
                return there
    return []


@lru_cache
def users(module: str, kind: str = "unit") -> list[str]:
    """Return the tests of a kind, `unit` or `theory`, that import a module, also by name from its package."""
    package, _, name = (re.escape(part) for part in module.rpartition("."))
    whole = re.escape(module)
    found = re.compile(rf"(from {whole} import|import {whole}\b|from {package} import .*\b{name}\b)")
    files = sorted((ROOT / "tests" / kind).rglob("test_*.py"))
    return [str(file.relative_to(ROOT)) for file in files if found.search(file.read_text())]


def tried(mutant: Mutant) -> tuple[str, str]:
    """Try a mutant; return `killed`, `timed out`, `survived` or `not tried`, and the test or error responsible."""
    for group in stages(mutant):
        limit_s = LIMIT_S if group != [room_tests(mutant.room)] else ROOM_LIMIT_S
        code, text, _ = run_pytest(group, mutant.inject, limit_s=limit_s)
        if code == SLOW:
            usual_s = _usual_s(tuple(group))
            if usual_s is None:
                continue
            if TIMES * usual_s > limit_s:
                code, text, _ = run_pytest(group, mutant.inject, limit_s=TIMES * usual_s)
            if code == SLOW:
                return "timed out", group[0]
        if code == FAILED or (code == INTERRUPTED and "INTERNALERROR" not in text):
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
            return "killed", failed[1].partition("[")[0] if failed else group[0]
        if code != PASSED:
            return "not tried", text[-500:]
    return "survived", ""


@lru_cache
def _usual_s(group: tuple[str, ...]) -> float | None:
    """Return the CPU time in s of tests without a mutant, or None if it exceeds a group's limit."""
    code, _, took_s = run_pytest(group, limit_s=LIMIT_S)
    return None if code == SLOW else took_s


def equivalents() -> dict[str, str]:
    """Read the mutants without any visible effect, each with its reason."""
    with EQUIVALENT.open() as file:
        return {row["mutant"]: row["why"] for row in csv.DictReader(file)}


def main(words: Sequence[str] | None = None) -> int:
    """Try the mutants; return 0 unless one could not be tried."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--each", type=int, default=EACH)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--rooms", nargs="*", default=list(FOLDERS))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--go-on", action="store_true", help="leave out mutants with stored results")
    parser.add_argument("--again", action="store_true", help="only survivors in the stored results")
    asked = parser.parse_args(words)
    warm()
    known, kept = equivalents(), read()
    own = {row["mutant"]: row for row in kept if row["seed"] == str(asked.seed)}
    if not (asked.go_on or asked.again):
        kept = [row for row in kept if row not in own.values()]
        own = {}
    found: dict[str, list[str]] = {room: [] for room in asked.rooms}
    for mutant in drawn(asked.seed, asked.each, asked.rooms):
        row = own.get(mutant.id)
        if (row is None) if asked.again else (row is not None):
            continue
        if row and row["verdict"] != "survived":
            continue
        verdict, by = ("equivalent", known[mutant.id]) if mutant.id in known else tried(mutant)
        found[mutant.room].append(verdict)
        print(f"{verdict:10} {mutant.id}  (line {mutant.line}) {by}", flush=True)
        if row is None:
            row = dict.fromkeys(COLUMNS, "")
            row |= {"seed": str(asked.seed), "room": mutant.room, "mutant": mutant.id, "first": verdict}
            kept.append(row)
        row |= {"verdict": verdict, "by": by or row["by"]}  # a survivor keeps its entry
        if asked.write:
            write(kept)
    for room, of_room in found.items():
        print(f"{room}: " + ", ".join(f"{many} {verdict}" for verdict, many in Counter(of_room).items()))
    return 1 if any("not tried" in of_room for of_room in found.values()) else 0


def read() -> list[dict[str, str]]:
    """Read the stored results: each mutant's first and last verdict, and the tests responsible."""
    with MUTANTS.open() as file:
        return list(csv.DictReader(file))


def write(rows: Sequence[dict[str, str]]) -> None:
    """Store results."""
    with MUTANTS.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
