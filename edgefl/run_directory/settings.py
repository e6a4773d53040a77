"""Settings of what a run records beside its rounds."""

from typing import Annotated, Literal

from pydantic import Field

from edgefl.scenario_fields import Section


class RecordSettings(Section):
    """What a run writes down of its devices, and in which form; rounds, sessions, events and ledger are always there.

    Measured on one core, 10,000 devices in each of 1,000 rounds (10 million rows of devices): csv SIZE_CSV.
    """

    devices: Literal["all", "none"] | Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        "all",
        description="rows of devices.csv: of all rounds, of none, or of every n-th round of a session's phase,"
        " from its first one on",
    )
    tables: Literal["csv", "parquet"] = Field(
        "csv",
        description="form of the tables that have rows for each device, devices and positions: csv, or parquet",
    )
    positions_s: float | None = Field(
        None,
        ge=1e-3,
        le=1e9,
        description="simulated time between two rows of positions.csv for each device; none: no such table, s",
    )

    def keeps(self, number: int) -> bool:
        """Whether the rows of a phase's round are kept; rounds count from 1."""
        if isinstance(self.devices, str):
            return self.devices == "all"
        return (number - 1) % self.devices == 0
