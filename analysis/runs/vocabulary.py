"""The words that edgefl writes into its tables (docs/run-directory.md): outcomes of participations, and events.

They are repeated here since `analysis` reads files only and never imports edgefl.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Cut(NamedTuple):
    """Why a participation was cut off, and in which stage."""

    cause: str
    stage: str


COMPLETED = "completed"  # the update arrived
CAUSES = {
    "left": "the device left the cell",
    "off": "the device was switched off",
    "empty": "its battery ran empty",
    "late": "the deadline had come",
    "surplus": "enough other updates had arrived",
    "failed": "its link was below the lowest rate for too long",
    "lost": "it arrived with errors",
    "unusable": "its update was not finite",
}
STAGES = ("downlink", "compute", "uplink")  # what the cause cut off
ONLY_IN = {  # stages of the causes that are not of all: a device has no link while it computes
    "failed": ("downlink", "uplink"),
    "lost": ("uplink",),
    "unusable": ("uplink",),
}
GONE = frozenset(
    {"left", "off", "empty", "failed"}
)  # causes in the device; the others are decisions of the server
OUTCOMES: dict[str, Cut | None] = {
    COMPLETED: None,  # nothing cut it off
    **{
        f"{cause}_{stage}": Cut(cause, stage)
        for cause in CAUSES
        for stage in STAGES
        if stage in ONLY_IN.get(cause, STAGES)
    },
}

# What a device needs to be in service, and the events that say whether it has it
CONDITIONS = {
    "arrival": ("inside", True),
    "departure": ("inside", False),
    "switched_on": ("on", True),
    "switched_off": ("on", False),
    "battery_back": ("charged", True),
    "battery_empty": ("charged", False),
}
HANDOVER = "handover"
EVENTS = (
    *CONDITIONS,
    HANDOVER,
    *("radio_link_failure", "reestablished"),
    *("session_start", "session_end", "waiting_for_devices", "no_updates", "cloud_model"),
)


def split_outcome(outcome: str, place: str = "outcome") -> Cut | None:
    """Look up what cut a participation off; None: it completed.

    Args:
        place: where the word was read, for the message.

    Raises:
        ValueError: no such outcome.
    """
    check_known([outcome], OUTCOMES, place)
    return OUTCOMES[outcome]


def check_known(words: Iterable[str], known: Iterable[str], place: str) -> None:
    """Refuse words that are not among those known.

    Raises:
        ValueError: names the place, the first unknown word, and those known.
    """
    listed = list(known)
    for word in words:
        if word not in listed:
            raise ValueError(
                f"{place}: unknown word '{word}', this release knows {', '.join(listed)}; read the run with the "
                "release that made it"
            )
