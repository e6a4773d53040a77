"""Test your own parts: small worlds, and the contract of each kind of component.

`check` tries a component class of any kind against the contract of its kind, `check_learner` a learner of your own.
`small_world` composes a run at stated places and times as `edgefl run` does. Nothing here needs a test framework.
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
