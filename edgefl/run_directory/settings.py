"""Settings that determine what a run records besides its rounds."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from edgefl.config.scenario_fields import Section

KeptModels = Literal["last", "personal", "best", "none"] | Annotated[int, Field(ge=1, le=1_000_000_000)]


class RecordSettings(Section):
    """Settings of a run's records of devices and models; rounds, sessions, events and ledger are always recorded.

    Measured with 10,000 devices in a round, on one core of a busy machine: a row of devices takes 176 bytes and 5 to
    6 microseconds as CSV, and 14 (if no device moves) to 22 bytes and 6 to 13 microseconds as Parquet; a row of
    positions takes 40 bytes as CSV or 9 as Parquet, and 2 microseconds in both formats. 10,000 devices in 1,000
    rounds thus take 1.8 or 0.2 GB, and one or two minutes of writing after hours of simulation.
    """

    devices: Literal["all", "none"] | Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        "all",
        description="rounds with rows in devices.csv, 176 bytes per row: all, none, or every n-th round of each phase"
        " of a session, starting with the first; sums in rounds.csv and ledger.csv are always complete",
    )
    tables: Literal["csv", "parquet"] = Field(
        "csv",
        description="format of the tables devices and positions, which have rows for each device; parquet takes a"
        " tenth of the space and needs the package pyarrow",
    )
    positions_s: Literal["auto", "none"] | Annotated[float, Field(ge=1e-3, le=1e9)] = Field(
        "auto",
        description="simulated time between a device's rows in positions.csv, 40 bytes per row; auto: about 400"
        " rows per device, fewer with more than 500 devices, with position and cell only; none: no positions.csv",
    )

    models: KeptModels = Field(
        "last",
        description="models to save, at 4 bytes per parameter and cell; last: the models at the run's end; personal:"
        " also the devices' own models, if the algorithm makes any; best: also each cell's most accurate model; a"
        " number n: also the models after every n-th round",
    )

    energy_excess: bool = Field(
        False,
        description="add the column energy_excess_j to rounds.csv: energy that the completed participants of a"
        " round spent beyond the minimum for the same work within the round's time; takes about 10 ms per round",
    )

    @field_validator("positions_s", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        return "none" if value is None else value

    @property
    def follows_rounds(self) -> bool:
        """Whether models are saved during the run, so that the run must train every round itself."""
        return self.models not in ("last", "personal", "none")

    def keeps(self, number: int) -> bool:
        """Return whether devices' rows are recorded in a round of a phase; rounds count from 1."""
        if isinstance(self.devices, str):
            return self.devices == "all"
        return (number - 1) % self.devices == 0
