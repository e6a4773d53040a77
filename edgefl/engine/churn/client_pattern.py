"""An explicit list of devices for every session."""

from collections.abc import Collection, Iterator
from typing import Annotated, Self

from pydantic import Field, model_validator

from edgefl.engine.churn import Churn
from edgefl.engine.class_settings import MOST_DEVICES
from edgefl.errors import quoted
from edgefl.rng import Streams


class ClientPattern(Churn):
    """Each session has exactly the devices of its list; after the last list, the lists repeat from the first.

    Source: client patterns in Tables 3 and 4 of the earlier version of the session papers.
    """

    sessions: list[list[Annotated[int, Field(ge=0, le=MOST_DEVICES)]]] = Field(
        min_length=1, description="ids of the devices in session 1, 2, ..."
    )

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        for number, ids in enumerate(self.sessions, start=1):
            if not ids or len(set(ids)) < len(ids):
                raise ValueError(
                    f"session {number} must list at least one device, and none twice: {quoted(ids)}"
                )
        return self

    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        yield 0.0

    def members(self, session: int) -> Collection[int] | None:
        return frozenset(self.sessions[(session - 1) % len(self.sessions)])
