"""Run a drawn scenario, report how it ended and which rules it broke; shrink scenarios that break a rule."""

import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import edgefl
from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run_directory.interruption import Interrupted
from tests.tools import kill
from tests.tools.fuzz import LONGEST_MESSAGE, PLACED
from tests.tools.fuzz_calls import CallResult, call
from tests.tools.invariants import check_run
from tests.tools.joints.learning_features import INITIAL
from tests.tools.joints.rules import broken_rules, round_trip, watched_shares
from tests.tools.joints.scenarios import Draw
from tests.tools.movements import write_trace

CPU_S = 40.0  # a run that takes longer counts as hanging
AGAIN = 3  # one run in this many is repeated, and another one is interrupted and resumed
FILE = "scenario.yaml"
# words that show a remedy in the message of a run that stops
REMEDY = re.compile(
    r"\b(set|give|take|raise|lower|allow|leave|make|choose|add|use|shorten|begin|start|needs?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Ended:
    """How a scenario ended (completed, refused or stopped); said: its messages; broken: rules and details."""

    how: str
    said: str
    broken: tuple[tuple[str, str], ...]

    @property
    def kind(self) -> str:
        """The key that a refusal names, or otherwise the beginning of its message."""
        first = self.said.removeprefix("edgefl: error: ").partition("\n")[0]
        place = first.partition(f"{FILE}:")[2].partition(" ")[2].partition(": ")[0]
        return place or first[:60]


def trial(draw: Draw) -> Ended:
    """Run a scenario in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="edgefl-joint-") as scratch:
        folder = Path(scratch)
        (folder / FILE).write_text(draw.text, encoding="utf-8")
        beside(folder)
        shares: list[str] = []
        with watched_shares(shares):
            outcome = call(["run", FILE, "--out", "out", "--device", "cpu"], folder, CPU_S)
        broken = list(_broken(outcome))
        broken += [("shares fit into the band", text) for text in shares[:3]]
        if outcome.code or outcome.crash:
            broken += _about_errors(outcome)
            how = "stopped" if (folder / "out").exists() else "refused"
            return Ended(how, _error_of(outcome), tuple(broken))
        broken += [("tables agree", text) for text in (*check_run(folder / "out"),)]
        broken += [("tables are consistent", text) for text in list(broken_rules(folder / "out"))[:5]]
        broken += [("round trip", text) for text in round_trip(folder / "out")]
        if draw.number % AGAIN == 1:
            broken += _again(folder)
        elif draw.number % AGAIN == 2:
            broken += _gone_on_with(folder, Random(f"{draw.seed} {draw.number} left"))
    return Ended("completed", "", tuple(broken))


def shrunk(draw: Draw, rule: str) -> Draw:
    """Return the scenario with only the features needed to break the given rule, removing them one by one."""
    for feature in draw.features:
        fewer = draw.without(feature)
        if any(rule == other for other, _ in trial(fewer).broken):
            draw = fewer
    return draw


def keep(draw: Draw, folder: Path) -> Path:
    """Write a scenario and all files that it needs; return its file."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    features = f"# seed {draw.seed}, number {draw.number}: {', '.join(draw.features)}\n"
    (folder / FILE).write_text(features + draw.text, encoding="utf-8")
    beside(folder)
    return folder / FILE


def beside(folder: Path) -> None:
    """Write the files that drawn scenarios may name."""
    write_trace(folder / "trace.csv")
    (folder / INITIAL).write_bytes(_initial())


@cache
def _initial() -> bytes:
    data = {
        "name": "initial",
        "devices": {"count": 2},
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        "learning": {"dataset": "digits", "model": "logistic", "local": {"batch": 16}},
    }
    with tempfile.TemporaryDirectory(prefix="edgefl-joint-") as scratch:
        run = edgefl.simulate(data, Path(scratch) / "run", device="cpu")
        return (Path(run) / "models" / "cell0.safetensors").read_bytes()


def _broken(outcome: CallResult) -> Iterator[tuple[str, str]]:
    if outcome.crash:
        rule = "no hang" if outcome.crash.startswith("Hang") else "no traceback"
        yield rule, "\n".join(outcome.crash.splitlines()[-12:])
    elif outcome.code not in (0, 2):
        yield "exit code 0 or 2", f"{outcome.code}: {outcome.err[:LONGEST_MESSAGE]}"
    if outcome.warned:
        yield "no numerical warnings", "\n".join(outcome.warned)


def _about_errors(outcome: CallResult) -> Iterator[tuple[str, str]]:
    """Check that an error message, including that of a run that stops, names a place and a remedy."""
    said = _error_of(outcome)
    if outcome.crash:
        return
    if len(said) > LONGEST_MESSAGE:
        yield "messages are short", said[:LONGEST_MESSAGE]
    if not PLACED.match(said):
        yield "errors name file and line", said
    if not REMEDY.search(said):
        yield "errors state a remedy", said


def _error_of(outcome: CallResult) -> str:
    """Return the error message without the notes before it."""
    lines = outcome.err.strip().splitlines()
    return "\n".join(line for line in lines if not line.startswith("note: "))


def _again(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the files that differ if the run's scenario is run again."""
    outcome = call(["run", "out/scenario.yaml", "--out", "again", "--device", "cpu"], folder, CPU_S)
    yield from _broken(outcome)
    if outcome.code:
        yield "the same run again", outcome.err
    else:
        for name in kill.differences(folder / "again", folder / "out"):
            yield "the same run again", f"{name} differs"


def _gone_on_with(folder: Path, rng: Random) -> Iterator[tuple[str, str]]:
    """Yield the files that differ if the run is interrupted in some round and resumed."""
    tables = (folder / "out").glob("**/rounds.csv")  # one per federation
    rounds = sum(len(table.read_text().splitlines()) - 1 for table in tables)
    left, seen = rng.randint(1, max(1, rounds)), 0

    def leave(row: Round) -> None:
        nonlocal seen
        seen += 1
        if seen == left:
            raise Interrupted(signal.SIGTERM)

    run, every = folder / "left", rng.choice((1, 2, 5))
    try:
        scenario = edgefl.load_scenario(folder / FILE)
        edgefl.simulate(scenario, run, device="cpu", on_round=leave, snapshot_rounds=every)
    except Interrupted:
        pass
    try:
        if seen >= left:
            edgefl.resume(run, snapshot_rounds=every)
    except EdgeflError as error:
        yield "an interrupted run resumes", f"interrupted in round {left}: {error}"
        return
    for name in kill.differences(run, folder / "out"):
        yield "an interrupted run resumes", f"interrupted in round {left}: {name} differs"
