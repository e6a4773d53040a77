"""Settings of measured links: the table of rates and its columns."""

from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from edgefl.channel.tdd import Direction
from edgefl.config import table_files
from edgefl.config.scenario_fields import Section
from edgefl.errors import quoted

PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
UNITS = {prefix + unit: times for prefix, times in PREFIXES.items() for unit in ("bit_s", "bps")}
WORDS: dict[Direction, tuple[str, ...]] = {
    "downlink": ("downlink", "download", "dl"),
    "uplink": ("uplink", "upload", "ul"),
}
# names of rate columns, and the bits per second of their units
RATES = {
    d: {f"{word}_{unit}": bit_s for word in words for unit, bit_s in UNITS.items()}
    for d, words in WORDS.items()
}
OTHERS = {
    "time_s": ("time_s", "t", "time", "timestamp"),
    "device": ("device", "id", "ue"),
    "cell": ("cell", "cell_id", "pci"),
}


class MeasuredSettings(Section):
    """A table of rates that the radio replays, from a drive test, network counters or another simulator.

    The table is a CSV or Parquet file. Each row contains a time, the downlink and uplink rates of a device from
    this time, and optionally the device's cell.

        time_s,device,downlink_mbit_s,uplink_mbit_s,cell
        0,a,80,12,north
        5,a,35,4.5,south

    Times are seconds or ISO 8601 dates (UTC if they name no zone), and increase for each device; the table's first
    time is 0 in the run. A rate holds until the device's next row. The last rate holds to the end of the run, and
    the first rate also before its time. Devices are numbered 0, 1, ... in order of first appearance, and so are
    cells; `layout` must have the same number of cells. A table without the column `device` has one device, and a
    table without `cell` one cell.

    The name of a rate column ends with its unit: bit_s, kbit_s, mbit_s, gbit_s (or bps, kbps, Mbps, Gbps). `columns`
    maps the names above to the table's own names.

    A transfer of Z bits ends with the first slot at whose end the integral of the rate is at least Z; at a constant
    rate R it takes Z / R, rounded up to whole slots. A device hands over when its cell changes. The radio is on
    during the whole transfer, and sends uplinks at full power. A device's rates do not depend on other devices'
    transfers.
    """

    path: Path = Field(description="a .csv, .csv.gz or .parquet table, relative to the scenario's file")
    columns: dict[str, str] = Field(
        {},
        description="columns with different names in the table: {time_s: Timestamp, downlink_kbit_s: DL_bitrate}",
    )
    begin_s: float | None = Field(
        None, ge=-1e12, le=1e12, description="time in the table at which the run begins; null: the first time"
    )

    @field_validator("path")
    @classmethod
    def _readable(cls, path: Path) -> Path:
        if not path.name.endswith(table_files.READABLE):
            raise ValueError(
                f"{path} has an unknown file type: use a name that ends in {', '.join(table_files.READABLE)}"
            )
        return path

    @model_validator(mode="after")
    def _known_columns(self) -> Self:
        known = [*OTHERS, *RATES["downlink"], *RATES["uplink"]]
        for key in self.columns:
            if key not in known:
                raise ValueError(
                    f"columns: {quoted(key)} is not one of time_s, device, cell, or downlink or uplink with a unit,"
                    " such as downlink_mbit_s"
                )
        return self
