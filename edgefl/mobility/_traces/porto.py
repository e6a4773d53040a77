"""Read the table of Porto's taxi trips, with a POLYLINE for each trip.

A trip begins at TIMESTAMP and has a position every 15 s. Source: Moreira-Matias et al., Taxi Service Trajectory, ECML
PKDD 2015, https://archive.ics.uci.edu/dataset/339
"""

import json
from pathlib import Path

from edgefl.config.table_files import miscounted, rows
from edgefl.mobility._traces._lines import Head
from edgefl.mobility._traces._samples import BadRow, Samples

STEP_S = 15
COLUMNS = ("TAXI_ID", "TIMESTAMP", "POLYLINE")


def begins(head: Head) -> bool:
    """Return whether a file with this beginning is the table of Porto's taxi trips."""
    return bool(head.lines) and "POLYLINE" in head.lines[0]


def read(path: Path, samples: Samples) -> None:
    """Add the samples of a table of Porto's taxi trips."""
    samples.in_degrees(True)
    names: list[str] = []
    for line, cells in rows(path, blanks=True):
        if not names:
            names = [cell.strip() for cell in cells]
            if missing := [name for name in COLUMNS if names.count(name) != 1]:
                raise samples.error(
                    line, f"column {missing[0]} occurs {names.count(missing[0])} times; write it once"
                )
            places = [names.index(name) for name in COLUMNS]
            continue
        try:
            if len(cells) != len(names):
                raise samples.bad_row(line, miscounted(len(cells), len(names)))
            _add(line, [cells[at] for at in places], samples)
        except BadRow as bad:
            samples.skip(bad)


def _add(line: int, cells: list[str], samples: Samples) -> None:
    taxi, begin, polyline = cells
    begin_s = samples.time_s(line, "TIMESTAMP", begin)
    try:
        places = [(float(lon), float(lat)) for lon, lat in json.loads(polyline)]
    except (ValueError, TypeError, RecursionError) as error:
        raise samples.bad_row(line, f"POLYLINE is not a list of [longitude, latitude] ({error})") from error
    for number, (lon, lat) in enumerate(places):
        samples.add(line, "taxi", taxi, begin_s + STEP_S * number, lon, lat)
