"""Settings of what a run records beside its rounds."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from edgefl.config.scenario_fields import Section

KeptModels = Literal["last", "personal", "best", "none"] | Annotated[int, Field(ge=1, le=1_000_000_000)]


class RecordSettings(Section):
    """What a run keeps of its devices and models, and in which form; rounds, sessions, events and ledger always stay.

    Measured with 10,000 devices in a round, on one core of a busy machine: a row of devices takes 176 bytes and 5 to
    6 microseconds as CSV, 14 (nobody moves) to 22 bytes and 6 to 13 microseconds as Parquet; a row of positions 40
    or 9 bytes and 2 microseconds. 10,000 devices in 1,000 rounds are thus 1.8 GB or 0.2 GB, and one or two minutes of
    writing, little beside the hours of simulating them.
    """

    devices: Literal["all", "none"] | Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        "all",
        description="rows of devices.csv, 176 bytes each: of all rounds, of none, or of every n-th round of a"
        " session's phase, from its first one on; sums in rounds.csv and ledger.csv are always whole",
    )
    tables: Literal["csv", "parquet"] = Field(
        "csv",
        description="form of the tables that have rows for each device, devices and positions: csv, or parquet,"
        " which takes a tenth of the room and needs the package pyarrow",
    )
    positions_s: Literal["auto", "none"] | Annotated[float, Field(ge=1e-3, le=1e9)] = Field(
        "auto",
        description="simulated time between two rows of positions.csv for each device, 40 bytes each; auto: some 400"
        " times in the run, fewer for more than 500 devices, place and cell alone; none: no such table, s",
    )

    models: KeptModels = Field(
        "last",
        description="models that are kept, 4 bytes a parameter and cell: those at the end; those and devices' own,"
        " where the algorithm makes some; those at the end and, of each cell, that with the highest accuracy;"
        " those at the end and after every n-th round; or none",
    )

    energy_excess: bool = Field(
        False,
        description="a column energy_excess_j of rounds.csv: joules of a round's completed participants above the"
        " least with which they could have done the same by the round's end; some 10 ms each round",
    )

    @field_validator("positions_s", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        return "none" if value is None else value

    def keeps(self, number: int) -> bool:
        """Whether the rows of a phase's round are kept; rounds count from 1."""
        if isinstance(self.devices, str):
            return self.devices == "all"
        return (number - 1) % self.devices == 0
