"""For tests and benchmarks, here and in other packages: small worlds, and what every component must hold.

`small_world` gives a whole run at stated places and times, composed as `edgefl run` composes it; `check`
tries a component of any kind against the contract of its kind,
`check_learner` a learner from outside; `invariants.check_run` says whether the tables
of any run hold together. Nothing here needs a test framework.
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
from edgefl.testing.conformance import ContractError, check, underived
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
    "underived",
]
