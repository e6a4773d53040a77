"""Read a lender's journal as if it had no probe rounds.

`similarity` trains the first two sessions after the pilot sessions as `previous` does, except for preceding probe
rounds, which leave no trace. Without the probes, the lender's answers are those of a run that does not probe.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from edgefl.contract import Opening, StageFacts
from edgefl.run_directory.plain import decoded, encoded

Entry = dict[str, Any]
PROBE, TRAIN = "probe", "train"  # phases


def without_probes(
    entries: Iterable[Entry], opened: Callable[[int, Opening], Opening]
) -> Iterator[tuple[Entry, int]]:
    """Yield the entries of one cell's journal without probes, each with its end in the original journal.

    A session then opens with its training. Stop before a session in whose probes a device took part that was absent
    at its start: such a device becomes a member of the session, and counts in its tests.

    Args:
        opened: session number, and the lender's opening of its training -> the opening in a run without probes.
    """
    session: Entry = {}  # the latest one's
    probing = False
    for end, entry in enumerate(entries, 1):
        call = entry["call"]
        if call == "session":
            session = entry
        facts: StageFacts | None = decoded(entry["answered"]) if call in ("session", "stage") else None
        phase = facts.phase if facts else ""
        if facts and phase == TRAIN:
            assert facts.opening is not None
            opening = opened(decoded(session["asked"]["start"]).number, facts.opening)
            yield {**session, "answered": encoded(replace(facts, opening=opening))}, end
            probing = False
        elif phase == PROBE:
            probing = True
        elif not probing:
            yield entry, end
        elif call == "train" and not {*decoded(entry["asked"]["ids"])} <= {
            *decoded(session["asked"]["start"]).ids
        }:
            return
