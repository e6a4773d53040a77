"""Refuse parts of a scenario that clash, using the table of needs in `edgefl.scenario.needs_table`.

Checks that concern a single section are in that section.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import Algorithm
from edgefl.scenario.needs_table import ROWS, asked_by, refuse_silence
from edgefl.scenario.sections import ALGORITHMS, Place, Sections


class _Clash(EdgeflError):
    """An error about two parts of a scenario that clash; `code` names the table's row that detects the clash."""

    def __init__(self, message: str, place: Place = (), code: str = "") -> None:
        super().__init__(message, place)
        self.args = (message, place, code)
        self.code = code


def check(sections: Sections, only: Collection[str] = ()) -> None:
    """Refuse parts of a scenario that clash; report the first clash in the table.

    Args:
        only: codes of the table's rows to check; if empty, all rows are checked.
    """
    for (code, place, message), remedy in _clashes(sections, only):
        if ALGORITHMS in remedy:
            remedy = remedy.replace(ALGORITHMS, _fitting(sections))
        raise _Clash(f"{message}: {remedy}", place, code)
    if not only:
        refuse_silence(sections)


def _clashes(s: Sections, only: Collection[str] = ()) -> Iterator[tuple[tuple[str, Place, str], str]]:
    """Yield code, place and message of each clash, and the remedy."""
    asked = asked_by(s)
    for row in ROWS:
        for who in asked[row.code] if not only or row.code in only else ():
            for place, what, remedy in row.broken(s):
                yield (row.code, place, f"{who} needs {row.needs}, but {what}"), remedy


def _fitting(s: Sections) -> str:
    """Return the names of the shipped algorithms with which only those clashes remain that all algorithms have."""
    learning = s.own.learning
    assert learning is not None
    clashes = {}
    for name in registry.names("algorithms"):
        algorithm = registry.get("algorithms", name)()
        if isinstance(algorithm, Algorithm) and (learning.drift is not None or not algorithm.knows_drift):
            changed = learning.model_copy(update={"algorithm": algorithm})
            clashes[name] = {clash for clash, _ in _clashes(replace(s, own=replace(s.own, learning=changed)))}
    common = set.intersection(*clashes.values())
    names = [name for name, own in clashes.items() if own == common]
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "another algorithm"
