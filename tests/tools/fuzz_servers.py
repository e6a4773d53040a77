"""Add servers, codecs or a cloud over cells to a scenario; all of them change when models are made."""

from random import Random
from typing import Any

from tests.tools.fuzz_mutations import component
from tests.tools.fuzz_schema import at, name_at, put

OVERLAPPING = ("fedbuff", "fedasync", "semi_synchronous", "tiers")
OF_SYNCHRONOUS = ("every_s", "pause_s", "deadline_s", "over_selection")
MEANS = ("fedavg", "fedprox", "moon", "ditto", "apfl")
STALE = (*MEANS, "fedavgm", "fedacg", "fedadam", "fedyogi", "fedadagrad", "fadas", "ca2fl")
SLOTS = ("round_robin", "proportional_fair", "max_rate")
SITES = [[0, 0], [120, 0], [60, 100]]
MOST = {"concurrency": 6, "buffer": 4, "count": 3, "max_staleness": 3, "every_s": 5.0}


def drawn(data: dict[str, Any], rng: Random) -> None:
    """Draw a server whose rounds overlap, codecs, and a cloud, each with probability 1/4."""
    if rng.random() < 0.25:
        server = component("servers", rng)
        put(data, ("rounds", "server"), server if server != "synchronous" else "fedasync")
    for key in ("uplink_codec", "downlink_codec"):
        if isinstance(data.get("learning"), dict) and rng.random() < 0.25:
            put(data, ("learning", key), component("codecs", rng))
    if rng.random() < 0.25:
        data["cloud"] = {
            "every": rng.choice((1, 1, 2, 3)),
            "waits_for": rng.choice(("cells", "nobody")),
            "backhaul_bps": 10 ** rng.uniform(4, 10),
            "backhaul_latency_s": rng.choice((0, 0.02, 1.0)),
            "backhaul_j_per_bit": rng.choice((0, 1e-7)),
        }


def fitted(data: dict[str, Any], rng: Random) -> None:
    """Replace settings that are incompatible with the chosen server, codecs or cloud."""
    server = name_at(data, ("rounds", "server"))
    algorithms: tuple[str, ...] = ()
    if server in OVERLAPPING:
        algorithms = MEANS if server == "tiers" else STALE
        _let_overlap(data, rng)
    if data.get("cloud"):
        algorithms = MEANS
        data["cloud"] = {"every": 2, "backhaul_bps": 1e7, **data["cloud"]}
        if server == "tiers":
            put(data, ("rounds", "server"), "fedbuff")
        if at(data, ("layout", "sites")) is None and not at(data, ("layout", "rings")):
            data["layout"] = {"sites": SITES, "federations": "all"}
        put(data, ("radio", "propagation", "shadowing"), "spatial")
    if isinstance(data.get("learning"), dict):
        if algorithms and name_at(data, ("learning", "algorithm")) not in (None, *algorithms):
            put(data, ("learning", "algorithm"), rng.choice(algorithms))
        if at(data, ("learning", "downlink_codec")) is not None:
            put(data, ("radio", "downlink"), "unicast")


def _let_overlap(data: dict[str, Any], rng: Random) -> None:
    for key in OF_SYNCHRONOUS:
        data["rounds"].pop(key, None)
    put(data, ("radio", "sharing"), "dynamic")
    put(data, ("radio", "downlink"), "unicast")
    if name_at(data, ("radio", "scheduler")) not in SLOTS:
        put(data, ("radio", "scheduler"), rng.choice(SLOTS))
    data["radio"].pop("fidelity", None)
    if isinstance(server := data["rounds"]["server"], dict):
        for key, most in MOST.items():
            if isinstance(held := server.get(key), int | float):
                server[key] = min(held, most)
        if name_at(data, ("rounds", "selector")) not in (None, "all"):
            server.pop("concurrency", None)
    elif server == "semi_synchronous":
        data["rounds"]["server"] = {"name": server, "every_s": rng.choice((0.01, 0.1, 1.0))}
    if isinstance(data.get("learning"), dict):
        data["learning"].pop("theory", None)
