"""Faults that a check must catch: a table of named ones, room by room.

python -m tests.tools.faults    `make faults`
"""

from dataclasses import dataclass

from tests.faults.injecting import Inject


@dataclass(frozen=True)
class Fault:
    """Something that could be wrong in the code.

    Args:
        id: `room.what`, unique.
        what: what is wrong, in a few words.
        reference: what says how it should be.
        check: the pytest node that must fail.
        tolerance: what the check allows, as a number with its unit; "nothing" where it asks for the very value.
        inject: injects it into this process.
    """

    id: str
    what: str
    reference: str
    check: str
    tolerance: str
    inject: Inject

    @property
    def room(self) -> str:
        """The room that it is in."""
        return self.id.partition(".")[0]
