"""Faults that a check must catch: named faults, grouped by room.

python -m tests.tools.faults    `make faults`
"""

from dataclasses import dataclass

from tests.faults.injecting import Inject


@dataclass(frozen=True)
class Fault:
    """A fault that can be injected into the code.

    Args:
        id: `room.what`, unique.
        what: the fault, in a few words.
        reference: what states the correct behaviour.
        check: the pytest node that must fail.
        tolerance: what the check allows, as a number with its unit; "exact" if it compares exact values.
        inject: injects the fault into this process.
    """

    id: str
    what: str
    reference: str
    check: str
    tolerance: str
    inject: Inject

    @property
    def room(self) -> str:
        """The room of the fault."""
        return self.id.partition(".")[0]
