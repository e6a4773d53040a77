"""Break energy down by class of device and by use, and convert it to battery charge."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from edgefl.analysis.measures.metrics import RUN
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.scenario_keys import keys_of
from edgefl.analysis.runs.vocabulary import BATTERY_EMPTY

ALL = "all devices"  # the class of devices without classes
# shares of the joules that learning causes, in the order of a bar -> words
CAUSED = {
    "receive_j": "receive",
    "amplifier_j": "transmit: amplifier",
    "circuit_j": "transmit: circuits",
    "compute_j": "compute",
    "tail_j": "tails of transfers",
}
# the same of runs without a ledger, whose rounds do not tell circuits apart
CAUSED_IN_ROUNDS = {"receive_j": CAUSED["receive_j"], "transmit_j": "transmit: amplifier and circuits"}
OF_ROUNDS = {  # energy columns of rounds.csv -> share
    "energy_rx_j": "receive_j",
    "energy_tx_j": "transmit_j",
    "energy_compute_j": "compute_j",
    "energy_tail_j": "tail_j",
}
SHARES = {**CAUSED, "idle_j": "idle"}
SUMS = ("devices", *CAUSED, "energy_j", "idle_j", "total_j", "wasted_j", "battery_j", "batteries", "emptied")

# A phone's battery: 5,000 mAh at 3.88 V, 19.4 Wh. This is the usual battery, and the largest with a single cell, of
# phones on the US market (49 CFR 173.185 allows 20 Wh); other phones on that market have 17.9 to 19.7 Wh. Source:
# https://usreader.com/why-samsung-s-galaxy-phones-maintain-a-5-000mah-battery-limit
NOMINAL_V = 3.88
BATTERY_MAH = 5000.0
# A phone's day is one charge. Source: telemetry of 250 models of Android phones in use, whose charge lasts 19 to 26
# hours (Strategy Analytics, https://twice.com/research/women-drain-cellphone-batteries-faster-men-61700)
PHONE_DAY_J = BATTERY_MAH * 3.6 * NOMINAL_V
# numbers of an average device, and of batteries -> words
OF_DEVICES = {
    "device_mah": f"its charge at {NOMINAL_V} V (mAh)",  # of the energy per device, which is the row above
    "phone_day_percent": "its share of a phone's day (%)",
    "battery_percent": "share of its battery, idle included (%)",
    "emptied": "batteries that ran empty",
}


def energy_by_class(runs: Runs) -> pd.DataFrame:
    """Sum the ledger of each run by class of device and by share.

    Returns:
        variant, seed, class (in the scenario's order; `all devices` without classes), devices; receive_j; amplifier_j
        and circuit_j, the two parts of the ledger's transmit_j (amplifier_j depends on the data sent; circuit_j is
        the rest: circuits, waits and access, or 0 if the power model does not separate them); compute_j; tail_j;
        energy_j, their sum: all joules that learning causes; idle_j, which energy_j excludes; total_j, the sum of
        energy_j and idle_j; wasted_j, the part of energy_j spent on updates that were not aggregated; battery_j,
        capacity of the class's own batteries (NaN if a device has none); battery_percent, total_j in percent of
        battery_j, since idle energy drains a battery, too; batteries, the number of batteries; emptied, how many of
        them ran empty at least once (NaN without batteries). For the average device: device_j, its energy_j;
        device_mah, the charge that device_j takes from a battery of 3.88 V; phone_day_percent, that charge in percent
        of what a phone uses in a day.

        Added in any order, the shares of a run equal the sum of total_j in its ledger, to the last digit.

    Raises:
        ValueError: a run has no ledger, because the run is not completed.
    """
    ledger = runs.ledger.copy(deep=False)
    ledger["class"] = ledger["class"].fillna(ALL) if "class" in ledger else ALL
    ledger["circuit_j"] = ledger["circuit_j"].fillna(0.0) if "circuit_j" in ledger else 0.0
    ledger["amplifier_j"] = ledger["transmit_j"] - ledger["circuit_j"]
    charged = {"left_j", "recharged_j"} <= {*ledger}  # true if any device has a battery
    ledger["battery_j"] = (
        ledger["total_j"] + ledger["left_j"] - ledger["recharged_j"] if charged else math.nan
    )
    own = ledger["battery_j"].notna()
    empty = runs.events[runs.events["event"] == BATTERY_EMPTY]
    keys, places = pd.MultiIndex.from_frame(ledger[[*RUN, "device"]]), empty[[*RUN, "device"]]
    emptied = keys.isin(list(places.itertuples(index=False, name=None)))
    ledger["batteries"], ledger["emptied"] = (
        own.astype(int),
        pd.Series(emptied, ledger.index, float).where(own),
    )
    paths = runs.info.set_index(RUN)["path"]
    table = pd.concat(
        _in_order(_of_run(rows), paths[variant, seed]).assign(variant=variant, seed=seed)
        for (variant, seed), rows in ledger.groupby(RUN, sort=False)
    ).reset_index()
    table["energy_j"] = table[[*CAUSED]].sum(axis=1)
    table["total_j"] = table["energy_j"] + table["idle_j"]
    return _with_battery(table[[*RUN, "class", *SUMS]])


def energy_of_all(by_class: pd.DataFrame) -> pd.DataFrame:
    """Sum the classes of each run in `energy_by_class`; return a row per run, with the same columns."""
    of_runs = by_class.groupby(RUN, sort=False)
    sums = of_runs[[*SUMS]].agg(_known_sum).assign(emptied=of_runs["emptied"].sum(min_count=1)).reset_index()
    sums.insert(len(RUN), "class", ALL)
    return _with_battery(sums)


def groups(by_class: pd.DataFrame, variants: Sequence[str], whole: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return label -> rows of `energy_by_class`: per variant all devices, then each class if there are several.

    The table `whole` has one row per run, for all devices together.
    """
    named = {}
    for variant in variants:
        mine = by_class[by_class["variant"] == variant]
        classes = list(dict.fromkeys(mine["class"]))
        alone = len(variants) == 1
        named[ALL if alone and len(classes) > 1 else variant] = whole[whole["variant"] == variant]
        for name in classes if len(classes) > 1 else ():
            named[name if alone else f"{variant}, {name}"] = mine[mine["class"] == name]
    return named


def _of_run(ledger: pd.DataFrame) -> pd.DataFrame:
    """Sum a run's ledger by class, rounding each share to the last digit of the total, so that shares add up."""
    classes = ledger.groupby("class", sort=False)
    shares = pd.DataFrame({name: classes[name].agg(math.fsum) for name in SHARES})
    total_j = math.fsum(ledger["total_j"])
    digit_j = math.ulp(total_j)
    counts = np.rint(shares.to_numpy() / digit_j).astype(np.int64)
    counts.flat[counts.argmax()] += int(total_j / digit_j) - counts.sum()  # add the rounding error
    shares[:] = counts * digit_j
    sums = {name: classes[name].agg(_known_sum) for name in ("wasted_j", "battery_j", "batteries")}
    return shares.assign(devices=classes.size(), emptied=classes["emptied"].sum(min_count=1), **sums)


def _in_order(classes: pd.DataFrame, run: str) -> pd.DataFrame:
    """Sort rows of classes as in the run's scenario; any other class comes last."""
    keys = [key.split(".") for key in keys_of(run) if key.startswith("devices.classes.")]
    names = list(dict.fromkeys(name for _, _, name, *_ in keys))
    return classes.loc[
        [*(name for name in names if name in classes.index), *classes.index.difference(names, sort=False)]
    ]


def _known_sum(values: pd.Series) -> float:
    """Sum values; return NaN if a value is unknown, such as the battery of a device on mains."""
    return float(values.sum(skipna=False))


def _with_battery(table: pd.DataFrame) -> pd.DataFrame:
    """Add a mean device's charge in mAh, its share of a phone's daily charge, and the share of the batteries used."""
    device_j = table["energy_j"] / table["devices"]
    return table.assign(
        device_j=device_j,
        device_mah=device_j / (3.6 * NOMINAL_V),
        phone_day_percent=100 * device_j / PHONE_DAY_J,
        battery_percent=100 * table["total_j"] / table["battery_j"],
    )
