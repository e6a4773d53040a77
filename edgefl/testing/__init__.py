"""Check your own components against the contract of their kind, and run them in small worlds.

`check` tests a component class against the contract of its kind; `check_learner` tests your own learner.
`small_world` sets up a run with given positions and times, as `edgefl run` does. No test framework is needed.
"""

from edgefl.testing.cell import (
    PAYLOAD_BITS,
    Placed,
    Rows,
    Scripted,
    SmallWorld,
    SwitchedAt,
    small_world,
)
from edgefl.testing.conformance import ContractError, check
from edgefl.testing.learner_contract import assignment, check_learner

__all__ = [
    "PAYLOAD_BITS",
    "ContractError",
    "Placed",
    "Rows",
    "Scripted",
    "SmallWorld",
    "SwitchedAt",
    "assignment",
    "check",
    "check_learner",
    "small_world",
]
