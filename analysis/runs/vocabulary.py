"""The words for outcomes and events that edgefl writes into its tables (docs/run-directory.md).

These words are repeated here since `analysis` only reads files and never imports edgefl.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple


class Cut(NamedTuple):
    """The cause and stage at which a participation was cut off."""

    cause: str
    stage: str


COMPLETED = "completed"  # the update arrived
CAUSES = {
    "left": "the device left the cell",
    "off": "the device was switched off",
    "empty": "the device's battery ran empty",
    "late": "the deadline had passed",
    "surplus": "enough other updates had arrived",
    "failed": "the link was below the lowest rate for too long",
    "lost": "the update arrived with errors",
    "unusable": "the update was not finite",
}
STAGES = ("downlink", "compute", "uplink")  # activities that a cause may cut off
ONLY_IN = {  # causes limited to some stages: a device has no link while it computes
    "failed": ("downlink", "uplink"),
    "lost": ("uplink",),
    "unusable": ("uplink",),
}
# causes at the device; all other causes are decisions of the server
GONE = frozenset({"left", "off", "empty", "failed"})
OUTCOMES: dict[str, Cut | None] = {
    COMPLETED: None,  # not cut off
    **{
        f"{cause}_{stage}": Cut(cause, stage)
        for cause in CAUSES
        for stage in STAGES
        if stage in ONLY_IN.get(cause, STAGES)
    },
}

BATTERY_EMPTY = "battery_empty"
# Conditions of service, and the events that begin and end them
CONDITIONS = {
    "arrival": ("inside", True),
    "departure": ("inside", False),
    "switched_on": ("on", True),
    "switched_off": ("on", False),
    "battery_back": ("charged", True),
    BATTERY_EMPTY: ("charged", False),
}
HANDOVER = "handover"
PING_PONG = "ping_pong"  # detail of a handover back to the previous cell within this time:
PING_PONG_S = 1.0
EVENTS = (
    *CONDITIONS,
    HANDOVER,
    *("radio_link_failure", "reestablished"),
    *("session_start", "session_end", "waiting_for_devices", "no_updates", "cloud_model"),
)


def split_outcome(outcome: str, place: str = "outcome") -> Cut | None:
    """Return the cause that cut a participation off, or None if it completed; an error names the word's place."""
    check_known([outcome], OUTCOMES, place)
    return OUTCOMES[outcome]


def cause_of(cut: Cut, dispatch: Any) -> str:
    """Describe the cause that cut a participation off.

    Only rounds that overlap have the column `dispatch` in devices.csv: their server waits for a number of updates but
    cuts devices off only when the session ends.
    """
    overlaps = dispatch is not None and dispatch == dispatch  # NaN differs from itself
    return "the session had ended" if overlaps and cut.cause == "surplus" else CAUSES[cut.cause]


def check_known(words: Iterable[str], known: Iterable[str], place: str) -> None:
    """Raise a ValueError with the place, the word and the vocabulary if a word is not in the vocabulary."""
    listed = list(known)
    for word in words:
        if word not in listed:
            raise ValueError(
                f"{place}: unknown word '{word}', known to this release: {', '.join(listed)}; read the run with the "
                "release that made it"
            )
