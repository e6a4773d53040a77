"""Report the costs of runs: joules and seconds by use, battery charge, and J's cost analysis."""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from edgefl.analysis.figures.energy import after, decimals_of, energy_figure
from edgefl.analysis.measures.cost_analysis import cost_analysis
from edgefl.analysis.measures.energy import (
    BATTERY_MAH,
    CAUSED,
    CAUSED_IN_ROUNDS,
    NOMINAL_V,
    OF_DEVICES,
    OF_ROUNDS,
    PHONE_DAY_J,
    energy_by_class,
    energy_of_all,
    groups,
)
from edgefl.analysis.measures.metrics import RUN, training_rounds
from edgefl.analysis.measures.scope import variants_of
from edgefl.analysis.page.formatting import (
    ENERGY_UNITS,
    NOTHING,
    TIME_UNITS,
    Units,
    amount,
    unit_for,
    with_spread,
)
from edgefl.analysis.page.markup import bullets, latex_table, page, picture, section
from edgefl.analysis.page.report import Report, noted
from edgefl.analysis.runs.choices import Names, Out, Partial
from edgefl.analysis.runs.load import Paths, Runs, given_runs, load_as_variants
from edgefl.analysis.runs.reading import forms
from edgefl.analysis.runs.vocabulary import COMPLETED, STAGES


def report_costs(*runs: Paths | Runs, partial: Partial = False, names: Names = (), out: Out = None) -> Report:
    """Measure the costs of all runs, and write costs.csv, costs_stages.csv, costs.md and costs.tex.

    For completed runs, also write costs_energy.csv, and costs_energy.png with a stacked bar per class of device.

    Args:
        runs: folders of studies or runs, or runs that have been read.
        partial: whether to include incomplete runs.
        names: names to show instead of the folders' names, in the order of the folders.
        out: folder to write, or None for the folder of the runs or, with several folders, `comparison` next to them.

    Returns:
        The report: `.tables` has the shown tables, `.numbers` their data frames. A notebook shows the tables.

    Raises:
        ValueError: no run is completed, or the folder cannot be written.
    """
    given = given_runs(runs, load_as_variants, names=names, partial=partial)
    by_class, variants = _by_class(given), variants_of(given.info, None)
    of_runs, stages = breakdown(given, by_class), cost_analysis(given)
    shown = _tables(of_runs, by_class, stages, variants, trained=given.trained)
    several = (given.rounds.groupby(RUN)["cell"].nunique() > 1).any()
    over = [
        *[OVER_CELLS] * bool(several),
        *["Means over seeds, ± standard deviation."] * bool(given.info["variant"].duplicated().any()),
    ]
    sentences = [*over, *EXPLANATIONS, *[ABOVE] * _told(of_runs, "excess_j"), *noted(given.said())]
    parts = [section(title, table, "") for title, table in shown.items()]
    latex = [latex_table(title, table, "") for title, table in shown.items()]
    figures = {} if by_class is None else {"costs_energy": energy_figure(by_class, variants)}
    drawn = [picture(name) for name in figures]
    return Report(
        given.folder(out),
        tables=list(shown.items()),
        sentences=sentences,
        look=[*(("Figure", f"{name}.png") for name in figures), ("Tables", "costs.md")],
        numbers={"costs.csv": of_runs, "costs_stages.csv": stages}
        | ({} if by_class is None else {"costs_energy.csv": by_class}),
        texts={"costs.md": page("Costs", *drawn, *parts, bullets(sentences)), "costs.tex": "\n".join(latex)},
        figures=figures,
    ).write()


def _by_class(runs: Runs) -> pd.DataFrame | None:
    """Measure energy by class; None with --partial, since a run writes its ledger only when it ends."""
    ended = (runs.info["status"] == "completed").all()
    return (
        energy_by_class(runs)
        if ended and all(forms(Path(path), "ledger") for path in runs.info["path"])
        else None
    )


ROUND = [*RUN, "cell", "session", "phase", "round"]
ROUNDING = 1e-9  # smaller gaps between rounds, as a share of a run's time, are rounding errors of sums
RESIDUE = 1e-12  # smaller waits, as a share of the simulated time so far, are rounding errors of differences


def breakdown(runs: Runs, by_class: pd.DataFrame | None = None) -> pd.DataFrame:
    """Break down energy by use, and time by the cause of waiting in a round; one row per run.

    Returns:
        variant, seed; sums over all devices, receive_j to total_j as in `energy_by_class` (without a ledger
        transmit_j, and idle is unknown); parts of energy_j: probe_j (probe rounds), wasted_j (on updates that were
        not aggregated) and excess_j (above the minimum for the same rounds, NaN if not recorded); server_j, which no
        other column includes; simulated_s and its parts rounds_s (training), probe_s and between_s (no round going
        on), means over cells; means over the training rounds' completed participations: downlink_s, compute_s,
        uplink_s, access_s (before the transfers) and waiting_s (time in queues, or until the next slot, NaN with an
        asynchronous server); and over each round's slowest participation: slowest_downlink_s, ... Means of
        participations are NaN if devices.csv has no rows.
    """
    rounds = runs.rounds
    by_run, every = rounds.groupby(RUN), pd.MultiIndex.from_frame(runs.info[RUN])  # a run may have no round
    parts = by_run[list(OF_ROUNDS)].sum().rename(columns=OF_ROUNDS).reindex(every, fill_value=0.0)
    if by_class is None:
        parts["energy_j"] = parts.sum(axis=1)
    else:
        sums = energy_of_all(by_class).set_index(RUN)
        parts = sums.reindex(every)[[*CAUSED, "energy_j", "idle_j", "total_j"]]
    probes = rounds[rounds["phase"] == "probe"]
    parts["probe_j"] = probes.groupby(RUN)["energy_j"].sum().reindex(parts.index).fillna(0.0)
    for name in ("wasted", "server", "excess"):
        column = f"energy_{name}_j"
        parts[f"{name}_j"] = by_run[column].sum(min_count=1) if column in rounds else math.nan
    simulated = runs.info.set_index(RUN)["simulated_s"].astype(float)
    parts["simulated_s"] = simulated.reindex(parts.index).fillna(by_run["end_s"].max())
    cells = by_run["cell"].nunique().reindex(every, fill_value=1)
    lasting = rounds.assign(lasts_s=rounds["end_s"] - rounds["start_s"])
    for name, some in (
        ("rounds_s", training_rounds(lasting)),
        ("probe_s", lasting[lasting["phase"] == "probe"]),
    ):
        parts[name] = some.groupby(RUN)["lasts_s"].sum().reindex(parts.index).fillna(0.0) / cells
    between = parts["simulated_s"] - parts["rounds_s"] - parts["probe_s"]
    parts["between_s"] = between.where(between > ROUNDING * parts["simulated_s"], 0.0)
    return parts.join(_participations(runs.devices, rounds)).reset_index()


def _participations(devices: pd.DataFrame, rounds: pd.DataFrame) -> pd.DataFrame:
    """Average the durations of the steps of completed participations, and of each round's slowest participation."""
    columns = [f"{step}_{end}_s" for step in STAGES for end in ("start", "end")]
    if devices.empty or not set(columns) <= set(devices):
        return pd.DataFrame(index=rounds.groupby(RUN).size().index)
    training = training_rounds(devices)
    done = training[training["outcome"] == COMPLETED].merge(
        rounds[[*ROUND, "start_s"]], on=ROUND, how="inner"
    )
    lasts = {f"{step}_s": done[f"{step}_end_s"] - done[f"{step}_start_s"] for step in STAGES}
    if "access_s" in done:
        lasts["access_s"] = done["access_s"]
    done = done.assign(**lasts)
    waits = done["uplink_end_s"] - done["start_s"] - done[list(lasts)].sum(axis=1)
    done["waiting_s"] = waits.mask(waits.abs() <= RESIDUE * done["uplink_end_s"], 0.0)
    done["early"] = done["downlink_start_s"] < done["start_s"]  # an asynchronous server
    done["waiting_s"] = done["waiting_s"].mask(done.groupby(RUN)["early"].transform("any"))
    names = [*lasts, "waiting_s"]
    slowest = done.loc[done.groupby(ROUND)["uplink_end_s"].idxmax()]
    return done.groupby(RUN)[names].mean().join(slowest.groupby(RUN)[names].mean().add_prefix("slowest_"))


ENERGY = {
    **CAUSED_IN_ROUNDS,
    **CAUSED,
    "energy_j": "energy",
    "probe_j": "probe rounds, included",
    "wasted_j": "wasted, included",
    "excess_j": "above the minimum, included",
    "idle_j": "idle, not included",
    "total_j": "energy plus idle",
    "server_j": "server, not included",
}
DEVICE = {"devices": "devices", "device_j": "energy per device (J)", **OF_DEVICES}
COUNTED = ("devices", "emptied")
OPTIONAL = {"circuit_j", "probe_j", "access_s", "slowest_access_s"}  # not shown if they are zero everywhere
RUN_TIME = {
    "rounds_s": "training rounds",
    "probe_s": "probe rounds",
    "between_s": "between rounds",
    "simulated_s": "total",
}
STEP_TIME = {
    f"{who}{step}_s": f"{words}: {step}"
    for who, words in (("", "average device"), ("slowest_", "slowest device"))
    for step in ("access", "downlink", "compute", "uplink", "waiting")
}
COUNTS = {
    "rounds": "rounds (broadcasts)",
    "participations": "participations",
    "uncovered": "missed for lack of a link",
    "uploads": "uploads",
    "epochs": "local epochs",
    "iterations": "local iterations",
}
ABOVE = (
    "Above the minimum: energy that completed participants spent on computing and sending beyond the least energy"
    " for the same work in the same time, with the best shares, powers and clocks (record.energy_excess)."
)
OVER_CELLS = (
    "With several cells, the times of rounds and between rounds are means over cells, so that they add up to the"
    " simulated time; energy, and the numbers of rounds, are sums over cells."
)
SMALLEST = 1e-4  # fraction of the table's unit; a row of smaller means gets a unit of its own
EXPLANATIONS = (
    "Energy includes all joules that learning causes in the devices. Circuits are the part of the uploads' energy"
    " that does not depend on the radiated power, including waits and access; wasted is the energy of updates that"
    " were not aggregated; idle is what devices draw without work and without a radio tail.",
    f"A phone's day is a charge of {BATTERY_MAH:,.0f} mAh at {NOMINAL_V} V, {PHONE_DAY_J / 3600:.1f} Wh. A"
    " device's share of its own battery is that of energy plus idle, since idle energy drains the battery, too.",
    "Between rounds is the time in which a cell has no round, including the time before its first round and after"
    " its last.",
    "Participation times cover completed participations in rounds that train the global model. Access is the wait"
    " for the network (radio.access); waiting is queueing between steps, unknown with an asynchronous server. The"
    " slowest device's steps and rounds.server_s add up to the latency of a synchronous round in which all devices"
    " complete, and that has no exchange with a cloud.",
    "The stages (journal paper, section V) are the pilot sessions, the gradient stage with the V probe rounds of"
    " each later session, and training. A round has one broadcast, and only uploads that arrived count. All cells"
    " keep the same number of models, each of the size of a transfer.",
)


def _tables(
    breakdown: pd.DataFrame,
    by_class: pd.DataFrame | None,
    costs: pd.DataFrame,
    variants: Sequence[str],
    *,
    trained: bool,
) -> dict[str, pd.DataFrame]:
    """Write all tables, [quantities x variants] each, means over seeds: title -> table.

    Tables of energy have additional columns for classes of devices.
    """
    energy = of_runs = {name: breakdown[breakdown["variant"] == name] for name in variants}
    devices, rounds = {}, "training " * trained
    if costs["stage"].eq("pilot").any():
        rounds = "pilot and training "
    if by_class is not None:
        energy = groups(by_class, variants, breakdown)
        devices = groups(by_class, variants, energy_of_all(by_class))
    written = {}
    for title, frames, words, units in (
        ("Energy of a run", energy, ENERGY, ENERGY_UNITS),
        ("Energy per device, and share of a battery", devices, DEVICE, ()),
        ("Simulated time of a run", of_runs, RUN_TIME | {"rounds_s": f"{rounds}rounds"}, TIME_UNITS),
        (f"Time of a participation in a {rounds.replace('and', 'or')}round", of_runs, STEP_TIME, TIME_UNITS),
    ):
        table, unit = _spreads(frames, words, units)
        written[f"{title} ({unit})" if unit else title] = table
    written["Cost analysis (journal paper, section V)"] = _stages(costs, variants)
    return {title: table for title, table in written.items() if len(table)}


def _spreads(
    frames: dict[str, pd.DataFrame], words: dict[str, str], units: Units
) -> tuple[pd.DataFrame, str]:
    """Write means over seeds in the unit that fits; without units, write each number as it is.

    A row of much smaller means has its own unit, which the row's title names. Seeds that agree exactly have no ±.
    """
    known = {name: title for name, title in words.items() if any(_told(one, name) for one in frames.values())}
    numbers = [value for frame in frames.values() for name in known if name in frame for value in frame[name]]
    unit, size = unit_for(numbers, units) if units else ("", 1.0)
    cells = {}
    for name, title in known.items():
        values = [rows[name] if name in rows else pd.Series(dtype=float) for rows in frames.values()]
        largest, own = max(abs(one.mean()) for one in values if one.notna().any()), size
        if units and 0 < largest < SMALLEST * size:
            word, own = unit_for([largest], units)
            title = f"{title} ({word})"
        cells[title] = [
            with_spread(
                one.mean() / own,
                one.std() / own if one.nunique() > 1 else math.nan,
                decimals_of(one.mean()) if name in COUNTED else None,
            )
            + (after(name, rows.mean(numeric_only=True)) if one.notna().any() else "")
            for one, rows in zip(values, frames.values(), strict=True)
        ]
    return pd.DataFrame.from_dict(cells, orient="index", columns=list(frames)), unit


def _told(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a column gets a row in a table: it must have numbers, and an optional column not only zeros."""
    return name in frame and bool((frame[name].notna() & (frame[name].ne(0) | (name not in OPTIONAL))).any())


def _stages(costs: pd.DataFrame, variants: Sequence[str]) -> pd.DataFrame:
    columns: dict[str, dict[str, str]] = {}
    for variant in variants:
        rows, cells = costs[costs["variant"] == variant], {}
        for stage in ("pilot", "gradient", "training"):
            means = rows[rows["stage"] == stage][[name for name in COUNTS if name in rows]].mean()
            for name, value in means.items():
                if value or name != "uncovered":
                    cells[f"{stage}: {COUNTS[str(name)]}"] = amount(value, 0)
            bits = rows.loc[rows["stage"] == stage, ["uplink_bits", "downlink_bits"]].mean()
            for way in ("uplink", "downlink"):
                cells[f"{stage}: {way} (Mbit)"] = amount(bits[f"{way}_bits"] / 1e6)
        stored = rows[["stored_models", "stored_temporarily", "model_bits"]].astype(float).mean()
        size = stored["model_bits"] / 8e6
        for name, words in (("stored_models", "kept at the end"), ("stored_temporarily", "kept temporarily")):
            count = stored[name]
            known = not math.isnan(count)
            cells[f"models {words}"] = amount(count, 0) if known else NOTHING
            if known and not math.isnan(size):
                cells[f"models {words}"] += f" ({amount(count * size)} MB)"
        columns[variant] = cells
    table = pd.DataFrame(columns).fillna(NOTHING)
    return table[(table != NOTHING).any(axis=1)]
