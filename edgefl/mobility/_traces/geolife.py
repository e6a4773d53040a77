"""Read tracks of GeoLife, the .plt files of OziExplorer.

Source: Zheng et al., GeoLife GPS Trajectories 1.3, User Guide, "Data format"; the time is the number of days since
1899-12-30.
"""

import re
from pathlib import Path

from edgefl.config.table_files import rows
from edgefl.mobility._traces._lines import Head
from edgefl.mobility._traces._samples import BadRow, Samples

HEADER = 6  # number of lines before the samples
EPOCH_DAYS = 25_569  # 1970-01-01


def begins(head: Head) -> bool:
    """Return whether a file with this beginning is a GeoLife track."""
    return (
        bool(head.lines)
        and re.match("geolife trajectory|oziexplorer track", head.lines[0].lower()) is not None
    )


def read(path: Path, samples: Samples) -> None:
    """Add the samples of a GeoLife track."""
    samples.in_degrees(True)
    id_ = samples.name
    for line, cells in rows(path, ","):
        if line <= HEADER:
            continue
        try:
            if len(cells) < 5:
                raise samples.bad_row(
                    line, f"{len(cells)} cells; write latitude,longitude,0,altitude,days,date,time"
                )
            lat, lon, days = (
                samples.number(line, name, cells[at], "write a number, 12.5 for example")
                for name, at in (("latitude", 0), ("longitude", 1), ("days", 4))
            )
            time_s = round((days - EPOCH_DAYS) * 86_400, 3)  # ten decimals of days are steps of 9 us
            samples.dated = True
            samples.add(line, "track", id_, time_s, lon, lat)
        except BadRow as bad:
            samples.skip(bad)
