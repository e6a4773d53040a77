"""The laws of `nr` that docs/radio.md measures, each with its keys, its source, and sections without the law."""

from typing import Any, NamedTuple


class Law(NamedTuple):
    """A law of the preset: the keys that switch it on, its source, and the sections that leave the law out."""

    name: str
    keys: tuple[str, ...]
    source: str
    without: dict[str, dict[str, Any]]


LAWS = [
    Law(
        "line of sight is drawn for each place and changes gradually",
        ("radio.propagation.line_of_sight",),
        "38.901, 7.4.2, 7.6.3.3",
        {"radio": {"propagation": {"line_of_sight": "always"}}},
    ),
    Law(
        "both directions share a TDD frame (DDDSU)",
        ("radio.tdd",),
        "38.213, 11.1",
        {"radio": {"tdd": None}},
    ),
    Law(
        "a site's antenna has 5 dBi",
        ("layout.antenna_gain_dbi",),
        "38.901, Table 7.3-1",
        {"layout": {"antenna_gain_dbi": 0.0}},
    ),
    Law(
        "beams gain 14.5 dB, and 9.5 dB without line of sight",
        ("radio.budget.array_gain_db",),
        "38.802, Annex A; 38.214, Table 5.2.2.2.1-2",
        {"radio": {"budget": {"array_gain_db": 0.0}}},
    ),
    Law(
        "beams gain less around corners and into buildings",
        ("radio.budget.nlos_array_gain_db",),
        "38.901, Table 7.5-6",
        {"radio": {"budget": {"nlos_array_gain_db": None}}},
    ),
    Law(
        "a site has the power of its kind, 44 dBm (without it: 53 dBm)",
        ("radio.budget.server_power_dbm",),
        "38.875, 38.901, Table 7.8-1",
        {"radio": {"budget": {"server_power_dbm": 53.0}}},
    ),
    Law(
        "11 independent parts of the band (without it: one)",
        ("radio.link.frequency_taps",),
        "38.901, Table 7.5-6",
        {"radio": {"link": {"frequency_taps": 1}}},
    ),
    Law(
        "two layers in the downlink",
        ("radio.link.downlink_layers",),
        "38.306, 4.1.2",
        {"radio": {"link": {"downlink_layers": 1}}},
    ),
    Law(
        "blocks are divided slot by slot (without it: 1/K held for a round)",
        ("radio.sharing",),
        "38.214, 5.1.2.2 and 6.1.2.2",
        {"radio": {"sharing": "static"}},
    ),
    Law(
        "uplink power control (without it: full power)",
        ("radio.budget.uplink_p0_dbm", "radio.budget.uplink_alpha"),
        "38.213, 7.1.1",
        {"radio": {"budget": {"uplink_p0_dbm": 24.0}}},
    ),
    Law(
        "devices without a link are absent",
        ("radio.monitoring.coverage_margin_db",),
        "38.304, 5.2.3.2",
        {"radio": {"monitoring": {"coverage_margin_db": None}}},
    ),
    Law(
        "shadowing is correlated between sites",
        ("radio.propagation.site_correlation",),
        "36.814, A.2.1.1",
        {"radio": {"propagation": {"site_correlation": 0.0}}},
    ),
    Law(
        "line of sight is correlated between sites",
        ("radio.propagation.los_site_correlation",),
        "not in 38.901",
        {"radio": {"propagation": {"los_site_correlation": 0.0}}},
    ),
    Law(
        "a site's power is split evenly across resource blocks (without it: full power, and mean interference)",
        ("radio.budget.power_over_share",),
        "38.104",
        {"radio": {"budget": {"power_over_share": "full"}, "interference": "mean"}},
    ),
    Law(
        "a device puts its full power on its share (without it: split across resource blocks)",
        ("radio.budget.uplink_power_over_share",),
        "38.101",
        {"radio": {"budget": {"uplink_power_over_share": "per_resource_block"}}},
    ),
    Law(
        "CQI table and SNR gap, together with layers, parts of a share and coverage",
        ("radio.link.rates",),
        "38.214, 5.2.2.1",
        {"radio": {"link": {"rates": "shannon"}}},
    ),
    Law(
        "overheads: control 14 %, protocols 3 %",
        ("radio.link.control_overhead", "radio.link.protocol_overhead"),
        "38.306, 4.1.2",
        {"radio": {"link": {"control_overhead": 0.0, "protocol_overhead": 0.0}}},
    ),
    Law(
        "HARQ: 10 % of first transmissions are repeated",
        ("radio.link.harq_bler",),
        "38.214, 5.2.2.1",
        {"radio": {"link": {"harq_bler": 0.0}}},
    ),
    Law(
        "noise figures of 9 and 5 dB",
        ("radio.budget.noise_figure_db", "radio.budget.site_noise_figure_db"),
        "38.802, Annex A",
        {"radio": {"budget": {"noise_figure_db": 0.0, "site_noise_figure_db": 0.0}}},
    ),
    Law(
        "interference by slot (without it: mean interference, in the downlink only)",
        ("radio.interference",),
        "`edgefl.channel.interference`",
        {"radio": {"interference": "mean"}},
    ),
    Law(
        "interference (without it: none)", ("radio.neighbour_load",), "-", {"radio": {"neighbour_load": 0.0}}
    ),
    Law(
        "80 % of pedestrians are indoors",
        ("devices.indoor_share",),
        "38.901, Table 7.2-1",
        {"devices": {"indoor_share": 0.0}},
    ),
    Law(
        "a device is indoors or outdoors for a whole trip (without it: for each place of 25 m, also in cars)",
        ("devices.indoors_by",),
        "-",
        {"devices": {"indoors_by": "place"}},
    ),
    Law(
        "fast devices are in cars, with a loss of 9 dB",
        ("devices.vehicle_above_m_s",),
        "38.901, 7.4.3.2",
        {"devices": {"vehicle_above_m_s": 150.0}},
    ),
    Law(
        "a phone's power consumption (without it: radiated power)",
        ("devices.power", "devices.idle_power_w"),
        "38.840, 8.1",
        {"devices": {"power": "journal", "idle_power_w": 0.0}},
    ),
    Law(
        "walls have a low loss (without it: a high loss)",
        ("devices.coated_share",),
        "38.901, 7.4.3",
        {"devices": {"coated_share": 1.0}},
    ),
    Law(
        "the gain is updated during a transfer",
        ("radio.monitoring.gain_reading",),
        "-",
        {"radio": {"monitoring": {"gain_reading": "round"}}},
    ),
    Law(
        "a link fails after 1 s (without it: after 10 s)",
        ("radio.monitoring.t310_s",),
        "38.331, 5.3.10",
        {"radio": {"monitoring": {"t310_s": 10.0}}},
    ),
    Law(
        "reestablishment after a link failure",
        ("radio.monitoring.t311_s",),
        "38.331, 5.3.7; 38.133, 6.2.1",
        {"radio": {"monitoring": {"t311_s": 0.0}}},
    ),
    Law(
        "access to the radio: setup without a connection, a grant with one",
        ("radio.access.setup_s", "radio.access.grant_s"),
        "measured; 38.321, 5.4.4",
        {"radio": {"access": {"setup_s": 0.0, "grant_s": 0.0}}},
    ),
    Law(
        "path to the server: round trip, slow start, serialisation",
        ("radio.access.round_trip_s", "radio.access.before_downlink_s", "radio.access.before_uplink_s"),
        "measured; RFC 5681, RFC 6928",
        {"radio": {"access": {"round_trip_s": 0.0, "before_downlink_s": 0.0, "before_uplink_s": 0.0}}},
    ),
    Law(
        "L3 filter with k = 4 (without it: no filter)",
        ("handover.l3_filter_k",),
        "38.331, 5.5.3.2",
        {"handover": {"l3_filter_k": 0}},
    ),
    Law(
        "handover: offset 3 dB, hysteresis 1 dB, 640 ms to trigger (without it: 0 dB, 3 dB, 160 ms)",
        ("handover.a3_offset_db", "handover.hysteresis_db", "handover.time_to_trigger_s"),
        "38.331, 5.5.4.4",
        {"handover": {"a3_offset_db": 0.0, "hysteresis_db": 3.0, "time_to_trigger_s": 0.16}},
    ),
]
