"""Tell a learner which uploads began, if it accounts for the data that its devices have sent."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from edgefl.contract import UPLOAD, AccountingStage, LocalRound, Stage
from edgefl.engine.parts import Part


def with_account(stage: Stage, local: LocalRound, parts: Sequence[Part]) -> LocalRound:
    """Return a round's local work, with the columns that its stage fills once it knows which uploads began.

    Args:
        local: in the order of parts; a device may occur several times where rounds overlap.
    """
    names = [name for name, what in local.after.items() if what == UPLOAD]
    if not names:
        return local
    began = [place for place, part in enumerate(parts) if part.has_uploaded]
    told = cast(AccountingStage, stage).uploaded([parts[place].device for place in began]) if began else {}
    columns: dict[str, list[float | None]] = {name: [None] * len(parts) for name in names}
    for name, values in told.items():
        for place, value in zip(began, values, strict=True):
            columns[name][place] = value
    return replace(local, scalars={**local.scalars, **{name: tuple(of) for name, of in columns.items()}})
