"""Features of the world, the radio and the rounds: functions that set keys of a scenario to drawn values."""

from collections.abc import Callable
from random import Random
from typing import Any

from tests.tools.fuzz_mutations import component
from tests.tools.fuzz_schema import at, put
from tests.tools.movements import CHURN, MOBILITY

Data = dict[str, Any]
Feature = Callable[[Data, Random], None]
PATTERNS = ("DDDSU", "DSUUD", "SU", "DDSUU")
SITES = [[0, 0], [50, 0], [25, 40]]
PLAIN = ("best_channel", "proportional_fair", "round_robin", "uniform")
ASKING = ("best_norm", "energy_aware", "oort", "power_of_choice", "refl")
DECIDING = ("fedcs", "fedl", "hungarian", "least_energy", "least_time")


def mobility(data: Data, rng: Random) -> None:
    name = rng.choice(sorted(MOBILITY))
    put(data, ("devices", "mobility"), {"name": name, **MOBILITY[name]})


def churn(data: Data, rng: Random) -> None:
    name = rng.choice(sorted(CHURN))
    put(data, ("devices", "churn"), {"name": name, **CHURN[name]})
    if name == "client_pattern":
        put(data, ("devices", "churn", "sessions"), [[0, 1, 2, 3], [2, 3, 4, 5]])


def cells(data: Data, rng: Random) -> None:
    data["layout"] = rng.choice(
        (
            {"rings": 1, "isd_m": rng.choice((50, 60))},
            {"rings": 1, "isd_m": 60, "federations": "centre"},
            {"sites": SITES},
            {"sites": SITES[:2], "sectors": 3, "downtilt_deg": rng.choice((0, 8))},
            {"sectors": 3, "federations": rng.choice(("all", [0, 2]))},
        )
    )
    put(data, ("devices", "count"), 10)
    put(data, ("radio", "propagation", "shadowing"), "spatial")


def losses_of_paths(data: Data, rng: Random) -> None:
    put(data, ("radio", "path_loss"), rng.choice(("umi", "uma", "inh", "free_space")))
    put(
        data,
        ("radio", "propagation", "line_of_sight"),
        rng.choice(("always", "never", "probabilistic", "soft")),
    )
    put(data, ("radio", "propagation", "shadowing"), rng.choice(("round", "spatial", "spatial")))
    put(data, ("radio", "propagation", "shadowing_std_db"), rng.choice((None, 0, 3, 8)))


def fading(data: Data, rng: Random) -> None:
    put(data, ("radio", "link", "frequency_taps"), rng.choice((1, 2, 4)))
    put(data, ("radio", "monitoring", "gain_reading"), rng.choice(("round", "interval")))
    put(data, ("radio", "fidelity"), rng.choice(("auto", "slot", "renewal")))
    if at(data, ("devices", "mobility")) is None:
        speed_m_s = rng.choice((0, 1, 30))
        put(data, ("devices", "mobility"), {"name": "static", "doppler_speed_m_s": speed_m_s})


def interference(data: Data, rng: Random) -> None:
    cells(data, rng)
    put(data, ("radio", "neighbour_load"), rng.choice((0.1, 0.5, 1)))
    put(data, ("radio", "interference"), rng.choice(("mean", "slot")))
    put(
        data,
        ("radio", "budget", "power_over_share"),
        rng.choice(("full", "per_resource_block", "per_resource_block")),
    )


def duplex(data: Data, rng: Random) -> None:
    if rng.random() < 0.3:
        put(data, ("radio", "carrier_hz"), 0.7e9)
        put(data, ("radio", "tdd"), None)
    else:
        special = rng.choice(("10:2:2", "6:4:4", "2:2:10"))
        put(data, ("radio", "tdd"), {"pattern": rng.choice(PATTERNS), "special": special})


def sharing(data: Data, rng: Random) -> None:
    put(data, ("radio", "sharing"), "dynamic")
    scheduler = rng.choice(
        ("equal_share", "round_robin", "proportional_fair", "max_rate", "learning_first", "min_max_latency")
    )
    put(data, ("radio", "scheduler"), scheduler)
    put(data, ("radio", "budget", "power_over_share"), rng.choice(("full", "per_resource_block")))


def background(data: Data, rng: Random) -> None:
    sharing(data, rng)
    put(data, ("radio", "budget", "power_over_share"), "per_resource_block")
    load = {"name": "load", "file_bits": 30_000, "users": 5}
    ways = {key: rng.choice((0, 0.2, 0.6)) for key in ("uplink_load", "downlink_load")}
    put(data, ("radio", "background"), load | ways)


def broadcast(data: Data, rng: Random) -> None:
    put(data, ("radio", "downlink"), "broadcast")


def uplink(data: Data, rng: Random) -> None:
    put(data, ("radio", "budget", "uplink_p0_dbm"), rng.choice((None, -100, -80, -60)))
    put(data, ("radio", "budget", "uplink_alpha"), rng.choice((0, 0.6, 1)))
    put(data, ("radio", "budget", "uplink_power_over_share"), rng.choice(("full", "per_resource_block")))


def loss_on_air(data: Data, rng: Random) -> None:
    put(data, ("radio", "link", "uplink_waterfall_db"), rng.choice((0.023, 5, 20)))


def weak_links(data: Data, rng: Random) -> None:
    """Add distant devices of low power, whose links fail and are reestablished."""
    data["radio"] |= {
        "preset": "nr",
        "monitoring": {
            "t310_s": rng.choice((0.05, 0.1)),
            "t311_s": rng.choice((0, 0.2)),
            "coverage_margin_db": rng.choice(("none", 0, 3)),
        },
        "budget": {"interference_margin_db": rng.choice((20, 30, 40))},
    }
    put(data, ("handover", "measurement_interval_s"), 0.05)


def power(data: Data, rng: Random) -> None:
    put(data, ("devices", "power"), component("power_models", rng))
    put(data, ("devices", "idle_power_w"), rng.choice((0, 0.01)))


def batteries(data: Data, rng: Random) -> None:
    data["devices"] |= {
        "battery_j": 10 ** rng.uniform(-3, 0.5),
        "recharge_w": rng.choice((0, 0.05, 1)),
        "return_share": rng.choice((0.2, 1)),
    }
    data.setdefault("duration_s", 3.0)


def classes(data: Data, rng: Random) -> None:
    data["devices"]["classes"] = {
        "slow": {"count": 3, "clock_hz": 1e6, "transmit_power_dbm": rng.choice((0, 23))},
        "away": {
            "count": 2,
            "churn": {"name": "duty_cycle", "on_s": 0.3, "off_s": 0.1},
            "mobility": {"name": "random_waypoint", **MOBILITY["random_waypoint"]},
        },
        "weak": {"battery_j": rng.choice((0.01, 1.0)), "recharge_w": 0.05, "ut_height_m": 1.2},
    }
    data["devices"]["classes_by"] = rng.choice(("seed", "ids"))


def indoors(data: Data, rng: Random) -> None:
    data["devices"] |= {"indoor_share": rng.choice((0.5, 1)), "indoors_by": rng.choice(("place", "trip"))}
    data["devices"]["coated_share"] = rng.choice((0.0, 1.0))


def density(data: Data, rng: Random) -> None:
    data["devices"].pop("count", None)
    data["devices"]["density_per_km2"] = rng.choice((200, 1000))


def populations(data: Data, rng: Random) -> None:
    data["devices"] |= {"count": 10, "populations": rng.choice((2, 3))}


def handover(data: Data, rng: Random) -> None:
    data["handover"] = {
        "hysteresis_db": rng.choice((0, 1, 3)),
        "a3_offset_db": rng.choice((-2, 0, 3)),
        "time_to_trigger_s": rng.choice((0, 0.05, 0.25)),
        "measurement_interval_s": rng.choice((0.05, 0.13)),
        "handover_latency_s": rng.choice((0, 0.05, 1)),
        "l3_filter_k": rng.choice((0, 4)),
        "policy": rng.choice(("drop", "finish")),
    }


def deadlines(data: Data, rng: Random) -> None:
    choices = {
        "deadline_s": (0.003, 0.02, 0.1),
        "every_s": (0.05, 0.4),
        "pause_s": (0.1,),
        "server_s": (0.05,),
        "min_updates": (2, 4),
        "not_finite": ("drop",),
    }
    for key in rng.sample(sorted(choices), rng.randint(1, 3)):
        put(data, ("rounds", key), rng.choice(choices[key]))


def selector(data: Data, rng: Random) -> None:
    name = rng.choice((*PLAIN, *ASKING))
    own = {"name": name, "count": rng.randint(1, 4)} | ({"d": 5} if name == "power_of_choice" else {})
    put(data, ("rounds", "selector"), own)
    if rng.random() < 0.4:
        put(data, ("rounds", "over_selection"), rng.choice((1.3, 2)))


def decider(data: Data, rng: Random) -> None:
    name = rng.choice(DECIDING)
    own: Data = {"name": name, "count": rng.randint(1, 4)}
    if name in ("fedcs", "least_energy"):
        own["deadline_s"] = rng.choice((0.05, 1))
    if name == "hungarian":
        put(data, ("radio", "link", "uplink_waterfall_db"), rng.choice((0.023, 10)))
    put(data, ("rounds", "selector"), own)
    put(data, ("radio", "budget", "uplink_power_over_share"), "full")


def server(data: Data, rng: Random) -> None:
    own = rng.choice(
        (
            {"name": "fedbuff", "buffer": rng.randint(1, 4)},
            {"name": "fedbuff", "buffer": 2, "concurrency": 3, "divisor": "weights", "base": "current"},
            {"name": "fedasync", "staleness": rng.choice(("constant", "hinge", "polynomial"))},
            {"name": "semi_synchronous", "every_s": rng.choice((0.01, 0.05, 0.3))},
            {"name": "tiers", "count": rng.choice((1, 2, 3))},
        )
    )
    if own["name"] != "tiers":
        own |= rng.choice(({}, {"max_staleness": 1, "beyond": rng.choice(("drop", "cap"))}))
    put(data, ("rounds", "server"), own)


def sessions(data: Data, rng: Random) -> None:
    bounds = {"count": rng.choice((1, 3)), "min_rounds": rng.choice((1, 2)), "max_rounds": 4}
    data["sessions"] = rng.choice(
        (
            {"name": "schedule", "count": 3, "rounds": rng.choice((1, 2))},
            {"name": "interval", "count": 2, "length_s": 0.5},
            {"name": "daily", "at_hours": [6, 18], "day_s": 2.0},
            {"name": "membership", **bounds, "changed_share": 0.3},
            {"name": "adaptive", **bounds},
            {"name": "early_stopping" if "learning" in data else "membership", **bounds},
        )
    )
    if data["sessions"]["name"] in ("daily", "interval"):
        data["duration_s"] = 1.5
    elif data["sessions"]["name"] == "early_stopping":
        put(data, ("learning", "evaluation", "validation"), 0.2)


def cloud(data: Data, rng: Random) -> None:
    data["cloud"] = {
        "every": rng.choice((1, 2, 3)),
        "waits_for": rng.choice(("cells", "nobody")),
        "backhaul_bps": 10 ** rng.uniform(5, 9),
        "backhaul_latency_s": rng.choice((0, 0.02)),
        "backhaul_j_per_bit": rng.choice((0, 1e-7)),
    }
    if "layout" not in data:
        data["layout"] = {"sites": SITES}
        put(data, ("devices", "count"), 10)


def federations(data: Data, rng: Random) -> None:
    b: Data = {"share": 0.5, "weight": rng.choice((1, 3)), "rounds": {"every_s": rng.choice((None, 0.3))}}
    if rng.random() < 0.5:
        b["workload"] = {"payload_bits": 20_000, "flops_per_sample": 1e4}
    if rng.random() < 0.3:
        b["sessions"] = {"name": "schedule", "count": 1, "rounds": 4}
    data["federations"] = {"a": {"share": 0.5}, "b": b}
    put(data, ("radio", "sharing"), "dynamic")
    put(data, ("radio", "downlink"), "unicast")


def extremes(data: Data, rng: Random) -> None:
    """Set numbers to values close to their bounds, to very small values, or to many times their usual values."""
    choices: dict[tuple[str, str], tuple[float, ...]] = {
        ("radio", "slot_s"): (2.5e-4, 1e-2),
        ("radio", "bandwidth_hz"): (1e5, 1e8),
        ("radio", "link", "control_overhead"): (0.9,),
        ("radio", "link", "harq_bler"): (0.5,),
        ("rounds", "deadline_s"): (1e-6, 1e-3),
        ("handover", "measurement_interval_s"): (0.01, 2.0),
        ("devices", "clock_hz"): (1e6, 1e11),
        ("devices", "transmit_power_dbm"): (-40.0, 40.0),
        ("devices", "capacitance"): (0.0, 1e-20),
        ("devices", "pa_efficiency"): (1e-3,),
    }
    for place in rng.sample(sorted(choices), rng.randint(1, 3)):
        put(data, place, rng.choice(choices[place]))


def records(data: Data, rng: Random) -> None:
    choices = {
        "devices": ("all", "none", 2),
        "positions_s": ("none", 0.03, 0.5),
        "energy_excess": (True,),
        "models": ("none", "personal", "best", 2),
    }
    data["record"] = {key: rng.choice(choices[key]) for key in rng.sample(sorted(choices), rng.randint(1, 3))}


WORLD: dict[str, Feature] = {
    feature.__name__: feature
    for feature in (
        *(mobility, churn, cells, losses_of_paths, fading, interference, duplex, sharing, background),
        *(broadcast, uplink, loss_on_air, weak_links, power, batteries, classes, indoors, density),
        *(populations, handover, deadlines, selector, decider, server, sessions, cloud, federations, records),
        extremes,
    )
}
