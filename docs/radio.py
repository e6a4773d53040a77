"""Measure the effect of each feature of the radio preset nr, and write docs/radio.md, or only some of its sections.

python docs/radio.py [laws] [quickstart] [city_day]    whole runs: ten minutes on two idle cores
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from radio_laws import LAWS, Law

import edgefl
from edgefl.scenario.scenario import Scenario
from edgefl.testing.cell import within

HERE = Path(__file__).parent
PAGE = HERE / "radio.md"
SCENARIOS = HERE.parent / "scenarios"
SVHN = {"payload_bits": 21349696, "flops_per_sample": 6.0739885e7, "steps": 5, "batch": 128}
LOGISTIC = {"payload_bits": 251200, "flops_per_sample": 47040, "steps": 5, "batch": 32}
PRESETS = ("journal", "nr")
SEEDS = (100, 101, 102)
# rounds of the quickstart's first session after which its accuracy is listed
ROUNDS = (1, 5, 10, 20)

Data = dict[str, Any]
# calls a function with the arguments of each job, and returns the results
Do = Callable[..., Iterable[Any]]


HEAD = """\
# The radio

`radio.preset: nr`, the default, models a real 5G radio; `radio.preset: journal` is the journal paper's radio. The
preset fills in the keys that a scenario leaves out, and a run's scenario.yaml lists all keys with their values. A key
that the scenario sets takes precedence: `radio.tdd: null` removes the frame, and
`radio.monitoring.coverage_margin_db: null` removes the coverage limit. The tables on this page come from whole runs
and show means over seeds with their standard errors.
"""
LAWS_HEAD = """\
## Effect of leaving out one feature

35 devices walk and 35 drive among seven sites 500 m apart, with 100 MHz and a load of 0.3 in the neighbouring cells.
The devices exchange 21 Mbit in each direction in two rounds. A round waits up to five minutes, and failed links are
reestablished, so that devices can finish their part. Each row leaves out one feature of the preset; "without it" says
what replaces this feature. The last two columns divide the time and energy of the whole preset by the row's time and
energy, for the same seeds: if the ratio is above 1, the feature costs time or energy. Time and energy (of the cell's
devices) are per round and cell. A round ends when its slowest device has finished. Two rows cover a different set of
devices: without reestablishment, a link failure ends the device's part of the round; if devices must always transmit
on their whole share, fewer devices have coverage, and the round does not wait for devices without coverage.
`radio.propagation.shadowing: spatial` is not in the table, because a scenario with several cells requires it.
"""
QUICKSTART_HEAD = """\
## The quickstart with both presets

The table shows the first session of `quickstart.yaml`, with training from scratch. Simulated seconds and the
devices' joules are counted from the session's beginning, and include computing. The target is nine tenths of the
accuracy that the run with the `journal` preset reaches at the session's end; the last row of each preset is the first
round that meets the target.
"""
CITY_HEAD = """\
## A city's day with both presets

The table shows `city_day.yaml` with its deadline of 120 s, without training. The scenario's sessions depend on which
devices are present, not on accuracy, and the payload has the bits of the scenario's model, so training would not
affect the radio. Of the scenario's radio settings we kept only band, carrier, load and the settings that a network of
several cells requires. Time and energy are per round and cell, over rounds with at least one participant; devices
that miss the deadline are cut off. Standard errors are over rounds.
"""


def seven_cells(preset: str = "nr") -> Data:
    """Return a scenario of seven cells, in which 70 devices walk and drive and send a model for SVHN (21 Mbit)."""
    walk = {"name": "random_waypoint", "area_factor": 1.0, "speed_min_m_s": 1, "speed_max_m_s": 1.8}
    drive = {**walk, "speed_min_m_s": 5, "speed_max_m_s": 14}
    classes = {"walking": {"share": 0.5}, "driving": {"mobility": drive}}
    return {
        "name": "radio",
        "seed": 100,
        "layout": {"rings": 1, "isd_m": 500},
        "handover": {"policy": "finish"},
        "devices": {"count": 70, "mobility": walk, "classes": classes},
        "radio": {
            "preset": preset,
            "bandwidth_hz": 100e6,
            "neighbour_load": 0.3,
            "propagation": {"shadowing": "spatial"},
        },
        "sessions": {"name": "schedule", "count": 1, "rounds": 2},
        "rounds": {"every_s": 60, "deadline_s": 300},
        "workload": SVHN,
    }


def changed(data: Mapping[str, Any], by: Mapping[str, Mapping[str, Any]]) -> Data:
    """Return a copy of a scenario with keys of some sections replaced."""
    return within(data, by)


def shipped(name: str, preset: str) -> Data:
    """Return a shipped scenario whose radio keeps only the preset, and the scenario's band, carrier and load."""
    data = yaml.safe_load((SCENARIOS / f"{name}.yaml").read_text())
    own = data.get("radio", {})
    kept = {key: own[key] for key in ("bandwidth_hz", "neighbour_load", "carrier_hz") if key in own}
    if "layout" in data:
        kept["propagation"] = {"shadowing": "spatial"}
    return {**data, "radio": {"preset": preset, **kept}}


def untrained(data: Data) -> Data:
    """Return a copy of a scenario that trains nothing and sends the payload of a logistic model."""
    kept = {key: value for key, value in data.items() if key not in ("learning", "record")}
    return {**kept, "workload": LOGISTIC, "record": {"devices": "none"}}


def rounds_of(data: Data, seed: int) -> pd.DataFrame:
    """Run a scenario to its end and return its rounds."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario.model_validate({**data, "seed": seed})
        return edgefl.simulate(scenario, out=Path(folder) / "run", threads=1).rounds


def measured(data: Data, seed: int) -> tuple[float, float, float]:
    """Return the mean seconds of a round, the devices' joules in a round, and the share of parts that completed."""
    rounds = rounds_of(data, seed)
    rounds = rounds[rounds.participants > 0]
    return rounds.latency_s.mean(), rounds.energy_j.mean(), rounds.completed.sum() / rounds.participants.sum()


def laws(do: Do, data: Callable[[str], Data] = seven_cells, seeds: Sequence[int] = SEEDS) -> str:
    """Measure the whole preset, the preset without each of its features in turn, and the preset `journal`."""
    variants = [data("nr"), *(changed(data("nr"), law.without) for law in LAWS), data("journal")]
    jobs = [(variant, seed) for variant in variants for seed in seeds]
    found = np.array(list(do(measured, *zip(*jobs, strict=True)))).reshape(len(variants), len(seeds), 3)
    titles = [
        ("none: all of `nr`", "", ""),
        *((law.name, _keys(law), law.source) for law in LAWS),
        ("all features: the journal's radio", "`radio.preset`", "J, Table I"),
    ]
    rows = [
        [*title, *(_with_error(each[:, i]) for i in (0, 1)), f"{each[:, 2].mean():.1%}"]
        + [_with_error(found[0, :, i] / each[:, i]) for i in (0, 1)]
        for title, each in zip(titles, found, strict=True)
    ]
    head = (
        "feature left out",
        "keys",
        "source",
        "time, s",
        "energy, J",
        "completed",
        "time, nr / row",
        "energy, nr / row",
    )
    of = f"The seeds are {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"The seed is {seeds[0]}"
    return f"{LAWS_HEAD}\n{of}.\n\n{table(head, rows)}"


def first_session(data: Data, seed: int) -> pd.DataFrame:
    """Return the seconds and joules since the first session began, and the accuracy, after each of its rounds."""
    rounds = rounds_of(data, seed)
    first = rounds[rounds.session == rounds.session.iloc[0]]
    columns = {
        "s": first.end_s - first.start_s.iloc[0],
        "j": first.energy_j.cumsum(),
        "accuracy": first.accuracy,
    }
    return pd.DataFrame(columns).reset_index(drop=True)


def quickstart(do: Do, data: Callable[[str, str], Data] = shipped, seeds: Sequence[int] = SEEDS) -> str:
    """Measure accuracy over simulated time with both presets."""
    jobs = [(changed(data("quickstart", preset), ONE_SESSION), seed) for preset in PRESETS for seed in seeds]
    found = list(do(first_session, *zip(*jobs, strict=True)))
    courses = dict(zip(PRESETS, (found[: len(seeds)], found[len(seeds) :]), strict=True))
    targets = [0.9 * course.accuracy.iloc[-1] for course in courses["journal"]]
    rows = []
    for preset, those in courses.items():
        for number in (n for n in ROUNDS if n <= min(map(len, those))):
            at = np.array([course.iloc[number - 1] for course in those])
            rows.append([preset, str(number), *(_with_error(at[:, i]) for i in range(3))])
        pairs = list(zip(those, targets, strict=True))
        if all((course.accuracy >= target).any() for course, target in pairs):
            reached = [int((course.accuracy >= target).argmax()) for course, target in pairs]
            at = np.array([course.iloc[row] for course, row in zip(those, reached, strict=True)])
            numbers = _with_error(np.array(reached) + 1.0)
            rows.append([f"{preset}, to the target", numbers, *(_with_error(at[:, i]) for i in range(3))])
        else:
            rows.append([f"{preset}, to the target", "not reached with every seed", "", "", ""])
    head = ("preset", "after round", "time, s", "energy, J", "accuracy")
    return f"{QUICKSTART_HEAD}\nThe seeds are {seeds[0]} to {seeds[-1]}.\n\n{table(head, rows)}"


ONE_SESSION = {"sessions": {"count": 1}}


def city_day(do: Do, data: Callable[[str, str], Data] = shipped, seeds: Sequence[int] = (100,)) -> str:
    """Measure a day of a city with both presets."""
    jobs = [(untrained(data("city_day", preset)), seed) for preset in PRESETS for seed in seeds]
    found = list(do(rounds_of, *zip(*jobs, strict=True)))
    rows = []
    for place, preset in enumerate(PRESETS):
        for seed, rounds in zip(seeds, found[place * len(seeds) :], strict=False):
            busy = rounds[rounds.participants > 0]
            share = busy.completed.sum() / busy.participants.sum()
            rows.append(
                [
                    *(preset, str(seed), f"{len(busy):,}", _with_error(busy.latency_s)),
                    *(f"{busy.latency_s.median():.3g}", _with_error(busy.energy_j)),
                    *(f"{busy.energy_j.sum() / 1000:.3g}", f"{share:.1%}"),
                ]
            )
    head = ("preset", "seed", "rounds", "time, s", "median", "energy, J", "total, kJ", "completed")
    hours = jobs[0][0]["duration_s"] / 3600
    return f"{CITY_HEAD}\nThe runs cover {hours:g} hours, from four in the morning.\n\n{table(head, rows)}"


SECTIONS: dict[str, Callable[..., str]] = {"laws": laws, "quickstart": quickstart, "city_day": city_day}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    names = list(head)
    lines = ["| " + " | ".join(row) + " |" for row in (names, *map(list, rows))]
    return "\n".join([lines[0], "|" + "---|" * len(names), *lines[1:]]) + "\n"


def _keys(law: Law) -> str:
    return ", ".join(f"`{key}`" for key in law.keys)


def _with_error(values: Iterable[float]) -> str:
    """Return the mean with its standard error, which is left out for a single value."""
    each = np.asarray(list(values), dtype=float)
    if len(each) == 1 or each.std() == 0:
        return f"{each.mean():.3g}"
    error = float(f"{each.std(ddof=1) / np.sqrt(len(each)):.1g}")  # one digit, and no exponent
    return f"{each.mean():.3g} ± {error:g}"


def main(names: Sequence[str] = ()) -> None:
    """Measure the named sections and write them into the page; other sections stay as they are."""
    old = PAGE.read_text().split("\n## ")[1:] if PAGE.exists() else []
    known = {text.splitlines()[0]: "## " + text.rstrip() + "\n" for text in old}
    heads = {"laws": LAWS_HEAD, "quickstart": QUICKSTART_HEAD, "city_day": CITY_HEAD}
    titles = {name: head.splitlines()[0][3:] for name, head in heads.items()}
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for name in names or SECTIONS:
            known[titles[name]] = SECTIONS[name](pool.map)
            made = [known[title] for title in titles.values() if title in known]
            by_hand = [text for title, text in known.items() if title not in titles.values()]
            PAGE.write_text("\n".join([HEAD, *made, *by_hand]))


if __name__ == "__main__":
    main(sys.argv[1:])
