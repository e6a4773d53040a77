"""Measure what each law of the radio preset nr does, and write docs/radio.md: python docs/radio.py (some minutes)."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

import edgefl
from edgefl.scenario import Scenario

HERE = Path(__file__).parent
SCENARIOS = HERE.parent / "scenarios"
SVHN = {"payload_bits": 21349696, "flops_per_sample": 6.0739885e7, "steps": 5, "batch": 128}
LOGISTIC = {"payload_bits": 251200, "flops_per_sample": 47040}

# law, its source, and the keys that leave it out
LAWS: list[tuple[str, str, dict[str, dict[str, Any]]]] = [
    ("line of sight by probability, soft", "38.901, 7.4.2, 7.6.3.3", {"radio": {"line_of_sight": "always"}}),
    (
        "site's power per resource block, and interference by slot",
        "38.104",
        {"radio": {"power_over_share": "full", "interference": "mean"}},
    ),
    ("CQI table and 2 dB SNR gap", "38.214, 5.2.2.1", {"radio": {"rates": "shannon", "snr_gap_db": 0.0}}),
    (
        "control 14 % and protocols 3 %",
        "38.306, 4.1.2",
        {"radio": {"control_overhead": 0.0, "protocol_overhead": 0.0}},
    ),
    ("HARQ, 10 % of first transmissions", "38.214, 5.2.2.1", {"radio": {"harq_bler": 0.0}}),
    (
        "noise figures 9 and 5 dB",
        "38.802, Annex A",
        {"radio": {"noise_figure_db": 0.0, "site_noise_figure_db": 0.0}},
    ),
    ("interference by slot, load 0.3", "`channel.interference`", {"radio": {"interference": "mean"}}),
    ("no interference", "-", {"radio": {"neighbour_load": 0.0}}),
    ("80 % indoors", "38.901, 7.4.3", {"devices": {"indoor_share": 0.0}}),
    ("gain read anew", "-", {"radio": {"gain_reading": "round"}}),
    ("radio link failure after 1 s (here: 10 s)", "38.331", {"radio": {"t310_s": 10.0}}),
    ("a link again after a failure", "38.331, 5.3.7", {"radio": {"t311_s": 0.0}}),
]

HEAD = """\
# The radio preset nr

`radio.preset: journal` is the journal paper's radio and stays the default. `radio.preset: nr` is a radio that exists:
it fills the keys that a scenario leaves out, and a run's scenario.yaml has them written out. `python docs/radio.py`
makes this page: runs without training, seed 100, of the code beside it.
"""


def measured(data: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Run; return mean and median time of a round, s, its joules at devices, and the share that ends it."""
    with tempfile.TemporaryDirectory() as folder:
        results = edgefl.simulate(Scenario.model_validate(data), out=Path(folder) / "run")
        rounds = results.rounds
        share = rounds.completed.sum() / rounds.participants.sum()
        return rounds.latency_s.mean(), rounds.latency_s.median(), rounds.energy_j.mean(), share


def seven_cells(preset: str = "nr") -> dict[str, Any]:
    """70 devices that drive through seven cells and send a model of SVHN (21 Mbit)."""
    mobility = {"name": "random_waypoint", "area_factor": 1.0, "speed_min_m_s": 5, "speed_max_m_s": 14}
    return {
        "name": "radio",
        "seed": 100,
        "layout": {"rings": 1, "isd_m": 500},
        "handover": {"policy": "finish"},
        "devices": {"count": 70, "mobility": mobility},
        "radio": {"preset": preset, "bandwidth_hz": 100e6, "neighbour_load": 0.3, "shadowing": "spatial"},
        "sessions": {"name": "schedule", "count": 1, "rounds": 2},
        "rounds": {"every_s": 60, "deadline_s": 300},
        "workload": SVHN,
    }


def changed(data: Mapping[str, Any], by: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the same with keys of some sections replaced."""
    return {**data, **{section: {**data.get(section, {}), **keys} for section, keys in by.items()}}


def shipped(name: str, preset: str, **keys: Any) -> dict[str, Any]:
    """A scenario that comes with edgefl, without training and with no radio but the preset, its band and load."""
    data = yaml.safe_load((SCENARIOS / f"{name}.yaml").read_text())
    for key in ("learning", "record"):
        data.pop(key, None)
    own = data.get("radio", {})
    kept = {
        key: own[key] for key in ("bandwidth_hz", "neighbour_load", "carrier_hz", "shadowing") if key in own
    }
    return {**data, "radio": {"preset": preset, **kept}, "workload": LOGISTIC, **keys}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = ["| " + " | ".join(row) + " |" for row in (names, *map(list, rows))]
    return "\n".join([lines[0], "|" + "---|" * len(names), *lines[1:]])


def figures(found: tuple[float, float, float, float]) -> list[str]:
    mean_s, median_s, joules, share = found
    return [f"{mean_s:.3g}", f"{median_s:.3g}", f"{joules:.3g}", f"{share:.1%}"]


def over(whole: tuple[float, ...], found: tuple[float, ...]) -> list[str]:
    """How many times the time and the energy of the whole preset are those of another radio."""
    return [f"{whole[0] / found[0]:.2f}", f"{whole[2] / found[2]:.2f}"]


def main() -> None:
    """Run everything and write the page."""
    columns = ("mean time, s", "median time, s", "energy, J", "took part to the end")
    whole = measured(seven_cells())
    rows = [["nr, whole", "", *figures(whole), "1", "1"]]
    for law, source, keys in LAWS:
        print(law, flush=True)
        found = measured(changed(seven_cells(), keys))
        rows.append([law, source, *figures(found), *over(whole, found)])
    journal = measured(seven_cells("journal"))
    rows.append(["all: the journal's radio", "J, Table I", *figures(journal), *over(whole, journal)])
    laws = table(("left out", "source", *columns, "time, nr over", "energy, nr over"), rows)
    text = [HEAD, LAWS_HEAD, laws, FURTHER, SCENARIOS_HEAD]
    presets = []
    for name, keys in (("quickstart", {}), ("city_day", {"duration_s": 600, "rounds": {"every_s": 60}})):
        for preset in ("journal", "nr"):
            print(name, preset, flush=True)
            presets.append([f"`{name}.yaml`", preset, *figures(measured(shipped(name, preset, **keys)))])
    text.append(table(("scenario", "preset", *columns), presets))
    (HERE / "radio.md").write_text("\n".join(text) + "\n")


LAWS_HEAD = """\
## What leaving a law out does

70 devices drive through seven cells of 500 m, 100 MHz and load 0.3 of the neighbours, and exchange 21 Mbit each way
in two rounds. Each row is the preset without one law; the last two columns are nr over that: above 1, the law costs
time or energy. A round ends with its slowest device, so one device in a bad place moves the mean: these are 14 rounds
of one seed, and differences of some percent mean nothing. Time and energy are of a round and cell; energy is that of
its devices. Without a link again after a failure, a link that fails ends its device's part, and fewer than half of
the parts come to their end: a row with another share is of other devices too, and its energy can fall where the law
costs most.
"""
FURTHER = """
## When a link fails

A link below the lowest CQI carries nothing, and is given up after `t310_s`. The device then looks for a cell: an attempt
takes `reestablishment_s`, and its transfer goes on at the strongest cell with the bits that are missing, if that is above
the lowest CQI. In another cell the device has been handed over: with `handover.policy: finish` its part of the round goes
on there, with `drop` it is over. After `t311_s` without a cell the part has failed; in a round with a deadline the device
looks on until then, idle. `devices.csv` and `ledger.csv` have what passed without a link as `stalled_s` and `stalled_j`,
`events.csv` has `radio_link_failure` and `reestablished`. `t311_s: 0` ends a part with the failure of its link.

## Others on the band

`radio.background` fills the band with files of other users, by a load or by a recorded one, such as the resource blocks that
a base station counts. A row holds until the next one of its cell, without interpolation; `all` are the cells without rows
of their own. A trace begins again at its end with `repeat: true`, or its last load holds on, and the run says so.

    time_s,cell,uplink_load,downlink_load
    0,all,0.1,0.2
    900,all,0.6,0.7
    1800,all,0.3,0.4

```yaml
radio:
  sharing: dynamic
  power_over_share: per_resource_block
  background: {name: trace, path: scenarios/traces/band_load.csv, repeat: true}
```

Users have a power (`transmit_power_dbm`) and walls (`indoor_share`) of their own, and what they spend is in no table.
"""
SCENARIOS_HEAD = """
## Two scenarios by both presets

Without training, with a logistic model's payload. Of a scenario's own radio only band, carrier, load and shadowing
by place are kept; of `city_day.yaml` the first ten minutes, without its deadline.
"""

if __name__ == "__main__":
    main()
