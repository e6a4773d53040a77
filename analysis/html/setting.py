"""Describe what runs have in common, and name what differs between them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from edgefl.analysis.measures.metrics import RUN
from edgefl.analysis.page.formatting import count_of, counts_of, joined
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.places import layout_of
from edgefl.analysis.runs.scenario_keys import scenario_of

MOST_NAMED = 3  # number of different values that a sentence lists


class _Facts(NamedTuple):
    """The setting of one run: its cells, and the noun and name of each part that trains, none without training."""

    cells: int
    where: str
    parts: dict[str, str]


def setting(runs: Runs) -> str:
    """Describe the devices, cells and learning of all runs in a sentence; values that differ are listed with `or`."""
    all_devices = runs.ledger.groupby(RUN)["energy_j"]
    devices, active = (sorted(set(counts)) for counts in (all_devices.size(), all_devices.agg(_active)))
    facts = [_facts(run) for run in runs.info.itertuples()]
    places = [where for _, where in sorted({(of.cells, of.where) for of in facts})]
    cells = sorted({of.cells for of in facts})
    where = joined(places, "or") if len(places) <= MOST_NAMED else f"{cells[0]} to {cells[-1]} cells"
    s = "s" if active == [1] else ""
    part = f"{_numbers(active).rpartition(' ')[0]} of " if active != devices else ""
    learning = [of.parts for of in facts if "model" in of.parts]
    learners = [of.parts for of in facts if "learner" in of.parts]
    work = []
    if learning:
        model, data, algorithm = (_named(noun, learning) for noun in ("model", "data set", "algorithm"))
        work.append(f"train{s} {model} on {data} with {algorithm}")
    if learners:
        work.append(f"train{s} with {_named('learner', learners)}")
    if not all(of.parts for of in facts):
        work.append(
            f"run{s} a workload without training" if work else f"run{s} a workload; nothing is trained"
        )
    return f"{part}{_numbers(devices)} in {where} {', or '.join(work)}."


def _active(joules: pd.Series) -> int:
    """Count the devices that took part in a round; a device out of coverage all the time spends nothing."""
    return int(joules.gt(0).sum()) or len(joules)


def seeds_of(info: pd.DataFrame) -> str:
    """List the variants, with the number of seeds of each if any has several."""
    seeds = info.groupby("variant", sort=False).size()
    names = [str(variant) for variant in seeds.index]
    if seeds.nunique() > 1:
        return ", ".join(f"{name} ({count_of(n, 'seed')})" for name, n in zip(names, seeds, strict=True))
    each = f"{', each' * (len(names) > 1)} with {count_of(seeds.iloc[0], 'seed')}"
    return ", ".join(names) + each * bool(seeds.iloc[0] > 1)


def _facts(run: Any) -> _Facts:
    with scenario_of(str(run.path)) as scenario:
        cells, served = _cells_of(scenario)  # including cells without a round
        each = "with a federation each" if served == cells else f"({served} with a server)"
        where = "one cell" if cells == 1 else f"{cells} cells {each}"
        learning = scenario.get("learning")
        if run.learner:
            parts = {"learner": str(run.learner)}
        elif learning:
            keys = {"model": "model", "data set": "dataset", "algorithm": "algorithm"}
            parts = {noun: _name(learning[key]) for noun, key in keys.items()}
        else:
            parts = {}
        return _Facts(cells, where, parts)


def _cells_of(scenario: dict[str, Any]) -> tuple[int, int]:
    """Return a complete scenario's number of cells, and of cells with a server."""
    layout, served = layout_of(scenario), scenario["layout"]["federations"]
    cells = int(layout["cells"])
    if isinstance(served, list):
        return cells, len(served)
    return cells, cells if served == "all" else max(1, len(layout["panels"][0]))


def _name(part: Any) -> str:
    return str(part["name"] if isinstance(part, dict) else part)


def _named(noun: str, several: Iterable[dict[str, str]]) -> str:
    """Name a part of all runs, such as `the model logistic or mlp2`, or `one of 5 models`."""
    names = list(dict.fromkeys(of[noun] for of in several))
    return f"the {noun} {joined(names, 'or')}" if len(names) <= MOST_NAMED else f"one of {len(names)} {noun}s"


def _numbers(counts: Sequence[int]) -> str:
    """Write numbers of devices: `6 devices`, `6 or 12 devices`, `6 to 100 devices`."""
    many = counts_of(counts, "device")
    return many.replace(" to ", " or ") if len(counts) == 2 else many
