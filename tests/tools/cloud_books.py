"""Check the tables of a run with a cloud: bits, seconds and joules of the backhaul, and each cell's model."""

import math
from collections.abc import Iterator

from tests.tools.run_tables import Row, Tables, named

TOLERANCE = 1e-9  # relative rounding of products in a different order
TIME_DIGIT_S = 2e-9


def cloud_keeps_its_books(tables: Tables) -> Iterator[str]:
    """Check transfers' time and energy on the backhaul, and that cells get a cloud's model only when it is ready."""
    settings = tables.cloud
    if settings is None:
        return
    made_s = {
        _version(event["detail"]): event["time_s"]
        for event in tables.events
        if event["event"] == "cloud_model"
    }
    if [*made_s] != list(range(1, len(made_s) + 1)):
        yield f"events.csv: the cloud's models are {[*made_s]}"
    latency_s = settings.get("backhaul_latency_s", 0.0)
    for row in tables.rounds:
        bits, version = row["backhaul_bits"], row["cloud_version"]
        ways = 2 if version is not None else 1 if bits else 0
        if ways == 2 and not bits:
            yield f"{named(row)}: has the cloud's model {version:g}, but sent no bits over the backhaul"
            continue
        one_way_s = latency_s + bits / ways / settings["backhaul_bps"] if ways else 0.0
        if not math.isclose(row["backhaul_s"], ways * one_way_s, rel_tol=TOLERANCE, abs_tol=TIME_DIGIT_S):
            yield f"{named(row)}: backhaul_s is {row['backhaul_s']}, but its bits take {ways * one_way_s}"
        energy_j = bits * settings.get("backhaul_j_per_bit", 0.0)
        if not math.isclose(row["energy_backhaul_j"], energy_j, rel_tol=TOLERANCE):
            yield f"{named(row)}: energy_backhaul_j is {row['energy_backhaul_j']}, but its bits use {energy_j}"
        yield from _in_time(row, made_s, one_way_s)


def _in_time(row: Row, made_s: dict[int, float], one_way_s: float) -> Iterator[str]:
    """Check that a round ends when the cloud's model arrives, and that the cell sent its model during the round."""
    if row["cloud_version"] is None:
        return
    then_s = made_s.get(int(row["cloud_version"]))
    if then_s is None:
        yield f"{named(row)}: events.csv has no model {row['cloud_version']:g} of the cloud"
        return
    sent_s = then_s - row["cloud_wait_s"] - one_way_s
    if row["end_s"] < then_s + one_way_s - TIME_DIGIT_S or sent_s < row["start_s"] - TIME_DIGIT_S:
        yield f"{named(row)}: has the cloud's model {row['cloud_version']:g} of {then_s} s at the wrong time"


def _version(detail: str) -> int:
    return int(detail.split()[1])
