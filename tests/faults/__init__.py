"""Define named faults that a check must catch, grouped by package.

python -m tests.tools.faults    `make faults`
"""

from dataclasses import dataclass

from tests.faults.injecting import Inject


@dataclass(frozen=True)
class Fault:
    """A fault that can be injected into the code.

    Args: id: unique, as `package.fault`. what: the fault, in a few words. reference: the source that defines the
    correct behaviour. check: the pytest node that must fail. tolerance: the deviation that the check allows, with its
    unit; "exact" if it compares exact values. inject: injects the fault into this process.
    """

    id: str
    what: str
    reference: str
    check: str
    tolerance: str
    inject: Inject

    @property
    def room(self) -> str:
        """The package that contains the fault."""
        return self.id.partition(".")[0]
