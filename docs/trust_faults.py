"""The last section of docs/trust.md: faults that tests must notice, and mutants, as their last runs left them."""

import csv
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.faults.table import FAULTS, FIRST_SCORE, MUTANTS, RESULTS

HEAD = "## Would a fault be noticed?\n"
WORDS = """
A law that cannot fail says nothing. Each line below is a fault that `make faults` injects into the code, and the test
that must then fail. They were written before their tests were tried: {first}; of the others
twelve got a better test, and five name another one that was there. By their last runs **{now}** are caught.
"""
MUTATED = """\
### Mutants

Beside them `make mutants` draws 200 changes with a seed, of which those below have been tried:
an operator, a constant or a bound inside a function becomes
another one. Each is tried against the unit tests of its module, then against small whole runs and its room's laws. A
mutant that no test could tell from the code, because it changes nothing that anyone could see, is equivalent and does
not count. Of the others the tests kill **{score:.0%}**.
"""


def text() -> str:
    """Make the section from the tables of both runs."""
    results = {row["id"]: row for row in _rows(RESULTS)}
    caught = sum(row["verdict"] == "caught" for row in results.values())
    now = f"{caught} of {len(FAULTS)}"
    return "\n".join([HEAD + WORDS.format(first=FIRST_SCORE, now=now), *_faults(results), _mutants()])


def _faults(results: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    head = ("fault", "what is wrong", "reference", "caught by", "allows", "s")
    for room in dict.fromkeys(fault.room for fault in FAULTS):
        lines = [f"### {room.capitalize()}\n", _line(head), "|---" * len(head) + "|"]
        for fault in FAULTS:
            if fault.room == room:
                found = results.get(fault.id, {"verdict": "not tried", "cpu_s": ""})
                file, _, test = fault.check.partition("::")
                by = f"`{Path(file).stem}`: {test.removeprefix('test_').replace('_', ' ')}"
                told = by if found["verdict"] == "caught" else f"**{found['verdict']}**"
                name = f"`{fault.id.partition('.')[2]}`"
                lines.append(
                    _line([name, fault.what, fault.reference, told, fault.tolerance, found["cpu_s"]])
                )
        yield "\n".join(lines) + "\n"


def _mutants() -> str:
    rows = _rows(MUTANTS)
    lines = ["| room | drawn | killed | equivalent | survived | score |", "|---|---|---|---|---|---|"]
    for room in dict.fromkeys(row["room"] for row in rows):
        count = Counter(row["verdict"] for row in rows if row["room"] == room)
        cells = [count["killed"], count["equivalent"], count["survived"]]
        lines.append("| " + " | ".join(map(str, [room, sum(cells), *cells, f"{_score(count):.0%}"])) + " |")
    parts = [MUTATED.format(score=_score(Counter(row["verdict"] for row in rows))), "\n".join(lines)]
    survivors = [_code(row["mutant"]) for row in rows if row["verdict"] == "survived"]
    if survivors:
        parts += ["\nThose that survive:\n", "\n".join(f"- {one}" for one in sorted(survivors))]
    equivalent = [f"{_code(row['mutant'])}: {row['by']}" for row in rows if row["verdict"] == "equivalent"]
    if equivalent:
        parts += ["\nThose that are equivalent:\n", "\n".join(f"- {one}" for one in sorted(equivalent))]
    return "\n".join(parts) + "\n"


def _code(mutant: str) -> str:
    place, _, change = mutant.partition(": ")
    return f"{place}: `{change}`"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _score(count: Counter[str]) -> float:
    return count["killed"] / max(1, count["killed"] + count["survived"])


def _rows(table: Path) -> list[dict[str, str]]:
    with table.open() as file:
        return list(csv.DictReader(file))
