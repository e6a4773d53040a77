"""Derive scenarios from the shipped scenarios by valid changes, small enough that their runs end quickly."""

from random import Random
from typing import Any

from tests.tools import fuzz_servers
from tests.tools.fuzz_mutations import (
    FuzzCase,
    allowed,
    least_or_most,
    other_component,
    scenario_data,
    text_of,
)
from tests.tools.fuzz_schema import at, name_at, put

# key -> highest value
MOST: dict[tuple[str, ...], float] = {
    ("devices", "count"): 12,
    ("devices", "density_per_km2"): 60.0,
    ("cell", "radius_m"): 400.0,
    ("layout", "rings"): 1,
    ("layout", "isd_m"): 400.0,
    ("duration_s",): 5.0,
    ("sessions", "count"): 3,
    ("sessions", "rounds"): 3,
    ("sessions", "min_rounds"): 2,
    ("sessions", "max_rounds"): 3,
    ("rounds", "max_wait_s"): 120.0,
    # after years of simulated time, the clock's resolution would exceed the tolerance of the invariants
    ("rounds", "every_s"): 100.0,
    ("rounds", "pause_s"): 100.0,
    ("rounds", "server_s"): 100.0,
    ("rounds", "min_updates"): 4,
    ("rounds", "selector", "count"): 6,
    ("workload", "payload_bits"): 1_000_000,
    ("workload", "steps"): 3,
    ("learning", "local", "steps"): 2,
    ("learning", "local", "epochs"): 1,
    ("learning", "local", "batch"): 16,
    ("learning", "pilot_sessions"): 2,
    ("learning", "warm_start", "probe_rounds"): 2,
}
LEAST: dict[tuple[str, ...], float] = {
    ("handover", "measurement_interval_s"): 0.05,
    ("radio", "bandwidth_hz"): 1.0e6,
    ("sessions", "max_rounds"): 2,
}
TIMED = ("interval", "daily")
PER_SLOT = ("max_rate", "proportional_fair", "round_robin")


def run_case(seed: int, number: int) -> FuzzCase:
    """Return the scenario of this number."""
    rng = Random(f"run {seed} {number}")
    data = scenario_data(rng)
    for _ in range(rng.randint(1, 5)):
        rng.choice((allowed, allowed, allowed, other_component, least_or_most))(data, rng)
    fuzz_servers.drawn(data, rng)
    shrink(data, rng)
    fit(data, rng)
    return FuzzCase({"scenario.yaml": text_of(data)})


def shrink(data: dict[str, Any], rng: Random) -> None:
    """Make a scenario small, with data sets that every machine has and models that train quickly."""
    learning = data.get("learning")
    if isinstance(learning, dict):
        synthetic = name_at(data, ("learning", "partition")) == "natural" or rng.random() < 0.25
        learning["dataset"] = {"name": "synthetic", "groups": 12} if synthetic else "digits"
        learning["model"] = rng.choice(("logistic", "logistic", "mlp2"))
    elif isinstance(data.get("workload"), dict):
        data["workload"]["payload_bits"] = at(data, ("workload", "payload_bits")) or 1000
    federations = data.get("federations")
    for name in federations if isinstance(federations, dict) else ():
        if isinstance(own := at(federations, (name, "learning")), dict):
            own |= {"dataset": "digits", "model": rng.choice(("logistic", "mlp2")), "local": {"batch": 16}}
    if isinstance(data.get("devices"), dict) and data["devices"].get("density_per_km2") is not None:
        data["devices"].pop("count", None)
    for sign, limits in ((1, MOST), (-1, LEAST)):
        for place, limit in limits.items():
            held = at(data, place)
            if isinstance(held, int | float) and sign * held > sign * limit:
                put(data, place, limit)


def fit(data: dict[str, Any], rng: Random) -> None:
    """Resolve the conflicts of settings that most often cause a refusal, except in a few scenarios."""
    if rng.random() < 0.1:
        return
    if name_at(data, ("sessions",)) in TIMED:
        put(data, ("duration_s",), min(2.0, at(data, ("duration_s",)) or 2.0))
    elif name_at(data, ("sessions",)) != "schedule":
        put(data, ("sessions", "min_rounds"), min(2, at(data, ("sessions", "min_rounds")) or 2))
        put(data, ("sessions", "max_rounds"), max(2, min(3, at(data, ("sessions", "max_rounds")) or 3)))
    several = (
        any(at(data, ("layout", key)) for key in ("rings", "sites")) or at(data, ("layout", "sectors")) == 3
    )
    if several or at(data, ("radio", "propagation", "line_of_sight")) == "probabilistic":
        put(data, ("radio", "propagation", "shadowing"), "spatial")
    if not several:
        data.get("radio", {}).pop("neighbour_load", None)
    if name_at(data, ("radio", "scheduler")) in PER_SLOT:
        put(data, ("radio", "sharing"), "dynamic")
        data["radio"].pop("fidelity", None)
    if name_at(data, ("rounds", "selector")) in (None, "all"):
        data.get("rounds", {}).pop("over_selection", None)
    fuzz_servers.fitted(data, rng)
