"""The last section of docs/trust.md: faults and mutants, with the results of their last runs."""

import csv
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.faults.table import FAULTS, FIRST_SCORE, KILLED, MUTANTS, RESULTS
from tests.tools.mutants import EACH, SEED

HEAD = "## Fault injection\n"
WORDS = """
A test that cannot fail proves nothing. Each row below is a fault that `make faults` injects into the code, with the
test that must then fail. The faults were written before their tests were tried: {first}; of the faults that were
missed, twelve led to a better test, and five are caught by another existing test. More faults were added later, along
with new laws. When the faults were last run, **{now}** were caught. *Tolerance* is the largest deviation that the
test accepts, and *s* is the CPU time until it fails. A fault whose test does not end would be listed as *slow*, which
does not count as caught.
"""
MUTATED = """\
### Mutants

`make mutants` also draws {each} places inside functions at random, with a seed, in each of four packages, and mutates
an operator, a constant or a bound at each place. {tried} of these mutants have been tried, each against the unit
tests of its module and of the modules that import it, then against small whole runs, and then against the tests of
laws and all unit tests of its package. A mutant is *equivalent* if it changes nothing observable, so that no test can
tell it from the original; equivalent mutants do not count. A mutant has *timed out* if tests take more than three
times as long as usual; such a mutant counts as killed.

With the tests that existed when the mutants were drawn, **{first:.0%}** were killed. Of the survivors,
{chosen} are killed by existing tests that the tool had not tried, because it chose tests by name and import only;
with these tests the score is {there:.0%}. Another {written} are killed by tests that we wrote for them later, which
raise the score to **{now:.0%}**.
"""
OTHER = """\
Because these tests were written for the drawn mutants, we then tried another {drawn} mutants, drawn with seed
{seed}, and wrote no tests for them: **{score:.0%}** were killed.
"""


def text() -> str:
    """Make the section from the results of the last runs of faults and mutants."""
    results = {row["id"]: row for row in _rows(RESULTS)}
    caught = sum(row["verdict"] == "caught" for row in results.values())
    now = f"{caught} of {len(FAULTS)}"
    return "\n".join([HEAD + WORDS.format(first=FIRST_SCORE, now=now), *_faults(results), _mutants()])


def _faults(results: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    head = ("fault", "what is wrong", "reference", "caught by", "tolerance", "s")
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
    rows = [row for row in _rows(MUTANTS) if row["seed"] == str(SEED)]
    head = (
        "package",
        "drawn",
        "equivalent",
        "killed at first",
        "score",
        "killed now",
        "timed out",
        "survived",
        "score now",
    )
    lines = [_line(head), "|---" * len(head) + "|"]
    for room in dict.fromkeys(row["room"] for row in rows):
        of_room = [row for row in rows if row["room"] == room]
        now = Counter(row["verdict"] for row in of_room)
        first = sum(row["first"] in KILLED for row in of_room)
        lines.append(
            _line(
                map(
                    str,
                    (
                        room,
                        len(of_room),
                        now["equivalent"],
                        first,
                        f"{_score(of_room, 'first'):.0%}",
                        now["killed"],
                        now["timed out"],
                        now["survived"],
                        f"{_score(of_room):.0%}",
                    ),
                )
            )
        )
    since = Counter(row["since"] for row in rows)
    words = MUTATED.format(
        each=EACH,
        tried=len(rows),
        first=_score(rows, "first"),
        now=_score(rows),
        chosen=since["chosen"],
        written=since["written"],
        there=_score(
            [row | {"there": "killed" if row["since"] == "chosen" else row["first"]} for row in rows], "there"
        ),
    )
    parts = [words + _other_draw(), "\n".join(lines)]
    survivors = [f"{_code(row['mutant'])}: {row['by']}" for row in rows if row["verdict"] == "survived"]
    if survivors:
        parts += ["\nSurviving mutants:\n", "\n".join(f"- {one}" for one in sorted(survivors))]
    equivalent = [f"{_code(row['mutant'])}: {row['by']}" for row in rows if row["verdict"] == "equivalent"]
    if equivalent:
        parts += ["\nEquivalent mutants:\n", "\n".join(f"- {one}" for one in sorted(equivalent))]
    return "\n".join(parts) + "\n"


def _other_draw() -> str:
    rows = [row for row in _rows(MUTANTS) if row["seed"] != str(SEED)]
    if not rows:
        return ""
    return OTHER.format(drawn=len(rows), seed=rows[0]["seed"], score=_score(rows, "first"))


def _code(mutant: str) -> str:
    place, _, change = mutant.partition(": ")
    return f"{place}: `{change}`"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _score(rows: Sequence[Mapping[str, str]], when: str = "verdict") -> float:
    """Return the share of killed mutants among the mutants that are not equivalent."""
    count = [row[when] in KILLED for row in rows if row["verdict"] != "equivalent"]
    return sum(count) / max(1, len(count))


def _rows(table: Path) -> list[dict[str, str]]:
    with table.open() as file:
        return list(csv.DictReader(file))
